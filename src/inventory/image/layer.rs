//! One pass over a layer: takes its bytes as they come, gives what is kept of it.
//!
//! One thread reads, hashes and decompresses; another takes the archive apart and keeps what matters. Between them are a
//! few buffers, so that memory does not depend on the layer's size.

use std::io::{self, BufReader, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use data_encoding::HEXLOWER;
use flate2::bufread::MultiGzDecoder;
use sha2::{Digest, Sha256};

use super::bytes::Bytes;
use super::cache::New;
use super::fault::Fault;
use super::keep::{self, Kept};
use super::store::{Item, Writer};
use super::tar::{Kind, Source, Tar};

/// Bytes of a buffer, and how many there are between the threads.
const PART: usize = 512 << 10;
const PARTS: usize = 4;
/// The largest window of zstd that is accepted, as a power of two: what `zstd -d` accepts without being told to.
const LARGEST_WINDOW: u32 = 27;

/// What may be unpacked of all layers together.
#[derive(Debug)]
pub(super) struct Limits {
    bytes: u64,
    unpacked: AtomicU64,
    most_entries: u64,
    entries: AtomicU64,
    most_names: u64,
    names: AtomicU64,
}

/// Entries of all layers together; the largest images have a tenth.
const MOST_ENTRIES: u64 = 4_000_000;
/// For so many entries there may be one folder that is none.
const FOLDERS: u64 = 8;
/// Bytes of their names and of what links name, which are held in memory; the largest images have a fifth.
const MOST_NAMES: u64 = 200_000_000;

impl Limits {
    /// Limits for images that unpack to `bytes`. Where that is more than usual, so are the others.
    pub(super) fn new(bytes: u64) -> Self {
        let scaled = |usual: u64| usual.max(bytes / (super::MOST_UNPACKED / usual));
        Self {
            bytes,
            unpacked: AtomicU64::new(0),
            most_entries: scaled(MOST_ENTRIES),
            entries: AtomicU64::new(0),
            most_names: scaled(MOST_NAMES),
            names: AtomicU64::new(0),
        }
    }

    /// What is too much of an image that may unpack to so much.
    fn usual(&self, what: &str) -> String {
        format!("{what}, the most of an image of {} GB", self.bytes.max(super::MOST_UNPACKED) / 1_000_000_000)
    }

    /// What all layers together may unpack to, and a blob have, in bytes.
    pub(super) fn most_bytes(&self) -> u64 {
        self.bytes
    }

    /// Counts bytes that were unpacked or that a file claims to have.
    pub(super) fn bytes(&self, count: u64) -> Result<(), Fault> {
        let before = self.unpacked.fetch_add(count.min(1 << 62), Ordering::Relaxed);
        match before.saturating_add(count) > self.bytes {
            true => Err(Fault::TooLarge(format!("more than {} GB unpacked", self.bytes / 1_000_000_000))),
            false => Ok(()),
        }
    }

    /// Counts an entry with names of so many bytes.
    pub(super) fn entry(&self, names: usize) -> Result<(), Fault> {
        let (most, names) = (self.most_names, names as u64);
        if self.names.fetch_add(names, Ordering::Relaxed).saturating_add(names) > most {
            return Err(Fault::TooLarge(
                self.usual(&format!("the names of its entries take more than {} MB", most / 1_000_000)),
            ));
        }
        match self.entries.fetch_add(1, Ordering::Relaxed) >= self.most_entries {
            true => Err(Fault::TooLarge(self.usual(&format!("more than {} entries", self.most_entries)))),
            false => Ok(()),
        }
    }

    /// Counts the entries of a layer that was read before.
    pub(super) fn again(&self, entries: &[Item]) -> Result<(), Fault> {
        entries.iter().try_for_each(|item| self.entry(item.path.0.len() + item.target.0.len()))
    }

    /// Whether there may be so many folders that no entry is.
    pub(super) fn folders(&self, count: u64) -> Result<(), Fault> {
        let most = self.most_entries / FOLDERS;
        match count > most {
            true => Err(Fault::TooLarge(
                self.usual(&format!("its entries lie in more than {most} folders that are no entries")),
            )),
            false => Ok(()),
        }
    }
}

/// What a layer is named by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NamedBy {
    /// The digest of what is stored, compressed or not.
    Stored,
    /// The digest of what it unpacks to.
    Content,
}

