//! Writes a file whole or not at all: whatever happens, readers see the old text or the new one.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::diag::{Diagnostic, Evidence, Failure};

/// What a write changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// There was no such file.
    Created,
    /// The file had other text.
    Changed,
    /// The file had this text already, and was not touched.
    Unchanged,
}

/// Symbolic links that are followed before a cycle is assumed, as Linux does.
const MOST_LINKS: usize = 40;

/// Random characters at the end of a temporary file's name.
const RANDOM: usize = 8;

/// Puts `text` into `path` atomically: a temporary file in the same folder, synced, renamed over it.
///
/// A symbolic link stays and its target is written; permissions stay; two writers at once leave the text of one. What is no
/// file of its own is written to, after what is there: an open file (`/dev/stdout`, `/dev/fd/3`), a pipe, a device.
///
/// # Errors
/// When the file cannot be written; then it is as it was, and nothing is left beside it.
pub fn atomically(path: &Path, text: &str) -> Result<Written, Failure> {
    bytes_atomically(path, text.as_bytes())
}

/// The same for what is no text.
///
/// # Errors
/// As [`atomically`].
pub fn bytes_atomically(path: &Path, text: &[u8]) -> Result<Written, Failure> {
    let refuse = |error: io::Error| Failure::unanswerable(explain(path, &error));
    let target = follow_links(path).map_err(refuse)?;
    if is_open(&target) {
        return opened(&target).and_then(|file| pour(file, text)).map_err(refuse);
    }
    let permissions = match fs::metadata(&target) {
        Ok(metadata) if metadata.is_dir() => return Err(refuse(ErrorKind::IsADirectory.into())),
        // A terminal, pipe or device is written to, not replaced.
        Ok(metadata) if !metadata.is_file() => {
            return File::options().write(true).open(&target).and_then(|file| pour(file, text)).map_err(refuse);
        }
        Ok(metadata) => {
            let same_size = metadata.len() == text.len() as u64;
            if same_size && fs::read(&target).is_ok_and(|old| old == text) {
                return Ok(Written::Unchanged);
            }
            // A rename would pass over what the owner protected.
            if metadata.permissions().readonly() {
                return Err(refuse(io::Error::new(ErrorKind::PermissionDenied, "the file is read-only")));
            }
            Some(metadata.permissions())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(refuse(error)),
    };
    replace(&target, text, permissions.clone()).map_err(refuse)?;
    Ok(if permissions.is_some() { Written::Changed } else { Written::Created })
}

/// Whether a path names a file that a process has open: the link there says a name that is for people to read. What is open
/// may be a pipe or a file that was removed, and a file is written to where it stands.
fn is_open(path: &Path) -> bool {
    let folder = path.parent().and_then(|folder| fs::canonicalize(folder).ok());
    folder.is_some_and(|folder| folder.starts_with("/proc") && folder.ends_with("fd")) && path.file_name().is_some()
}

/// Whether a path is that of a file, and no other name of a stream that somebody reads.
pub(super) fn is_file(path: &Path) -> bool {
    follow_links(path).is_ok_and(|end| !is_open(&end) && fs::metadata(end).is_ok_and(|it| it.is_file()))
}

/// Such a file. Standard output and error are shared with whoever started this process, place in the file included.
fn opened(path: &Path) -> io::Result<File> {
    let own = fs::canonicalize("/proc/self")?;
    let is_own = path.parent().is_some_and(|folder| fs::canonicalize(folder).is_ok_and(|it| it.starts_with(own)));
    match path.file_name().filter(|_| is_own).and_then(|name| name.to_str()) {
        Some("1") => {
            io::stdout().flush()?;
            Ok(io::stdout().as_fd().try_clone_to_owned()?.into())
        }
        Some("2") => Ok(io::stderr().as_fd().try_clone_to_owned()?.into()),
        _ => File::options().append(true).open(path),
    }
}

/// Writes to what is no file to replace. A reader that went away is no error.
fn pour(mut file: File, text: &[u8]) -> io::Result<Written> {
    match file.write_all(text) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(Written::Changed),
    }
}

fn replace(target: &Path, text: &[u8], permissions: Option<Permissions>) -> io::Result<()> {
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    sweep(folder, &format!(".{name}."));
    // The umask takes its bits from these, as for any new file.
    let mode = permissions.clone().unwrap_or_else(|| Permissions::from_mode(0o666));
    let mut file = tempfile::Builder::new()
        .prefix(&format!(".{name}."))
        .rand_bytes(RANDOM)
        .permissions(mode)
        .tempfile_in(folder)?;
    file.write_all(text)?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    file.as_file().sync_all()?;
    file.persist(target).map_err(|error| error.error)?;
    // The rename itself outlasts a power failure only when the folder is synced; not every file system can.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Removes temporary files that a writer which was killed left behind. One that writes now is seconds old.
fn sweep(folder: &Path, prefix: &str) {
    const ABANDONED: Duration = Duration::from_secs(3600);
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().strip_prefix(prefix).is_some_and(|rest| rest.len() == RANDOM);
        let age = entry.metadata().ok().filter(fs::Metadata::is_file).and_then(|it| it.modified().ok()?.elapsed().ok());
        if ours && age.is_some_and(|age| age > ABANDONED) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether two paths lead to one file, which need not be there yet.
pub(super) fn is_same(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| {
        let path = follow_links(path).ok()?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some((fs::canonicalize(folder).ok()?, path.file_name()?.to_owned()))
    };
    place(one).is_some_and(|one| place(other) == Some(one))
}

/// The file that a chain of symbolic links leads to, whether it exists or not. A file that a process has open is the end.
pub(super) fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        if is_open(&path) {
            return Ok(path);
        }
        match fs::read_link(&path) {
            Ok(next) => path = path.parent().unwrap_or(Path::new("")).join(next),
            // Not a link, or not there.
            Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::NotFound) => return Ok(path),
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

fn explain(path: &Path, error: &io::Error) -> Diagnostic {
    let shown = path.display();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (why, fix) = match error.kind() {
        ErrorKind::PermissionDenied => ("it or its folder is read-only for this user", "change the permissions"),
        ErrorKind::ReadOnlyFilesystem => ("its file system is read-only", "write to another place"),
        ErrorKind::StorageFull => ("the disk is full", "free some space"),
        ErrorKind::QuotaExceeded => ("the disk quota is used up", "free some space"),
        ErrorKind::FileTooLarge => ("files may not be that large here", "raise the limit (`ulimit -f`)"),
        ErrorKind::NotADirectory => ("a part of its path is a file, not a folder", "choose another place"),
        // File systems of the kernel's own (/proc, /sys) say of each new file that it is not there.
        ErrorKind::NotFound if folder.is_dir() => ("files cannot be made in its folder", "choose another place"),
        ErrorKind::NotFound => ("its folder does not exist", "create the folder"),
        ErrorKind::IsADirectory => ("a folder of that name is there", "remove it, or choose another name"),
        _ => ("the system refused", "see the reason above"),
    };
    let kept = if is_file(path) { "; the file is as it was" } else { "" };
    let message = format!("cannot write {shown}: {why}{kept}");
    // The name of the temporary file tells nobody anything.
    let said = error.to_string();
    let said = said.split(" at path ").next().unwrap_or_default();
    Diagnostic::error("cannot-write", message, Evidence::observed(folder.display().to_string(), said)).fix(fix)
}
