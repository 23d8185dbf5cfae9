//! Takes paths, gives what the ELF files there say; no other kind of file is opened, since a fifo would never end.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::image::KeptFile;
use super::{parallel, root};
use crate::elf::{Object, Problem, ReadAt, Unreadable};

/// A regular file that is open.
#[derive(Debug)]
pub struct OpenFile {
    content: Content,
    size: u64,
}

#[derive(Debug)]
enum Content {
    File(File),
    /// What was kept of a file of an image.
    Kept(KeptFile),
}

impl OpenFile {
    /// Opens a regular file.
    ///
    /// # Errors
    /// When there is none, it may not be read, or it is of another kind: a folder, a fifo, a device.
    pub fn open(path: &Path) -> io::Result<Self> {
        root::open_regular(path).map(|(file, metadata)| Self { content: Content::File(file), size: metadata.len() })
    }

    pub(super) fn of_image(kept: KeptFile) -> Self {
        Self { size: kept.len(), content: Content::Kept(kept) }
    }

    /// SHA-256, where it was taken when an image was read.
    pub(super) fn known_sha256(&self) -> Option<[u8; 32]> {
        match &self.content {
            Content::File(_) => None,
            Content::Kept(kept) => kept.sha256(),
        }
    }

    /// Reads it from its beginning on.
    pub(super) fn reader(&self) -> impl Read + '_ {
        Reader { file: self, at: 0 }
    }
}

impl ReadAt for OpenFile {
    fn len(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        match &self.content {
            Content::File(file) => file.read_at(into, offset),
            Content::Kept(kept) => kept.read_at(offset, into),
        }
    }
}

struct Reader<'a> {
    file: &'a OpenFile,
    at: u64,
}

impl Read for Reader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(self.at, into)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// Reads one file.
///
/// # Errors
/// When it cannot be opened, and as [`Object::read`].
pub fn read_object(path: &Path) -> Result<Object, Unreadable> {
    Object::read(&OpenFile::open(path).map_err(unopened)?)
}

/// That a file cannot be opened to be read as ELF.
pub(super) fn unopened(error: io::Error) -> Unreadable {
    Unreadable { problem: Problem::Io, offset: 0, what: format!("it cannot be opened: {error}") }
}

/// Reads many files on all cores; results are in the order of the paths.
pub fn read_objects(paths: &[PathBuf]) -> Vec<Result<Object, Unreadable>> {
    let size = |path: &PathBuf| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    parallel::largest_first(parallel::threads(None), paths, size, |path| read_object(path))
}
