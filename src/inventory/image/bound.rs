//! Where a blob ends: takes one and whoever brings it, gives its bytes, and a fault where more come than there are to be.
//! What is no layer is small.

use std::io::{self, Read};

use super::fault::Fault;
use super::{Blob, Blobs};

/// Registries take manifests of at least 4 MiB (OCI distribution specification); larger ones are none, in bytes.
pub(super) const LARGEST: u64 = 4 << 20;

/// All bytes of a reader; `None` where there are more than [`LARGEST`].
pub(super) fn small(reader: impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    reader.take(LARGEST + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= LARGEST))
}

/// That there are more.
pub(super) fn too_large(what: &str) -> Fault {
    Fault::broken(format!("{what} has more than {LARGEST} bytes"))
}

/// A reader that fails where it should end and does not.
struct Bound<'b> {
    inner: Box<dyn Read + Send + 'b>,
    left: u64,
    /// What it should have ended after.
    end: String,
}

/// Opens a blob. It has the size that its manifest says, or at most `most` bytes.
///
/// # Errors
/// As [`Blobs::open`]; a blob that is said to be larger than `most`.
pub(super) fn open<'b>(blobs: &'b dyn Blobs, blob: &Blob, most: u64) -> Result<Box<dyn Read + Send + 'b>, Fault> {
    let (left, end) = match blob.size {
        Some(size) if size > most => {
            return Err(Fault::TooLarge(format!("{} has {size} bytes, more than {most}", blob.words())));
        }
        Some(size) => (size, format!("the {size} bytes that its manifest says")),
        None => (most, format!("{most} bytes")),
    };
    Ok(Box::new(Bound { inner: blobs.open(blob)?, left, end }))
}

impl Read for Bound<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        if self.left == 0 {
            return match self.inner.read(&mut [0])? {
                0 => Ok(0),
                _ => Err(io::Error::other(format!("it does not end after {}", self.end))),
            };
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(into.len());
        let count = self.inner.read(&mut into[..most])?;
        self.left -= count as u64;
        Ok(count)
    }
}
