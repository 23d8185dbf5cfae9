//! Where what is kept of layers stays: takes a layer's digest, gives a file to write to or the one that is there.
//!
//! `images-v1/<digest>` in the cache folder. A file gets its name once it is whole, and until then is locked by the
//! process that writes it: what has no lock was left behind, and is removed. A folder that cannot be written only makes
//! the next run slower.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::store::{Index, Store};

/// Changes with what is kept of a layer, and with how; what another release kept may not be what this one asks for.
const FOLDER: &str = concat!("images-v1-", env!("CARGO_PKG_VERSION"));
/// What a file is called until it is whole.
const UNFINISHED: &str = ".new-";

/// The folder of stores.
#[derive(Debug)]
pub(super) struct Cache {
    /// Absent where none is wanted.
    folder: Option<PathBuf>,
}

/// A store that is being written.
pub(super) enum New {
    /// In the cache, under a name of its own.
    Named(NamedTempFile),
    /// Without a name: it vanishes with the process.
    Nameless(File),
}

impl Cache {
    /// The stores below a cache folder; removes what processes left behind that were killed.
    pub(super) fn new(folder: Option<&Path>) -> Self {
        let folder = folder.map(|folder| folder.join(FOLDER));
        if let Some(folder) = &folder {
            sweep(folder);
        }
        Self { folder }
    }

    /// The store of a layer, if it is there and whole.
    pub(super) fn get(&self, digest: &str) -> Option<(Store, Index)> {
        let path = self.path(digest)?;
        let file = File::open(&path).ok()?;
        let store = Store::open(file);
        if store.is_none() {
            // Damaged on the disk.
            let _ = fs::remove_file(&path);
        }
        store
    }

    /// A file for the store of a layer.
    ///
    /// # Errors
    /// Only where temporary files cannot be made either.
    pub(super) fn create(&self) -> io::Result<New> {
        let named = self.folder.as_ref().and_then(|folder| {
            fs::create_dir_all(folder).ok()?;
            let file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder).ok()?;
            file.as_file().try_lock().ok()?;
            Some(file)
        });
        match named {
            Some(file) => Ok(New::Named(file)),
            None => tempfile::tempfile().map(New::Nameless),
        }
    }

    /// Gives a store its name, and opens it; `None` if it cannot be read back.
    pub(super) fn finish(&self, new: New, digest: &str) -> Option<(Store, Index)> {
        let file = match (new, self.path(digest)) {
            (New::Named(file), Some(path)) => match file.persist(&path) {
                Ok(file) => file,
                // Removed or moved meanwhile; the file is open all the same.
                Err(error) => error.file.into_file(),
            },
            (New::Named(file), None) => file.into_file(),
            (New::Nameless(file), _) => file,
        };
        // Whole, and read by others as it is from now on.
        let _ = file.unlock();
        Store::open(file)
    }

    fn path(&self, digest: &str) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(digest.replace(':', "-")))
    }
}

impl New {
    pub(super) fn file(&self) -> &File {
        match self {
            Self::Named(file) => file.as_file(),
            Self::Nameless(file) => file,
        }
    }
}

/// Removes unfinished files that no process holds.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            continue;
        }
        // One that was just made and is not locked yet may go too: its process does without a name then.
        let left = File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok());
        if left {
            let _ = fs::remove_file(entry.path());
        }
    }
}
