//! Where what is kept of layers stays: takes a layer's digest, gives a file to write to or the one that is there.
//!
//! `images-v2-<release>/<digest>` in the cache folder. A file gets its name once it is whole, and until then is locked by the
//! process that writes it: what has no lock was left behind, and is removed. A folder that cannot be written, or has
//! no room, only makes the next run slower.
//!
//! A run that added a store removes those that nobody used for a month, and the longest unused of what is more than the
//! folder may hold. Who reads one meanwhile has it open, and goes on reading it.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use tempfile::NamedTempFile;

use super::fault::Fault;
use super::store::{FORMAT, Index, Store};
use crate::inventory::root::open_regular;

/// The folder of this release's stores.
const FOLDER: &str = FORMAT;
/// How the folders of all releases begin.
const FOLDERS: &str = "images-v";
/// Stores that were not used for so long are removed.
const UNUSED: Duration = Duration::from_secs(30 * 24 * 3600);
/// A use is noted if the last was longer ago.
const NOTED: Duration = Duration::from_secs(24 * 3600);
/// What all stores together may take on the disk, in bytes.
const MOST: u64 = 4_000_000_000;
/// What a file is called until it is whole.
const UNFINISHED: &str = ".new-";

/// The folder of stores.
#[derive(Debug)]
pub(super) struct Cache {
    /// Absent where none is wanted.
    folder: Option<PathBuf>,
    /// A store got its name in this run.
    added: AtomicBool,
}

impl Drop for Cache {
    fn drop(&mut self) {
        if let Some(root) = self.folder.as_ref().and_then(|folder| folder.parent())
            && *self.added.get_mut()
        {
            bound(root, SystemTime::now(), MOST);
        }
    }
}

/// A store that is being written.
pub(super) struct New {
    file: Place,
    /// How much of it is written.
    at: u64,
}

/// Where a store is written to.
enum Place {
    /// In the cache, under a name of its own.
    Named(NamedTempFile),
    /// In the folder for temporary files without a name: it vanishes with the process.
    Nameless(File),
}

impl Write for New {
    /// Goes on in the folder for temporary files where the cache takes no more.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.file {
            Place::Nameless(file) => file.write(bytes)?,
            Place::Named(file) => match file.write(bytes) {
                Ok(written) => written,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
                Err(_) => {
                    let mut other = tempfile::tempfile()?;
                    let begun = file.as_file_mut();
                    begun.seek(SeekFrom::Start(0))?;
                    io::copy(&mut begun.take(self.at), &mut other)?;
                    let written = other.write(bytes)?;
                    self.file = Place::Nameless(other);
                    written
                }
            },
        };
        self.at += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Cache {
    /// The stores below a cache folder; removes what processes left behind that were killed.
    pub(super) fn new(folder: Option<&Path>) -> Self {
        let folder = folder.map(|folder| folder.join(FOLDER));
        if let Some(folder) = &folder {
            sweep(folder);
        }
        Self { folder, added: AtomicBool::new(false) }
    }

    /// The store of a layer, if it is there and whole.
    pub(super) fn get(&self, digest: &str) -> Option<(Store, Index)> {
        let path = self.path(digest)?;
        // What is no file is left alone, and not waited for.
        let (file, _) = open_regular(&path).ok()?;
        note_use(&file);
        let store = Store::open(file, digest);
        if store.is_none() {
            // Damaged on the disk, or put there by somebody else.
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
        let file = named.map_or_else(|| tempfile::tempfile().map(Place::Nameless), |file| Ok(Place::Named(file)))?;
        Ok(New { file, at: 0 })
    }

    /// Gives a store its name, and opens it.
    ///
    /// # Errors
    /// One that cannot be read back.
    pub(super) fn finish(&self, new: New, digest: &str) -> Result<(Store, Index), Fault> {
        let folder = match (&new.file, &self.folder) {
            (Place::Named(_), Some(folder)) => folder.clone(),
            _ => std::env::temp_dir(),
        };
        let file = match (new.file, self.path(digest)) {
            (Place::Named(file), Some(path)) => match file.persist(&path) {
                Ok(file) => {
                    self.added.store(true, Ordering::Relaxed);
                    file
                }
                // Removed or moved meanwhile; the file is open all the same.
                Err(error) => error.file.into_file(),
            },
            (Place::Named(file), None) => file.into_file(),
            (Place::Nameless(file), _) => file,
        };
        // Whole, and read by others as it is from now on.
        let _ = file.unlock();
        Store::open(file, digest).ok_or(Fault::Lost(folder))
    }

    fn path(&self, digest: &str) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(digest.replace(':', "-")))
    }
}

