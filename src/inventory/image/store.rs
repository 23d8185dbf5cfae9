//! What is kept of a layer, in one file: its entries in order, and of its files the bytes that matter.
//!
//! The bytes of a file that are kept, in the order of their places, are cut into chunks, each a zstd frame. An index at
//! the end says what there is; the checksum at the very end tells a file that is whole from one that is not.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use zstd::bulk::{Compressor, Decompressor};

use super::bytes::Bytes;
use super::cache::New;
use super::fault::Fault;
use super::tar::Kind;
use crate::elf::ReadAt;

/// Bytes of a chunk before it is packed.
const CHUNK: usize = 128 << 10;
/// The fastest level but the negative ones: packing keeps up with unpacking the layer.
const LEVEL: i32 = 1;
/// Place and length of the index, packed and not, and the CRC-32 of all before it.
const FOOTER: usize = 8 + 8 + 8 + 4;
/// Changes with what is kept of a layer, and with how; what another release kept may not be what this one asks for.
pub(super) const FORMAT: &str = concat!("images-v2-", env!("CARGO_PKG_VERSION"));
/// An index beyond this is damage, in bytes.
const LARGEST_INDEX: u64 = 1 << 30;

/// What is known of a layer.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Index {
    /// [`FORMAT`], and the digest of the layer: a store that is somewhere else than it was put is none.
    format: String,
    digest: String,
    /// Its entries, in the order of the archive.
    pub(super) entries: Vec<Item>,
    /// Its files of which anything is kept.
    files: Vec<Kept>,
    /// Bytes of all its entries, unpacked.
    pub(super) unpacked: u64,
}

/// One entry of a layer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Item {
    pub(super) path: Bytes,
    pub(super) kind: Kind,
    pub(super) target: Bytes,
    pub(super) size: u64,
    pub(super) mode: u32,
    /// What is kept of it: an index into [`Index::files`].
    pub(super) kept: Option<u32>,
}

/// What is kept of one file.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    size: u64,
    /// The parts that are kept: offset, length, and place among what is kept; in order, apart from each other.
    ranges: Vec<(u64, u64, u64)>,
    /// Where the chunks are in the store, and how long they are there.
    chunks: Vec<(u64, u32)>,
    sha256: Option<[u8; 32]>,
}

/// Writes a store.
pub(super) struct Writer<'f> {
    file: BufWriter<&'f mut New>,
    compressor: Compressor<'static>,
    at: u64,
    sum: crc32fast::Hasher,
    index: Index,
    /// Bytes of the file that is being written which are in no chunk yet.
    pending: Vec<u8>,
    chunks: Vec<(u64, u32)>,
}

impl<'f> Writer<'f> {
    /// Writes the store of the layer that `digest` names.
    pub(super) fn new(file: &'f mut New, digest: &str) -> io::Result<Self> {
        Ok(Self {
            file: BufWriter::with_capacity(CHUNK, file),
            compressor: Compressor::new(LEVEL)?,
            at: 0,
            sum: crc32fast::Hasher::new(),
            index: Index { format: FORMAT.into(), digest: digest.into(), ..Index::default() },
            pending: Vec::with_capacity(CHUNK),
            chunks: Vec::new(),
        })
    }

    /// Adds bytes to what is kept of the present file.
    pub(super) fn keep(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = bytes.len().min(CHUNK - self.pending.len());
            self.pending.extend_from_slice(&bytes[..count]);
            bytes = &bytes[count..];
            if self.pending.len() == CHUNK {
                self.pack()?;
            }
        }
        Ok(())
    }

    /// Ends the present file of `size` bytes: what was kept of it are these ranges.
    pub(super) fn end_file(&mut self, size: u64, ranges: Vec<(u64, u64)>, sha256: Option<[u8; 32]>) -> io::Result<u32> {
        if !self.pending.is_empty() {
            self.pack()?;
        }
        let mut place = 0;
        let placed = |(start, length)| {
            place += length;
            (start, length, place - length)
        };
        let ranges = ranges.into_iter().map(placed).collect();
        self.index.files.push(Kept { size, ranges, chunks: std::mem::take(&mut self.chunks), sha256 });
        Ok(self.index.files.len() as u32 - 1)
    }

    pub(super) fn entry(&mut self, item: Item) {
        self.index.unpacked = self.index.unpacked.saturating_add(item.size);
        self.index.entries.push(item);
    }

    /// Writes the index; what is written is complete then.
    pub(super) fn finish(mut self) -> Result<(), Fault> {
        let index = rmp_serde::to_vec(&std::mem::take(&mut self.index)).map_err(io::Error::other)?;
        if index.len() as u64 > LARGEST_INDEX {
            return Err(Fault::broken(format!("what describes its entries has more than {LARGEST_INDEX} bytes")));
        }
        self.end(&index).map_err(Fault::Spool)
    }

    fn end(mut self, index: &[u8]) -> io::Result<()> {
        let packed = self.compressor.compress(index)?;
        let (at, length) = (self.at, packed.len() as u64);
        self.write(&packed)?;
        for number in [at, length, index.len() as u64] {
            self.write(&number.to_le_bytes())?;
        }
        let sum = self.sum.clone().finalize();
        self.file.write_all(&sum.to_le_bytes())?;
        self.file.flush()
    }

    fn pack(&mut self) -> io::Result<()> {
        let packed = self.compressor.compress(&self.pending)?;
        self.pending.clear();
        self.chunks.push((self.at, packed.len() as u32));
        self.write(&packed)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum.update(bytes);
        self.at += bytes.len() as u64;
        self.file.write_all(bytes)
    }
}

