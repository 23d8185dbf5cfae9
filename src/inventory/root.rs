//! Paths inside a root folder: takes a path as a process of that root would write it, gives the file it leads to.
//!
//! Links are followed as after `chroot`: an absolute link stays inside, and `..` above the root is the root
//! (path_resolution(7)).

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::file::OpenFile;
use super::image::Tree;
use crate::elf::ReadAt as _;

/// As many links as Linux follows on the way to one file (MAXSYMLINKS).
const LINKS: usize = 40;
/// Longer paths do not exist under Linux, in bytes (PATH_MAX).
const LONGEST: usize = 4096;
/// Opening must not wait for a writer, should a file have become a pipe meanwhile, nor reading for more (O_NONBLOCK).
pub(super) const NONBLOCK: i32 = if cfg!(target_os = "linux") { 0o4000 } else { 0x4 };

/// A folder that is `/` to what lies in it, `/` itself for this machine, or the files of an image.
#[derive(Debug)]
pub struct Root {
    files: Files,
    /// Folders by the path that was asked for; `None` for those that do not exist.
    folders: Mutex<HashMap<PathBuf, Option<PathBuf>>>,
}

/// Where the files are.
#[derive(Debug)]
enum Files {
    /// Below a folder of this machine.
    Folder(PathBuf),
    /// In an image.
    Image(Arc<Tree>),
}

/// What kind of thing a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device.
    Device,
}

impl FileKind {
    /// With its article, as messages have it.
    pub fn words(self) -> &'static str {
        match self {
            Self::File => "a file",
            Self::Folder => "a folder",
            Self::Link => "a link",
            Self::Pipe => "a named pipe",
            Self::Socket => "a socket",
            Self::Device => "a device",
        }
    }
}

impl From<FileType> for FileKind {
    fn from(kind: FileType) -> Self {
        match () {
            () if kind.is_file() => Self::File,
            () if kind.is_dir() => Self::Folder,
            () if kind.is_symlink() => Self::Link,
            () if kind.is_fifo() => Self::Pipe,
            () if kind.is_socket() => Self::Socket,
            () => Self::Device,
        }
    }
}

/// What is known of a path without opening it.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// What it is.
    pub kind: FileKind,
    /// Size in bytes.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// Device and inode.
    pub inode: (u64, u64),
}