/// Reads the layer that `blob` is, and writes what is kept of it to `store`.
///
/// # Errors
/// A blob that is not the one with that digest, is damaged or more than is allowed, or a disk that is full.
pub(super) fn read(
    blob: Box<dyn Read + Send + '_>,
    (digest, by): (&str, NamedBy),
    store: &mut New,
    limits: &Limits,
    seen: &(dyn Fn(u64) + Sync),
) -> Result<(), Fault> {
    std::thread::scope(|scope| {
        let (send, receive) = sync_channel(PARTS);
        let unpacking = scope.spawn(move || unpack(blob, by, &send, limits, seen));
        let mut stream = Stream { parts: receive, part: Vec::new(), at: 0 };
        let kept = entries(&mut stream, store, digest, limits, Kept::Judged);
        // A thread that has more to say than is listened to ends.
        let drained = kept.and_then(|_| io::copy(&mut stream, &mut io::sink()).map(drop).map_err(Fault::from));
        drop(stream);
        let found = unpacking.join().unwrap_or_else(|_| Err(Fault::broken("it cannot be decompressed".into())));
        match (found, drained) {
            // What was wrong with the bytes explains what is wrong with the archive.
            (Err(fault), _) => Err(fault),
            (Ok(Some(found)), _) if found != digest => {
                Err(Fault::broken(format!("its content has the digest {found}, not the one that it is named by")))
            }
            (Ok(_), drained) => drained,
        }
    })
}

/// Hands on the bytes of a blob, decompressed; gives the digest that it is named by, if it was read to its end.
fn unpack(
    blob: Box<dyn Read + Send + '_>,
    by: NamedBy,
    send: &SyncSender<Vec<u8>>,
    limits: &Limits,
    seen: &(dyn Fn(u64) + Sync),
) -> Result<Option<String>, Fault> {
    let mut hashed = BufReader::with_capacity(PART, Hashed { inner: blob, by, hash: Sha256::new(), seen });
    let mut content = Sha256::new();
    let whole = {
        let mut plain = decompressed(&mut hashed)?;
        loop {
            let mut part = Vec::with_capacity(PART);
            plain.by_ref().take(PART as u64).read_to_end(&mut part).map_err(|error| match Fault::from(error) {
                Fault::Broken(why) => Fault::Broken(format!("it cannot be unpacked: {why}")),
                other => other,
            })?;
            limits.bytes(part.len() as u64)?;
            if part.is_empty() {
                break true;
            }
            if by == NamedBy::Content {
                content.update(&part);
            }
            if send.send(part).is_err() {
                break false;
            }
        }
    };
    // Nobody listens any more: there was a fault, which says more than a digest does.
    if !whole {
        return Ok(None);
    }
    io::copy(&mut hashed, &mut io::sink())?;
    let hash = match by {
        NamedBy::Stored => hashed.into_inner().hash,
        NamedBy::Content => content,
    };
    let hash = hash.finalize();
    Ok(Some(format!("sha256:{}", HEXLOWER.encode(&hash))))
}

