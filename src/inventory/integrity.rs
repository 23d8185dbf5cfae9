//! Whether files are the ones that were recorded: takes paths with sizes and sha256, gives a verdict on each.
//!
//! All cores hash, each one file at a time, with the processor's own instructions where it has them.

use std::io::Read;
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use super::{Root, Unresolved, parallel};
use crate::elf::ReadAt as _;

/// What a file must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// The file, inside the root.
    pub path: PathBuf,
    /// Size in bytes, where known: one that differs spares the hashing.
    pub size: Option<u64>,
    /// SHA-256.
    pub sha256: [u8; 32],
}

/// What a file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The expected one.
    Same,
    /// Not there.
    Missing,
    /// Of another size, in bytes.
    Size(u64),
    /// Of other content, with this sha256.
    Content([u8; 32]),
    /// Not readable, and why.
    Unreadable(String),
}

/// Read at a time, in bytes: fits the second-level cache.
const PART: usize = 256 << 10;

/// Judges the files, in their order, on at most `jobs` threads; as many as there are cores when absent.
pub fn verify(root: &Root, files: &[Expected], jobs: Option<usize>) -> Vec<Verdict> {
    parallel::largest_first(parallel::threads(jobs), files, |file| size(root, file), |file| judge(root, file))
}

fn size(root: &Root, file: &Expected) -> u64 {
    root.resolve(&file.path).ok().and_then(|path| root.look(&path).ok()).map_or(0, |look| look.size)
}

fn judge(root: &Root, expected: &Expected) -> Verdict {
    let file = match root.open(&expected.path) {
        Ok(open) => open,
        Err(Unresolved::Missing) => return Verdict::Missing,
        Err(other) => return Verdict::Unreadable(other.to_string()),
    };
    if expected.size.is_some_and(|size| size != file.len()) {
        return Verdict::Size(file.len());
    }
    if let Some(known) = file.known_sha256() {
        return if known == expected.sha256 { Verdict::Same } else { Verdict::Content(known) };
    }
    let mut reader = file.reader();
    let mut hash = Sha256::new();
    let mut part = vec![0; PART];
    // A file that grows while it is read must not be read for ever.
    let mut left = file.len();
    while left > 0 {
        match reader.read(&mut part) {
            Ok(0) => break,
            Ok(count) => {
                hash.update(&part[..count]);
                left = left.saturating_sub(count as u64);
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Verdict::Unreadable(error.to_string()),
        }
    }
    let found: [u8; 32] = hash.finalize().into();
    if found == expected.sha256 { Verdict::Same } else { Verdict::Content(found) }
}