impl From<Metadata> for Look {
    fn from(metadata: Metadata) -> Self {
        Self {
            kind: metadata.file_type().into(),
            size: metadata.len(),
            mode: metadata.mode(),
            inode: (metadata.dev(), metadata.ino()),
        }
    }
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
        Self { files: Files::Folder(folder.into()), folders: Mutex::default() }
    }

    /// The root that an image's files make up.
    pub(super) fn of_image(tree: Arc<Tree>) -> Self {
        Self { files: Files::Image(tree), folders: Mutex::default() }
    }

    /// The files of the image that it is, if it is one.
    pub fn image(&self) -> Option<&Tree> {
        match &self.files {
            Files::Folder(_) => None,
            Files::Image(tree) => Some(tree),
        }
    }

    /// What lies at `path`, itself a link or not; the folders on the way are no links.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn look(&self, path: &Path) -> io::Result<Look> {
        match &self.files {
            Files::Folder(folder) => fs::symlink_metadata(outside(folder, path)).map(Look::from),
            Files::Image(tree) => tree.look(path),
        }
    }

    /// What the link at `path` names.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        match &self.files {
            Files::Folder(folder) => fs::read_link(outside(folder, path)),
            Files::Image(tree) => tree.read_link(path),
        }
    }

    /// What lies in the folder at `path`, which [`resolve`](Self::resolve) gave, with what each is; in no order.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn entries(&self, path: &Path) -> io::Result<Vec<(OsString, FileKind)>> {
        match &self.files {
            Files::Folder(folder) => fs::read_dir(outside(folder, path))?
                .map(|entry| entry.and_then(|entry| Ok((entry.file_name(), entry.file_type()?.into()))))
                .collect(),
            Files::Image(tree) => tree.entries(path),
        }
    }

    /// Opens the regular file at `path`, which [`resolve`](Self::resolve) gave; never a pipe, a device or a socket, which
    /// may block or act when opened.
    ///
    /// # Errors
    /// Those of the file system, and a file that is none.
    pub fn open_resolved(&self, path: &Path) -> io::Result<OpenFile> {
        match &self.files {
            Files::Folder(folder) => OpenFile::open(&outside(folder, path)),
            Files::Image(tree) => tree.open(path),
        }
    }

    /// How this machine names a path that [`resolve`](Self::resolve) gave; `None` for what lies in an image.
    pub(super) fn outside(&self, inside: &Path) -> Option<PathBuf> {
        match &self.files {
            Files::Folder(folder) => Some(outside(folder, inside)),
            Files::Image(_) => None,
        }
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
            let kind = self.look(&at).map_err(Unresolved::from)?.kind;
            if kind == FileKind::Link {
                links += 1;
                if links > LINKS {
                    return Err(Unresolved::Loop);
                }
                let target = self.read_link(&at).map_err(Unresolved::from)?;
                at.pop();
                push(&mut rest, &mut at, &target);
            } else if !rest.is_empty() && kind != FileKind::Folder {
                return Err(Unresolved::Missing);
            }
        }
        Ok(at)
    }

    /// Opens the regular file that `path` leads to.
    ///
    /// # Errors
    /// Those of [`resolve`](Self::resolve) and of [`open_resolved`](Self::open_resolved).
    pub fn open(&self, path: &Path) -> Result<OpenFile, Unresolved> {
        self.open_resolved(&self.resolve(path)?).map_err(Unresolved::from)
    }

    /// The content of a regular file, if it is there, can be read and has at most `limit` bytes.
    pub fn read(&self, path: &Path, limit: u64) -> Result<Vec<u8>, Unresolved> {
        read(&self.open(path)?, limit).map_err(Unresolved::from)
    }

    /// Names in a folder, sorted; nothing where it is none or cannot be read.
    pub fn list(&self, path: &Path) -> Vec<OsString> {
        let Ok(folder) = self.resolve(path) else { return Vec::new() };
        let entries = self.entries(&folder).unwrap_or_default();
        let mut names: Vec<OsString> = entries.into_iter().map(|(name, _)| name).collect();
        names.sort();
        names
    }

    /// What `path` leads to.
    fn kind(&self, path: &Path) -> Option<FileKind> {
        Some(self.look(&self.resolve(path).ok()?).ok()?.kind)
    }

    /// Whether `path` leads to a folder.
    pub fn is_folder(&self, path: &Path) -> bool {
        self.kind(path) == Some(FileKind::Folder)
    }

    /// Whether `path` leads to a regular file.
    pub fn is_file(&self, path: &Path) -> bool {
        self.kind(path) == Some(FileKind::File)
    }
}

/// How this machine names a path inside `folder`.
fn outside(folder: &Path, inside: &Path) -> PathBuf {
    folder.join(inside.strip_prefix("/").unwrap_or(inside))
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
    read(&OpenFile::open(path)?, limit)
}

/// Reads all of a file, refusing more than `limit` bytes.
fn read(file: &OpenFile, limit: u64) -> io::Result<Vec<u8>> {
    let too_large = || io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {limit} bytes"));
    if file.len() > limit {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(file.len() as usize + 1);
    file.reader().take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit { Err(too_large()) } else { Ok(bytes) }
}

fn refuse_special(metadata: &Metadata) -> io::Result<()> {
    match FileKind::from(metadata.file_type()) {
        FileKind::File => Ok(()),
        other => Err(not_a_file(other)),
    }
}

/// What opening anything but a regular file says.
pub(super) fn not_a_file(kind: FileKind) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("it is {}, not a regular file", kind.words()))
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