/// How something is compressed.
pub(super) enum Packing {
    Gzip,
    Zstd,
    /// In a way that is not read here, by its name.
    Other(&'static str),
}

impl Packing {
    /// What the first bytes say; `None` where it is not compressed.
    pub(super) fn of(begin: &[u8]) -> Option<Self> {
        match begin {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            // A frame, or one that is to be skipped.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstd),
            [b'B', b'Z', b'h', ..] => Some(Self::Other("bzip2")),
            [0xfd, b'7', b'z', b'X', b'Z', ..] => Some(Self::Other("xz")),
            _ => None,
        }
    }
}

/// A reader of what a compressed reader holds.
pub(super) fn decompressed<'r>(packed: &'r mut dyn BufReadSend) -> Result<Box<dyn Read + 'r>, Fault> {
    Ok(match Packing::of(packed.fill_buf()?) {
        Some(Packing::Gzip) => Box::new(MultiGzDecoder::new(packed)),
        Some(Packing::Zstd) => {
            let mut decoder = zstd::Decoder::with_buffer(packed)?;
            decoder.window_log_max(LARGEST_WINDOW)?;
            Box::new(decoder)
        }
        Some(Packing::Other(_)) => {
            return Err(Fault::broken("it is compressed in a way that layers are not: gzip and zstd are read".into()));
        }
        None => Box::new(packed),
    })
}

/// What [`decompressed`] reads.
pub(super) trait BufReadSend: io::BufRead + Send {}
impl<T: io::BufRead + Send> BufReadSend for T {}

/// Hashes what is read, where that is what the blob is named by.
struct Hashed<'a> {
    inner: Box<dyn Read + Send + 'a>,
    by: NamedBy,
    hash: Sha256,
    seen: &'a (dyn Fn(u64) + Sync),
}

impl Read for Hashed<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(into)?;
        if self.by == NamedBy::Stored {
            self.hash.update(&into[..count]);
        }
        (self.seen)(count as u64);
        Ok(count)
    }
}

/// What comes out of the other thread.
struct Stream {
    parts: Receiver<Vec<u8>>,
    part: Vec<u8>,
    at: usize,
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.part.len() {
            match self.parts.recv() {
                Ok(part) => (self.part, self.at) = (part, 0),
                Err(_) => return Ok(0),
            }
        }
        let count = into.len().min(self.part.len() - self.at);
        into[..count].copy_from_slice(&self.part[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

impl Source for Stream {}

/// Takes an archive apart; gives whether it said where it ends.
///
/// # Errors
/// An archive that is damaged or more than is allowed, or a disk that is full.
pub(super) fn entries(
    stream: &mut impl Source,
    store: &mut New,
    digest: &str,
    limits: &Limits,
    kept_of: Kept,
) -> Result<bool, Fault> {
    let mut writer = Writer::new(store, digest).map_err(Fault::Spool)?;
    let mut tar = Tar::new(&mut *stream);
    while let Some(entry) = tar.next()? {
        limits.entry(entry.path.len() + entry.target.len())?;
        let mut kept = None;
        if entry.kind == Kind::File {
            // A sparse file may claim far more than its archive has.
            limits.bytes(entry.size.saturating_sub(tar.stored_size()))?;
            let name = || format!("the file {}", String::from_utf8_lossy(&entry.path));
            kept = keep::keep(&entry.path, entry.size, kept_of, &mut tar, &mut writer)
                .map_err(|fault| fault.of(&name()))?;
        }
        writer.entry(Item {
            path: Bytes(entry.path),
            kind: entry.kind,
            target: Bytes(entry.target),
            size: entry.size,
            mode: entry.mode,
            kept,
        });
    }
    let ended = tar.ended();
    writer.finish().map(|()| ended)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::image::MOST_UNPACKED;

    /// With what may be unpacked there may be more entries and names, and never less than usual.
    #[test]
    fn limits_grow_together() {
        let names = |unpacked: u64, bytes: usize| Limits::new(unpacked).entry(bytes).is_ok();
        assert!(names(MOST_UNPACKED, 200_000_000) && !names(MOST_UNPACKED, 200_000_001));
        assert!(names(1, 200_000_000) && !names(1, 200_000_001));
        assert!(names(2 * MOST_UNPACKED, 400_000_000) && !names(2 * MOST_UNPACKED, 400_000_001));
        assert!(names(u64::MAX, 1 << 40));
        let limits = Limits::new(MOST_UNPACKED);
        assert!(limits.entry(100_000_000).is_ok() && limits.entry(100_000_000).is_ok() && limits.entry(1).is_err());
        assert!(limits.folders(500_000).is_ok() && limits.folders(500_001).is_err());
    }
}
