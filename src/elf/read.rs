//! Reading a file by position, with an end to every read: [`ReadAt`], and what is said when that fails.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::io;

/// Something with a length whose bytes can be read at any position: a file, or a slice of memory.
pub trait ReadAt {
    /// Length in bytes, as it was when the file was opened.
    fn len(&self) -> u64;

    /// Reads up to `into.len()` bytes from `offset` on; gives how many, 0 at the end.
    ///
    /// # Errors
    /// When the file cannot be read.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;

    /// Whether there is nothing in it.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl ReadAt for &[u8] {
    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let from = usize::try_from(offset).ok().and_then(|offset| self.get(offset..)).unwrap_or_default();
        let count = from.len().min(into.len());
        into[..count].copy_from_slice(&from[..count]);
        Ok(count)
    }
}

/// Why a file is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// What kind of trouble.
    pub problem: Problem,
    /// Where in the file, in bytes from its start.
    pub offset: u64,
    /// What was expected there, and what is there: "the dynamic section ends at 4096, the file at 1024".
    pub what: String,
}

/// Kinds of trouble with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// Not an ELF file at all.
    NotElf,
    /// An ELF file, but not one that this program reads: 32 bits, or big-endian.
    Unsupported,
    /// An ELF file whose tables cannot be right.
    Damaged,
    /// An ELF file that ends before what the loader is to map of it.
    CutShort,
    /// The operating system refused to read it.
    Io,
}

impl Unreadable {
    pub(super) fn damaged(offset: u64, what: impl Into<String>) -> Self {
        Self { problem: Problem::Damaged, offset, what: what.into() }
    }
}

/// A file with bounds: what is asked for is there in full or an error, and no more is taken into memory than is there.
pub(super) struct Source<'f> {
    file: &'f dyn ReadAt,
    /// Length of the file.
    pub len: u64,
    /// How much more text may be read, so that a table of a few names that all overlap does not become gigabytes.
    text_left: Cell<usize>,
    /// The parts of the file that were last read for something small, the next to be given up first.
    recent: RefCell<VecDeque<Part>>,
}

/// A part of the file.
struct Part {
    start: u64,
    bytes: Vec<u8>,
}

impl Part {
    fn get(&self, offset: u64, size: usize) -> Option<&[u8]> {
        let inside = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        self.bytes.get(inside..inside.checked_add(size)?)
    }
}

/// How many parts are kept: the tables that are read side by side, and the names in them.
const PARTS: usize = 4;
/// Bytes of a part.
const PART: usize = 4096;

/// Tables beyond this are taken for damage: the largest that are known are a twentieth of it.
const MOST_BYTES: u64 = 64 << 20;

impl<'f> Source<'f> {
    pub fn new(file: &'f dyn ReadAt) -> Self {
        Self { file, len: file.len(), text_left: Cell::new(MOST_TEXT), recent: RefCell::default() }
    }

    /// Fills `into` from `offset` on, as far as the file goes; gives how many bytes that were.
    pub fn some(&self, offset: u64, into: &mut [u8]) -> Result<usize, Unreadable> {
        let mut done = 0;
        while done < into.len() {
            let at = offset.saturating_add(done as u64);
            match self.file.read_at(at, &mut into[done..]) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Unreadable { problem: Problem::Io, offset: at, what: error.to_string() }),
            }
        }
        Ok(done)
    }

    /// As [`some`](Self::some), for a few bytes that are near others: system calls cost more than what they copy.
    fn little(&self, offset: u64, into: &mut [u8]) -> Result<usize, Unreadable> {
        let mut recent = self.recent.borrow_mut();
        if let Some(bytes) = recent.iter().find_map(|part| part.get(offset, into.len())) {
            into.copy_from_slice(bytes);
            return Ok(into.len());
        }
        let mut bytes = match recent.len() < PARTS {
            true => Vec::new(),
            false => recent.pop_front().map(|part| part.bytes).unwrap_or_default(),
        };
        bytes.resize(PART, 0);
        let count = self.some(offset, &mut bytes)?;
        bytes.truncate(count);
        let given = count.min(into.len());
        into[..given].copy_from_slice(&bytes[..given]);
        recent.push_back(Part { start: offset, bytes });
        Ok(given)
    }

    /// Fills all of `into`.
    pub fn fill(&self, offset: u64, into: &mut [u8], what: &str) -> Result<(), Unreadable> {
        let size = into.len() as u64;
        self.within(offset, size, what)?;
        let count = if into.len() <= PART / 8 { self.little(offset, into)? } else { self.some(offset, into)? };
        // A file may shrink after it was opened.
        if count < into.len() {
            return Err(Unreadable::damaged(offset, format!("the file ends inside {what}")));
        }
        Ok(())
    }

    /// `size` bytes from `offset` on.
    pub fn bytes(&self, offset: u64, size: u64, what: &str) -> Result<Vec<u8>, Unreadable> {
        self.within(offset, size, what)?;
        if size > MOST_BYTES {
            return Err(Unreadable::damaged(offset, format!("{what} of {size} bytes: no such table is that large")));
        }
        let mut bytes = vec![0; size as usize];
        self.fill(offset, &mut bytes, what)?;
        Ok(bytes)
    }

    fn within(&self, offset: u64, size: u64, what: &str) -> Result<(), Unreadable> {
        match offset.checked_add(size) {
            Some(end) if end <= self.len => Ok(()),
            _ => {
                let len = self.len;
                Err(Unreadable::damaged(offset, format!("{what} of {size} bytes lies beyond the file's {len}")))
            }
        }
    }

    /// The text that begins at `offset` and ends before a zero byte, or at `end` at the latest.
    pub fn text(&self, offset: u64, end: u64, what: &str) -> Result<Vec<u8>, Unreadable> {
        let mut text = Vec::new();
        let mut chunk = [0; 256];
        loop {
            let at = offset.saturating_add(text.len() as u64);
            let want = end.saturating_sub(at).min(chunk.len() as u64) as usize;
            let count = self.little(at, &mut chunk[..want])?;
            if let Some(zero) = memchr::memchr(0, &chunk[..count]) {
                text.extend_from_slice(&chunk[..zero]);
                let left = self.text_left.get().checked_sub(text.len());
                self.text_left.set(left.ok_or_else(|| Unreadable::damaged(offset, "more names than any file has"))?);
                return Ok(text);
            }
            if count < want || want == 0 || text.len() > LONGEST_TEXT {
                return Err(Unreadable::damaged(offset, format!("{what} has no end")));
            }
            text.extend_from_slice(&chunk[..count]);
        }
    }
}

/// Names and paths in a string table end before this many bytes.
const LONGEST_TEXT: usize = 1 << 20;
/// All of them together have no more than this.
const MOST_TEXT: usize = 16 << 20;

/// Little-endian numbers of a record whose length was checked.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// As [`u16_at`].
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// As [`u16_at`].
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (offset {})", self.what, self.offset)
    }
}

impl std::error::Error for Unreadable {}
