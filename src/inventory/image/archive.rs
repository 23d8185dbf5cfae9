//! An image in one file: `docker save`, `skopeo copy docker-archive:` and `oci-archive:`. A tar archive whose members are
//! read where they lie; a compressed one is unpacked first, into a file without a name.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::fault::Fault;
use super::layer::{Limits, Packing, decompressed};
use super::layout::INDEX;
use super::tar::{Kind, Source, Tar};
use super::{Blob, Blobs, bound};

/// The list of what `docker save` saved.
const DOCKER: &str = "manifest.json";
/// Members of an archive: several files a layer, and no image has a thousand layers.
const MOST_MEMBERS: usize = 20_000;
/// Links from member to member, as `docker save` makes them of layers that are the same.
const LINKS: usize = 40;

/// An image in one file.
#[derive(Debug)]
pub struct Archive {
    file: Arc<File>,
    members: HashMap<String, Member>,
}

#[derive(Debug)]
enum Member {
    /// Position and size.
    File(u64, u64),
    /// Another member.
    Link(String),
}

/// The top of the image in an archive.
pub(super) enum Top {
    /// `index.json` of a layout.
    Index(Vec<u8>),
    /// `manifest.json` of Docker.
    Docker(Vec<u8>),
}

impl Archive {
    /// Reads the heads of a file's members.
    pub(super) fn open(file: File, limits: &Limits) -> Result<Self, Fault> {
        let file = plain(file, limits)?;
        let length = file.metadata()?.len();
        let mut tar = Tar::new(Skipping { file: &file, at: 0, length });
        let mut members = HashMap::new();
        while let Some(entry) = tar.next()? {
            let name = String::from_utf8_lossy(&entry.path).trim_start_matches("./").to_owned();
            let member = match entry.kind {
                Kind::File => Member::File(tar.source().at, entry.size),
                Kind::Link => Member::Link(beside(&name, &String::from_utf8_lossy(&entry.target))),
                Kind::HardLink => Member::Link(String::from_utf8_lossy(&entry.target).into_owned()),
                _ => continue,
            };
            members.insert(name, member);
            if members.len() > MOST_MEMBERS {
                return Err(Fault::broken(format!("it has more than {MOST_MEMBERS} members")));
            }
        }
        Ok(Self { file: Arc::new(file), members })
    }

    /// The top of the image. Where an archive has both, the index has digests and Docker's list has none.
    pub(super) fn top(&self) -> Result<Top, Fault> {
        let read = |name: &str| -> Result<Vec<u8>, Fault> {
            bound::small(self.member(name)?)?.ok_or_else(|| bound::too_large(&format!("its {name}")))
        };
        if self.members.contains_key(INDEX) {
            return read(INDEX).map(Top::Index);
        }
        if self.members.contains_key(DOCKER) {
            return read(DOCKER).map(Top::Docker);
        }
        let what = format!("there is neither {INDEX} nor {DOCKER} in it");
        let is_root = ["etc", "usr", "bin"].iter().any(|name| self.has_folder(name));
        Err(match is_root {
            true => Fault::Foreign(
                format!("{what}; it seems to be a root filesystem, as `docker export` writes it"),
                "save the image (docker save), or unpack the archive and verify the folder",
            ),
            false => Fault::broken(what),
        })
    }

    fn has_folder(&self, folder: &str) -> bool {
        self.members.keys().any(|name| name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')))
    }

    fn member(&self, name: &str) -> Result<Part, Fault> {
        let mut name = name;
        for _ in 0..LINKS {
            match self.members.get(name) {
                Some(Member::File(at, size)) => {
                    return Ok(Part { file: Arc::clone(&self.file), at: *at, end: at.saturating_add(*size) });
                }
                Some(Member::Link(target)) => name = target,
                None => return Err(Fault::broken(format!("{name} is missing in it"))),
            }
        }
        Err(Fault::broken(format!("the links of {name} lead in a circle")))
    }
}

impl Blobs for Archive {
    fn open(&self, blob: &Blob) -> io::Result<Box<dyn Read + Send + '_>> {
        let place = match (&blob.place, blob.digest.split_once(':')) {
            (Some(place), _) => place.clone(),
            (None, Some((algorithm, hex))) => format!("blobs/{algorithm}/{hex}"),
            (None, None) => blob.digest.clone(),
        };
        let missing = |fault: Fault| io::Error::new(io::ErrorKind::InvalidInput, fault.to_string());
        self.member(&place).map(|part| Box::new(part) as _).map_err(missing)
    }
}

/// A link's target as a name of a member; nothing leads out of the archive.
fn beside(name: &str, target: &str) -> String {
    let mut parts: Vec<&str> = name.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The file itself, or what it unpacks to.
fn plain(mut file: File, limits: &Limits) -> Result<File, Fault> {
    let mut magic = [0; 6];
    let count = file.read_at(&mut magic, 0)?;
    match Packing::of(&magic[..count]) {
        Some(Packing::Gzip | Packing::Zstd) => {}
        Some(Packing::Other(name)) => {
            let what = format!("it is compressed with {name}: gzip and zstd are read");
            return Err(Fault::Foreign(what, "unpack it first: xz -d FILE, or bunzip2 FILE"));
        }
        None => return Ok(file),
    }
    let mut to = tempfile::tempfile().map_err(Fault::Spool)?;
    file.seek(SeekFrom::Start(0))?;
    let mut packed = BufReader::with_capacity(256 << 10, file);
    let mut from = decompressed(&mut packed)?;
    let mut part = vec![0; 256 << 10];
    loop {
        let count = from.read(&mut part)?;
        if count == 0 {
            break;
        }
        limits.bytes(count as u64)?;
        io::Write::write_all(&mut to, &part[..count]).map_err(Fault::Spool)?;
    }
    Ok(to)
}

/// Reads little and skips much.
pub(super) struct Skipping<'f> {
    file: &'f File,
    at: u64,
    length: u64,
}

impl Read for Skipping<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(into, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Source for Skipping<'_> {
    fn skip(&mut self, count: u64) -> io::Result<u64> {
        let count = count.min(self.length.saturating_sub(self.at));
        self.at += count;
        Ok(count)
    }
}

/// A part of a file.
struct Part {
    file: Arc<File>,
    at: u64,
    end: u64,
}

impl Read for Part {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX).min(into.len());
        let count = self.file.read_at(&mut into[..most], self.at)?;
        if count == 0 && most > 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file ends inside a member"));
        }
        self.at += count as u64;
        Ok(count)
    }
}