/// Removes unfinished files that no process holds.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            continue;
        }
        // One that was just made and is not locked yet may go too: its process does without a name then.
        let left = open_regular(&entry.path()).is_ok_and(|(file, _)| file.try_lock().is_ok());
        if left {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The time of a store is that of its last use.
fn note_use(file: &File) {
    let now = SystemTime::now();
    let used = file.metadata().and_then(|metadata| metadata.modified());
    if used.is_ok_and(|used| now.duration_since(used).is_ok_and(|age| age > NOTED)) {
        // In a folder of somebody else it stays as it is.
        let _ = file.set_modified(now);
    }
}

/// Removes stores that are not used any more, and of the others the longest unused beyond `most` bytes.
fn bound(root: &Path, now: SystemTime, most: u64) {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let named = |entry: &fs::DirEntry, begin: &str| entry.file_name().to_string_lossy().starts_with(begin);
    let mut stores: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
    for folder in entries(root).filter(|entry| named(entry, FOLDERS)) {
        for entry in entries(&folder.path()).filter(|entry| !named(entry, UNFINISHED)) {
            let Ok(metadata) = entry.metadata() else { continue };
            if let Some(used) = metadata.modified().ok().filter(|_| metadata.is_file()) {
                stores.push((used, metadata.len(), entry.path()));
            }
        }
    }
    // The last used first; a time in the future comes from a wrong clock.
    stores.sort_by(|a, b| b.cmp(a));
    let mut kept = 0;
    for (used, size, path) in stores {
        let unused = now.duration_since(used).is_ok_and(|age| age > UNUSED);
        if unused || kept + size > most {
            let _ = fs::remove_file(path);
        } else {
            kept += size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn store(root: &Path, name: &str, size: u64, days: u32, now: SystemTime) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let file = File::create(path).unwrap();
        file.set_len(size).unwrap();
        file.set_modified(now - DAY * days).unwrap();
    }

    fn left(root: &Path) -> Vec<String> {
        let folders = fs::read_dir(root).unwrap().flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
        let mut names: Vec<String> = folders.map(|one| one.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_not_used_goes() {
        let root = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        for (name, size, days) in [
            ("images-v1-0.1.0/now", 10, 0),
            ("images-v1-0.1.0/week", 10, 7),
            ("images-v1-0.1.0/month", 10, 31),
            ("images-v1-0.1.0/.new-x", 10, 31),
            ("images-v0-0.0.9/older", 10, 20),
            ("images-v0-0.0.9/oldest", 10, 99),
            ("v2/page", 10, 99),
        ] {
            store(root.path(), name, size, days, now);
        }
        let open = File::open(root.path().join("images-v1-0.1.0/month")).unwrap();
        bound(root.path(), now, 1000);
        assert_eq!(left(root.path()), [".new-x", "now", "older", "page", "week"]);
        assert_eq!(open.metadata().unwrap().len(), 10);
        bound(root.path(), now, 25);
        assert_eq!(left(root.path()), [".new-x", "now", "page", "week"]);
        // One that is larger than all may be is not kept, and takes no other with it.
        store(root.path(), "images-v1-0.1.0/huge", 26, 0, now);
        bound(root.path(), now, 25);
        assert_eq!(left(root.path()), [".new-x", "now", "page", "week"]);
    }

    #[test]
    fn a_use_is_noted() {
        let root = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        store(root.path(), "images-v1/x", 1, 29, now);
        note_use(&File::open(root.path().join("images-v1/x")).unwrap());
        bound(root.path(), now + DAY * 2, 1000);
        assert_eq!(left(root.path()), ["x"]);
        bound(root.path(), now + DAY * 40, 1000);
        assert!(left(root.path()).is_empty());
    }

    #[test]
    fn a_run_that_adds_a_store_removes_others() {
        let root = tempfile::tempdir().unwrap();
        store(root.path(), &format!("{FOLDER}/old"), 1, 99, SystemTime::now());
        let cache = Cache::new(Some(root.path()));
        drop(cache);
        assert_eq!(left(root.path()), ["old"]);
        let cache = Cache::new(Some(root.path()));
        let new = cache.create().unwrap();
        // No store, but a file all the same.
        let _ = cache.finish(new, "sha256:00");
        drop(cache);
        assert_eq!(left(root.path()), ["sha256-00"]);
    }

    #[test]
    fn where_the_cache_takes_no_more_it_goes_on_elsewhere() {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(root.path()));
        let mut new = cache.create().unwrap();
        new.write_all(b"begun, ").unwrap();
        let Place::Named(file) = new.file else { panic!("the cache is not used") };
        // What is open for reading takes nothing.
        let (_, path) = file.into_parts();
        new.file = Place::Named(NamedTempFile::from_parts(File::open(&path).unwrap(), path));
        new.write_all(b"gone on with, ").unwrap();
        new.write_all(b"done").unwrap();
        let Place::Nameless(mut file) = new.file else { panic!("it is still in the cache") };
        file.seek(SeekFrom::Start(0)).unwrap();
        assert_eq!(io::read_to_string(file).unwrap(), "begun, gone on with, done");
        assert!(left(root.path()).is_empty());
    }
}