/// A store that is open.
#[derive(Debug)]
pub(super) struct Store {
    file: File,
    files: Vec<Kept>,
}

impl Store {
    /// Opens the store of the layer that `digest` names and gives its entries; `None` if it is not whole, or of another.
    pub(super) fn open(file: File, digest: &str) -> Option<(Self, Index)> {
        let length = file.metadata().ok()?.len();
        let body = length.checked_sub(FOOTER as u64)?;
        let mut footer = [0; FOOTER];
        file.read_exact_at(&mut footer, body).ok()?;
        let number = |at: usize| u64::from_le_bytes(footer[at..at + 8].try_into().unwrap_or_default());
        let (at, packed, unpacked) = (number(0), number(8), number(16));
        if at.checked_add(packed)? != body
            || unpacked > LARGEST_INDEX
            || !sums(&file, length - 4, &footer[FOOTER - 4..])
        {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(packed).ok()?];
        file.read_exact_at(&mut bytes, at).ok()?;
        let bytes = zstd::bulk::decompress(&bytes, unpacked as usize).ok()?;
        let mut index: Index = rmp_serde::from_slice(&bytes).ok()?;
        if index.format != FORMAT || index.digest != digest {
            return None;
        }
        let files = std::mem::take(&mut index.files);
        Some((Self { file, files }, index))
    }

    /// Opens what is kept of a file.
    pub(super) fn kept(self: &Arc<Self>, file: u32) -> Option<KeptFile> {
        self.files.get(file as usize)?;
        Some(KeptFile { store: Some(Arc::clone(self)), file, size: 0, recent: Mutex::default() })
    }
}

/// Whether the first `length` bytes have that CRC-32.
fn sums(file: &File, length: u64, said: &[u8]) -> bool {
    let mut sum = crc32fast::Hasher::new();
    let mut part = vec![0; 256 << 10];
    let mut at = 0;
    while at < length {
        let count = part.len().min((length - at) as usize);
        if file.read_exact_at(&mut part[..count], at).is_err() {
            return false;
        }
        sum.update(&part[..count]);
        at += count as u64;
    }
    sum.finalize().to_le_bytes() == said
}

/// A file of an image, as far as it is kept. What is not kept cannot be read.
#[derive(Debug)]
pub struct KeptFile {
    /// Absent for a file of which nothing is kept.
    store: Option<Arc<Store>>,
    file: u32,
    /// Size of a file of which nothing is kept.
    size: u64,
    /// The chunk that was last read.
    recent: Mutex<Option<(usize, Vec<u8>)>>,
}

impl KeptFile {
    /// A file of which nothing is kept.
    pub(super) fn nothing(size: u64) -> Self {
        Self { store: None, file: 0, size, recent: Mutex::default() }
    }

    fn kept(&self) -> Option<(&Store, &Kept)> {
        let store = self.store.as_deref()?;
        Some((store, store.files.get(self.file as usize)?))
    }

    /// SHA-256, where it was taken.
    pub(in crate::inventory) fn sha256(&self) -> Option<[u8; 32]> {
        self.kept()?.1.sha256
    }
}

impl ReadAt for KeptFile {
    fn len(&self) -> u64 {
        self.kept().map_or(self.size, |(_, kept)| kept.size)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        if offset >= self.len() || into.is_empty() {
            return Ok(0);
        }
        let gone = || io::Error::other(format!("the image was read without its bytes from {offset} on"));
        let (store, kept) = self.kept().ok_or_else(gone)?;
        let (place, left) = kept.place(offset).ok_or_else(gone)?;
        let (chunk, inside) = ((place / CHUNK as u64) as usize, (place % CHUNK as u64) as usize);
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.as_ref().is_none_or(|(number, _)| *number != chunk) {
            *recent = Some((chunk, store.chunk(kept, chunk)?));
        }
        let bytes = recent.as_ref().and_then(|(_, bytes)| bytes.get(inside..)).unwrap_or_default();
        let count = bytes.len().min(into.len()).min(usize::try_from(left).unwrap_or(usize::MAX));
        into[..count].copy_from_slice(&bytes[..count]);
        if count == 0 { Err(gone()) } else { Ok(count) }
    }
}

impl Kept {
    /// Where the byte at `offset` is among those that are kept, and how many of its range follow.
    fn place(&self, offset: u64) -> Option<(u64, u64)> {
        let next = self.ranges.partition_point(|(start, ..)| *start <= offset);
        let (start, length, place) = self.ranges[..next].last()?;
        let inside = offset - start;
        (inside < *length).then(|| (place + inside, length - inside))
    }
}

impl Store {
    fn chunk(&self, kept: &Kept, number: usize) -> io::Result<Vec<u8>> {
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "what was kept of the image is damaged");
        let (at, length) = *kept.chunks.get(number).ok_or_else(damaged)?;
        let mut packed = vec![0; length as usize];
        self.file.read_exact_at(&mut packed, at)?;
        Decompressor::new()?.decompress(&packed, CHUNK)
    }
}

/// Reads the parts of a file that are to be kept.
pub(super) fn keep_ranges(writer: &mut Writer<'_>, file: &dyn ReadAt, ranges: &[(u64, u64)]) -> io::Result<()> {
    let mut part = vec![0; CHUNK];
    for (start, length) in ranges {
        let mut at = *start;
        while at < start + length {
            let most = part.len().min((start + length - at) as usize);
            match file.read_at(at, &mut part[..most])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => {
                    writer.keep(&part[..count])?;
                    at += count as u64;
                }
            }
        }
    }
    Ok(())
}
