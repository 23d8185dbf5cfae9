//! Paths inside a root folder: takes a path as a process of that root would write it, gives the file it leads to.
//!
//! Links are followed as after `chroot`: an absolute link stays inside, and `..` above the root is the root
//! (path_resolution(7)).

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;

/// As many links as Linux follows on the way to one file (MAXSYMLINKS).
const LINKS: usize = 40;
/// Longer paths do not exist under Linux, in bytes (PATH_MAX).
const LONGEST: usize = 4096;
/// Opening must not wait for a writer, should a file have become a pipe meanwhile (O_NONBLOCK).
const NONBLOCK: i32 = if cfg!(target_os = "linux") { 0o4000 } else { 0x4 };

/// A folder that is `/` to what lies in it; `/` itself for this machine.
#[derive(Debug)]
pub struct Root {
    folder: PathBuf,
    /// Folders by the path that was asked for; `None` for those that do not exist.
    folders: Mutex<HashMap<PathBuf, Option<PathBuf>>>,
}

/// Why a path leads nowhere.
#[derive(Debug)]
pub enum Unresolved {
    /// There is no such file.
    Missing,
    /// More links than Linux follows, most likely in a circle.
    Loop,
    /// A folder on the way cannot be searched.
    Io(io::Error),
}

impl Root {
    /// The root whose files lie in `folder`, an absolute path without links.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), folders: Mutex::default() }
    }

    /// The folder itself, as this machine names it.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether it is this machine's own root.
    pub fn is_machine(&self) -> bool {
        self.folder == Path::new("/")
    }

    /// How this machine names a path that [`resolve`](Self::resolve) gave.
    pub fn outside(&self, inside: &Path) -> PathBuf {
        self.folder.join(inside.strip_prefix("/").unwrap_or(inside))
    }

    /// The inner path of a file that this machine names without links; `None` where it lies elsewhere.
    pub fn inside(&self, outside: &Path) -> Option<PathBuf> {
        Some(Path::new("/").join(outside.strip_prefix(&self.folder).ok()?))
    }

    /// The path without links of the existing file that `path` leads to.
    ///
    /// # Errors
    /// No such file, too many links, or a folder that may not be searched.
    pub fn resolve(&self, path: &Path) -> Result<PathBuf, Unresolved> {
        if path.as_os_str().len() > LONGEST {
            return Err(Unresolved::Missing);
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return self.walk(PathBuf::from("/"), path.as_os_str());
        };
        let known = self.folders.lock().ok().and_then(|folders| folders.get(parent).cloned());
        let folder = match known {
            Some(folder) => folder,
            None => {
                let found = match self.walk(PathBuf::from("/"), parent.as_os_str()) {
                    Ok(folder) => Some(folder),
                    Err(Unresolved::Missing) => None,
                    Err(other) => return Err(other),
                };
                if let Ok(mut folders) = self.folders.lock() {
                    folders.insert(parent.to_owned(), found.clone());
                }
                found
            }
        };
        self.walk(folder.ok_or(Unresolved::Missing)?, name)
    }

    /// Follows `path` from `from`, a folder without links.
    fn walk(&self, from: PathBuf, path: &OsStr) -> Result<PathBuf, Unresolved> {
        let mut at = from;
        let mut links = 0;
        // What is still to be walked, the next part last.
        let mut rest: Vec<OsString> = Vec::new();
        push(&mut rest, &mut at, Path::new(path));
        while let Some(part) = rest.pop() {
            if part == ".." {
                at.pop();
                continue;
            }
            at.push(&part);
            let outside = self.outside(&at);
            let metadata = fs::symlink_metadata(&outside).map_err(Unresolved::from)?;
            if metadata.file_type().is_symlink() {
                links += 1;
                if links > LINKS {
                    return Err(Unresolved::Loop);
                }
                let target = fs::read_link(&outside).map_err(Unresolved::from)?;
                at.pop();
                push(&mut rest, &mut at, &target);
            } else if !rest.is_empty() && !metadata.is_dir() {
                return Err(Unresolved::Missing);
            }
        }
        Ok(at)
    }

    /// Opens a regular file for reading; never a pipe, a device or a socket, which may block or act when opened.
    ///
    /// # Errors
    /// Those of [`resolve`](Self::resolve) and of the file system, and a file that is none.
    pub fn open(&self, path: &Path) -> Result<(File, Metadata), Unresolved> {
        open_regular(&self.outside(&self.resolve(path)?)).map_err(Unresolved::from)
    }

    /// The content of a regular file, if it is there, can be read and has at most `limit` bytes.
    pub fn read(&self, path: &Path, limit: u64) -> Result<Vec<u8>, Unresolved> {
        read_regular(&self.outside(&self.resolve(path)?), limit).map_err(Unresolved::from)
    }

    /// Names in a folder, sorted; nothing where it is none or cannot be read.
    pub fn list(&self, path: &Path) -> Vec<OsString> {
        let Ok(folder) = self.resolve(path) else { return Vec::new() };
        let entries = fs::read_dir(self.outside(&folder)).into_iter().flatten().flatten();
        let mut names: Vec<OsString> = entries.map(|entry| entry.file_name()).collect();
        names.sort();
        names
    }

    /// Whether `path` leads to a folder.
    pub fn is_folder(&self, path: &Path) -> bool {
        self.resolve(path).is_ok_and(|path| self.outside(&path).is_dir())
    }

    /// Whether `path` leads to a regular file.
    pub fn is_file(&self, path: &Path) -> bool {
        self.resolve(path).is_ok_and(|path| self.outside(&path).is_file())
    }
}

/// Puts the parts of `path` on top of `rest`; an absolute path begins at the root.
fn push(rest: &mut Vec<OsString>, at: &mut PathBuf, path: &Path) {
    let before = rest.len();
    for part in path.components() {
        match part {
            Component::RootDir => *at = PathBuf::from("/"),
            Component::ParentDir => rest.push("..".into()),
            Component::Normal(name) => rest.push(name.to_owned()),
            Component::CurDir | Component::Prefix(_) => {}
        }
    }
    rest[before..].reverse();
}

/// Opens a file that this machine names without links.
pub(super) fn open_regular(path: &Path) -> io::Result<(File, Metadata)> {
    // Looked at before it is opened: opening alone may block or act.
    refuse_special(&fs::metadata(path)?)?;
    let file = OpenOptions::new().read(true).custom_flags(NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    refuse_special(&metadata)?;
    Ok((file, metadata))
}

/// Reads such a file, refusing more than `limit` bytes.
pub(super) fn read_regular(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    use std::io::Read;
    let (file, metadata) = open_regular(path)?;
    let too_large = || io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {limit} bytes"));
    if metadata.len() > limit {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize + 1);
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit { Err(too_large()) } else { Ok(bytes) }
}

fn refuse_special(metadata: &Metadata) -> io::Result<()> {
    let kind = metadata.file_type();
    if kind.is_file() {
        return Ok(());
    }
    let what = if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, not a regular file")))
}

impl From<io::Error> for Unresolved {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => Self::Missing,
            _ => Self::Io(error),
        }
    }
}

impl std::fmt::Display for Unresolved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing => f.write_str("there is no such file"),
            Self::Loop => f.write_str("its links lead in a circle"),
            Self::Io(error) => error.fmt(f),
        }
    }
}

/// A path as text on one line: what is no UTF-8 becomes a replacement character, control characters are escaped.
pub fn shown(path: &Path) -> String {
    let text = String::from_utf8_lossy(path.as_os_str().as_bytes());
    if !text.contains(char::is_control) {
        return text.into_owned();
    }
    let escape = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escape).collect()
}
