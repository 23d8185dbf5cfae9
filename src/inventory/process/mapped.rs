//! Which file a mapping is of: takes what the kernel says of it, gives the file that the process has, read as the process
//! has it.
//!
//! A path alone does not say: the file of that name may be another by now, in another mount namespace, or end in
//! ` (deleted)` itself. `/proc/PID/map_files` leads to the very file that is mapped, where the kernel lets one through.

use std::fs::{self, Metadata};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::super::Root;
use super::maps::MappedText;

/// What follows the path of a file that has lost its name.
const DELETED: &[u8] = b" (deleted)";

/// A file that is mapped.
#[derive(Debug, Clone)]
pub(super) struct MappedFile {
    /// Inside the root of the process, without ` (deleted)`.
    pub path: PathBuf,
    /// The file that this machine opens to read what is mapped; `None` where it has no name left and the kernel does not
    /// let one through.
    pub content: Option<(PathBuf, Metadata)>,
    /// Whether the file of that path is no longer this one.
    pub deleted: bool,
    /// Whether it came to be initialised, as far as that is known.
    pub ready: bool,
}

/// The file behind a mapping; `folder` is that of the process, `seen_root` its root folder as this machine names it.
pub(super) fn find(text: &MappedText<'_>, folder: &Path, root: &Root, seen_root: &Path) -> MappedFile {
    let (begin, end) = text.range;
    let link = folder.join("map_files").join(format!("{begin:x}-{end:x}"));
    // The link has the path without escapes.
    let written = fs::read_link(&link).map(|path| path.into_os_string().into_vec());
    let written = written.unwrap_or_else(|_| unescaped(text, root, seen_root));
    let behind = fs::metadata(&link).ok().filter(Metadata::is_file);
    let at = |path: &[u8]| {
        let path = inside(path, seen_root);
        let outside = root.outside(&root.resolve(&path).ok()?)?;
        let metadata = fs::metadata(&outside).ok().filter(Metadata::is_file)?;
        Some((outside, metadata))
    };
    let is_it = |found: &(PathBuf, Metadata)| match &behind {
        Some(behind) => same(behind, &found.1),
        None => found.1.ino() == text.inode,
    };
    let stripped = written.strip_suffix(DELETED);
    let found = at(&written);
    if stripped.is_none() || found.as_ref().is_some_and(is_it) {
        // Without a way to the file itself, the file of that name is the best that is known: file systems in layers
        // number their files anew.
        let deleted = behind.is_some() && !found.as_ref().is_some_and(is_it);
        let content = if deleted { behind.map(|metadata| (link, metadata)) } else { found };
        return MappedFile { path: inside(&written, seen_root), content, deleted, ready: true };
    }
    let path = inside(stripped.unwrap_or(&written), seen_root);
    MappedFile { path, content: behind.map(|metadata| (link, metadata)), deleted: true, ready: true }
}

/// Whether two looks at files are looks at one. Layered file systems number a file in two ways; then its size and the
/// time of its last change tell.
fn same(mapped: &Metadata, named: &Metadata) -> bool {
    let number = |metadata: &Metadata| (metadata.dev(), metadata.ino());
    let state = |metadata: &Metadata| (metadata.len(), metadata.mtime(), metadata.mtime_nsec());
    number(mapped) == number(named) || mapped.dev() != named.dev() && state(mapped) == state(named)
}

/// The path as the process has it: what this machine sees of a process in another root begins with that root.
fn inside(path: &[u8], seen_root: &Path) -> PathBuf {
    let path = Path::new(std::ffi::OsStr::from_bytes(path));
    match path.strip_prefix(seen_root) {
        Ok(below) => Path::new("/").join(below),
        Err(_) => path.to_owned(),
    }
}

/// The path in the text: `\012` is a line break, unless the name has just that in it.
fn unescaped(text: &MappedText<'_>, root: &Root, seen_root: &Path) -> Vec<u8> {
    const ESCAPE: &[u8] = b"\\012";
    if memchr::memmem::find(text.path, ESCAPE).is_none() || root.is_file(&inside(text.path, seen_root)) {
        return text.path.to_vec();
    }
    let mut path = Vec::with_capacity(text.path.len());
    let mut rest = text.path;
    while let Some(at) = memchr::memmem::find(rest, ESCAPE) {
        path.extend_from_slice(&rest[..at]);
        path.push(b'\n');
        rest = &rest[at + ESCAPE.len()..];
    }
    path.extend_from_slice(rest);
    path
}
