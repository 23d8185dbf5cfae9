//! Takes paths, gives what the ELF files there say; no other kind of file is opened, since a fifo would never end.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::{parallel, root};
use crate::elf::{Object, Problem, ReadAt, Unreadable};

/// A regular file that is open.
#[derive(Debug)]
pub struct OpenFile {
    file: File,
    size: u64,
}

impl OpenFile {
    /// Opens a regular file.
    ///
    /// # Errors
    /// When there is none, it may not be read, or it is of another kind: a folder, a fifo, a device.
    pub fn open(path: &Path) -> io::Result<Self> {
        root::open_regular(path).map(|(file, metadata)| Self { file, size: metadata.len() })
    }
}

impl ReadAt for OpenFile {
    fn len(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(into, offset)
    }
}

/// Reads one file.
///
/// # Errors
/// When it cannot be opened, and as [`Object::read`].
pub fn read_object(path: &Path) -> Result<Object, Unreadable> {
    Object::read(&open(path)?)
}

/// Opens a file to be read as ELF.
pub(super) fn open(path: &Path) -> Result<OpenFile, Unreadable> {
    OpenFile::open(path).map_err(|error| Unreadable {
        problem: Problem::Io,
        offset: 0,
        what: format!("it cannot be opened: {error}"),
    })
}

/// Reads many files on all cores; results are in the order of the paths.
pub fn read_objects(paths: &[PathBuf]) -> Vec<Result<Object, Unreadable>> {
    let size = |path: &PathBuf| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    parallel::largest_first(parallel::threads(None), paths, size, |path| read_object(path))
}
