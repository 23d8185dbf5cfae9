//! A captured machine in one file: a tar archive, compressed or not, whose small files are all kept.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use super::cache::Cache;
use super::fault::Fault;
use super::keep::Kept;
use super::layer::{self, Limits, decompressed};
use super::tar::Source;
use super::{Tree, open_regular};
use crate::diag::{Diagnostic, Evidence, Failure};
use crate::inventory::shown;

/// What such a file may unpack to, in bytes: a thousand times what one has.
const LARGEST: u64 = 256_000_000;

/// Reads the file at `path`, which the user named `given`.
///
/// # Errors
/// A file that cannot be read, is no such archive, or unpacks to more than is believed.
pub fn captured(given: &str, path: &Path) -> Result<Arc<Tree>, Failure> {
    let read = open_regular(path).map_err(Fault::Read).and_then(|(file, _)| tree(file));
    read.map(Arc::new).map_err(|fault| {
        let name = shown(Path::new(given));
        let (code, message, fix) = match &fault {
            Fault::Read(_) => ("cannot-read", format!("{name} cannot be read: {fault}"), "name a file that is there"),
            Fault::Spool(_) => (
                "cannot-write",
                format!("what is kept of {name} cannot be written: {fault}"),
                "make room in the folder for temporary files (TMPDIR)",
            ),
            _ => (
                "capture-unreadable",
                format!("{name} is no captured machine: {fault}"),
                "capture it again: gpulock doctor --capture FILE",
            ),
        };
        let seen = Evidence::observed(name, shown(Path::new(&fault.to_string())));
        Failure::unanswerable(Diagnostic::error(code, shown(Path::new(&message)), seen).fix(fix))
    })
}

fn tree(file: File) -> Result<Tree, Fault> {
    let (cache, limits) = (Cache::new(None), Limits::new(LARGEST));
    let mut packed = BufReader::with_capacity(256 << 10, file);
    let mut stream = Counted { inner: decompressed(&mut packed)?, left: LARGEST };
    let mut new = cache.create().map_err(Fault::Spool)?;
    if !layer::entries(&mut stream, &mut new, "", &limits, Kept::AllSmall)? {
        return Err(Fault::broken("it was cut: the end of the archive is missing".into()));
    }
    let (store, index) = cache.finish(new, "")?;
    if !index.entries.iter().any(|entry| is_of_machine(&entry.path.0)) {
        return Err(Fault::broken("it has nothing of a machine: no proc, sys or gpulock".into()));
    }
    let mut tree = Tree::new();
    tree.apply(Arc::new(store), index.entries, &limits)?;
    Ok(tree)
}

/// Whether an entry lies in a folder of which a captured machine has one at least.
fn is_of_machine(path: &[u8]) -> bool {
    let path = path.strip_prefix(b".").unwrap_or(path);
    let path = path.strip_prefix(b"/").unwrap_or(path);
    [&b"proc"[..], b"sys", b"gpulock"].contains(&path.split(|byte| *byte == b'/').next().unwrap_or_default())
}

/// Reads so much and no more.
struct Counted<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(into)?;
        self.left = self.left.checked_sub(count as u64).ok_or_else(|| {
            io::Error::new(io::ErrorKind::FileTooLarge, format!("it unpacks to more than {} MB", LARGEST / 1_000_000))
        })?;
        Ok(count)
    }
}

impl<R: Read> Source for Counted<R> {}
