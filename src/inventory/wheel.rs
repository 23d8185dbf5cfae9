//! A wheel as a subject: takes the archive, gives a folder in which its libraries and its `.dist-info` lie as pip would
//! install them (the binary distribution format; zip, zip64 included).

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use zip::ZipArchive;
use zip::result::ZipError;

use super::subject::refuse;
use super::{parallel, root, shown, walk};
use crate::diag::Failure;

/// More than all libraries of any wheel together, in bytes.
const MOST: u64 = 64 << 30;
/// Libraries of real wheels are packed to no less than a fiftieth; what claims more is made to fill disks.
const DENSEST: u64 = 200;
/// As much may be in any wheel, however small it is.
const ALWAYS: u64 = 64 << 20;
/// More files than any wheel has.
const MOST_MEMBERS: usize = 100_000;
/// Where pip puts the packages, below the folder.
pub(super) const SITE: &str = "lib/python3/site-packages";

/// An open file that several readers read, each at a position of its own.
#[derive(Clone)]
struct Shared {
    file: Arc<File>,
    size: u64,
    at: u64,
}

impl Read for Shared {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(into, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Shared {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.size.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// One member that is unpacked.
struct Member {
    at: usize,
    size: u64,
    to: PathBuf,
}

/// What went wrong with a member.
enum Trouble {
    /// The wheel is damaged.
    Wheel(String),
    /// The temporary folder cannot be written.
    Disk(io::Error),
}

/// Unpacks the libraries and the `.dist-info` of the wheel at `path` into a folder that vanishes.
///
/// # Errors
/// A file that is no sound wheel, or a temporary folder that cannot hold it.
pub(super) fn unpack(given: &Path, path: &Path, threads: usize) -> Result<TempDir, Failure> {
    let name = shown(given);
    let damaged = |fact: String| {
        let message = format!("wheel {name} cannot be read: {fact}");
        refuse("wheel-unreadable", message, name.clone(), fact, "download it once more".into())
    };
    let disk = |error: io::Error| {
        let message = format!("the libraries of {name} cannot be unpacked: {error}");
        let place = std::env::temp_dir().display().to_string();
        refuse(
            "cannot-write",
            message,
            place,
            error.to_string(),
            "make room there, or name another folder by TMPDIR".into(),
        )
    };
    let (file, metadata) = root::open_regular(path).map_err(|error| damaged(error.to_string()))?;
    let shared = Shared { file: Arc::new(file), size: metadata.len(), at: 0 };
    let archive = ZipArchive::new(BufReader::new(shared.clone()));
    let archive = archive.map_err(|error| damaged(format!("it is no sound zip archive ({error})")))?;
    let members = members(archive, metadata.len()).map_err(damaged)?;
    let folder = tempfile::Builder::new().prefix("gpulock-wheel-").tempdir().map_err(disk)?;
    fs::create_dir_all(folder.path().join(SITE)).map_err(disk)?;
    // Each thread reads the directory once, and then every so manieth member, the largest first.
    let threads = threads.min(members.len()).max(1);
    let results = parallel::map(threads, &(0..threads).collect::<Vec<_>>(), |first| {
        let mut archive = ZipArchive::new(BufReader::new(shared.clone())).map_err(Trouble::from)?;
        members.iter().skip(*first).step_by(threads).try_for_each(|member| copy(&mut archive, member, folder.path()))
    });
    for result in results {
        result.map_err(|trouble| match trouble {
            Trouble::Wheel(fact) => damaged(fact),
            Trouble::Disk(error) => disk(error),
        })?;
    }
    Ok(folder)
}

/// What is to be unpacked, the largest first.
fn members(mut archive: ZipArchive<BufReader<Shared>>, packed: u64) -> Result<Vec<Member>, String> {
    let mut members = Vec::new();
    let (mut total, mut described) = (0_u64, false);
    for at in 0..archive.len() {
        let unsound = |error: ZipError| format!("it is no sound zip archive ({error})");
        let member = archive.by_index_raw(at).map_err(unsound)?;
        let name = member.name().map_err(unsound)?.into_owned();
        let Some(to) = installed(&name) else {
            return Err(format!("its member `{}` leads out of it", name.escape_debug()));
        };
        let Some(to) = to else { continue };
        if member.is_symlink() {
            return Err(format!("its member {name} is a link, which no wheel may hold"));
        }
        described |= name.ends_with(".dist-info/METADATA");
        total = total.saturating_add(member.size());
        members.push(Member { at, size: member.size(), to });
    }
    if total > MOST || total > ALWAYS && total / DENSEST > packed {
        return Err(format!("{packed} bytes claim to hold {total}"));
    }
    if members.len() > MOST_MEMBERS {
        return Err(format!("it has {} libraries and programs, more than {MOST_MEMBERS}", members.len()));
    }
    if !described {
        return Err("it has no .dist-info/METADATA".into());
    }
    members.sort_by_key(|member| std::cmp::Reverse(member.size));
    Ok(members)
}

/// Where a member is installed, below the temporary folder; `Some(None)` for what is not needed, `None` for a name that
/// leads elsewhere.
fn installed(name: &str) -> Option<Option<PathBuf>> {
    let strange = name.starts_with('/') || name.contains(['\\', '\0']) || name.split('/').any(|part| part == "..");
    if strange {
        return None;
    }
    let file = name.rsplit('/').next().unwrap_or(name);
    let info = name.split_once('/').is_some_and(|(folder, _)| folder.ends_with(".dist-info"));
    if file.is_empty() || !info && walk::judge(file.as_bytes()).is_none() {
        return Some(None);
    }
    let path = match name.split_once(".data/") {
        Some((package, rest)) if !package.contains('/') => match rest.split_once('/') {
            // `x.data/data//etc/y` is an absolute path once the folder for data is put before it.
            Some((_, rest)) if rest.starts_with('/') => return None,
            Some(("purelib" | "platlib", rest)) => Path::new(SITE).join(rest),
            Some(("data", rest)) => PathBuf::from(rest),
            Some(("scripts", rest)) => Path::new("bin").join(rest),
            _ => return Some(None),
        },
        _ => Path::new(SITE).join(name),
    };
    Some(Some(path))
}

fn copy(archive: &mut ZipArchive<BufReader<Shared>>, member: &Member, folder: &Path) -> Result<(), Trouble> {
    let to = folder.join(&member.to);
    // What the wheel is to blame for: a file twice, a file where others have a folder, a name that no disk takes.
    let refused = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => {
            Trouble::Wheel(format!("it has two members for {}", shown(&member.to)))
        }
        io::ErrorKind::InvalidFilename => Trouble::Wheel(format!("no file can have the name {}", shown(&member.to))),
        _ => Trouble::Disk(error),
    };
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).map_err(refused)?;
    }
    let executable = archive.by_index_raw(member.at)?.unix_mode().is_some_and(|mode| mode & 0o111 != 0);
    let mut from = archive.by_index(member.at)?;
    // Two members of one name would share a file.
    let mut file = File::create_new(&to).map_err(refused)?;
    let mut part = vec![0; 256 << 10];
    let mut left = member.size;
    loop {
        let count = from.read(&mut part).map_err(|error| Trouble::Wheel(format!("{}: {error}", shown(&member.to))))?;
        if count == 0 {
            break;
        }
        // The size in the directory may be a lie.
        left = left
            .checked_sub(count as u64)
            .ok_or_else(|| Trouble::Wheel(format!("{} is larger than it says", shown(&member.to))))?;
        io::Write::write_all(&mut file, &part[..count]).map_err(Trouble::Disk)?;
    }
    if executable {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        file.set_permissions(mode).map_err(Trouble::Disk)?;
    }
    Ok(())
}

impl From<ZipError> for Trouble {
    fn from(error: ZipError) -> Self {
        Self::Wheel(format!("it is no sound zip archive ({error})"))
    }
}
