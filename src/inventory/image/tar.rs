//! Tar archives as a stream: takes a reader, gives entries and their content, once each and in order.
//!
//! POSIX.1-2001 (ustar, pax) and GNU tar (long names, sparse files of every version), as Go's `archive/tar` reads them,
//! which all container engines use. What an archive claims is bounded before it is believed.

mod pax;
mod sparse;

use std::io::{self, Read};

use tar::{EntryType, Header};

use super::fault::Fault;
use sparse::{Span, Sparse};

/// Bytes of a block.
const BLOCK: usize = 512;
/// Long names and pax records are smaller, in bytes (as in Go).
const LARGEST_RECORD: u64 = 1 << 20;
/// Longer paths do not exist under Linux, in bytes (PATH_MAX).
const LONGEST_PATH: usize = 4096;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) enum Kind {
    File,
    Folder,
    /// A symbolic link.
    Link,
    /// A further name of a file of the image.
    HardLink,
    Pipe,
    Device,
}

/// The head of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// As the archive has it.
    pub(super) path: Vec<u8>,
    pub(super) kind: Kind,
    /// What a link names.
    pub(super) target: Vec<u8>,
    /// Size in bytes, holes of a sparse file included.
    pub(super) size: u64,
    /// Permission bits.
    pub(super) mode: u32,
}

/// What an archive is read from.
pub(super) trait Source: Read {
    /// Passes over `count` bytes; gives how many there were.
    ///
    /// # Errors
    /// As reading.
    fn skip(&mut self, count: u64) -> io::Result<u64>
    where
        Self: Sized,
    {
        io::copy(&mut self.by_ref().take(count), &mut io::sink())
    }
}

impl<S: Source> Source for &mut S {
    fn skip(&mut self, count: u64) -> io::Result<u64> {
        (**self).skip(count)
    }
}

/// Reads a tar archive.
pub(super) struct Tar<R> {
    reader: R,
    /// Bytes of the present entry that the archive still holds, and what fills its last block.
    stored: u64,
    padding: u64,
    /// Whether it was said that the archive ends.
    ended: bool,
    /// How the present entry's content lies in what is stored.
    sparse: Sparse,
}

/// What pax records and GNU's long names say of the entry that follows.
#[derive(Default)]
struct Ahead {
    path: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
    size: Option<u64>,
    sparse: sparse::Records,
}

impl<R: Source> Tar<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, stored: 0, padding: 0, ended: false, sparse: Sparse::default() }
    }

    /// The next entry; `None` at the end of the archive.
    ///
    /// # Errors
    /// What is no tar archive, ends early, or claims what no archive has.
    pub(super) fn next(&mut self) -> Result<Option<Entry>, Fault> {
        let mut ahead = Ahead::default();
        loop {
            self.skip(self.stored + self.padding)?;
            (self.stored, self.padding) = (0, 0);
            let Some(header) = self.header()? else { return Ok(None) };
            let kind = header.entry_type();
            let size = number(header.entry_size(), &header.as_old().size)?;
            match kind {
                EntryType::GNULongName => ahead.path = Some(name(self.record(size)?)),
                EntryType::GNULongLink => ahead.target = Some(name(self.record(size)?)),
                EntryType::XHeader => {
                    let records = self.record(size)?;
                    ahead.read(&records)?;
                }
                EntryType::XGlobalHeader => drop(self.record(size)?),
                _ => return self.entry(&header, kind, size, ahead).map(Some),
            }
        }
    }

    /// Whether the archive said that it ends, behind the last entry: one that was cut between entries does not.
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    /// What it reads from, where the content of the present entry begins until that is read.
    pub(super) fn source(&self) -> &R {
        &self.reader
    }

    /// How many bytes of the present entry the archive still holds.
    pub(super) fn stored_size(&self) -> u64 {
        self.stored
    }

    fn entry(&mut self, header: &Header, kind: EntryType, size: u64, ahead: Ahead) -> Result<Entry, Fault> {
        let path = ahead.path.unwrap_or_else(|| header.path_bytes().into_owned());
        let kind = match kind.as_byte() {
            // Before POSIX there was no type for folders.
            0 if path.ends_with(b"/") => Kind::Folder,
            0 | b'0' | b'7' | b'S' => Kind::File,
            b'1' => Kind::HardLink,
            b'2' => Kind::Link,
            b'3' | b'4' => Kind::Device,
            b'5' => Kind::Folder,
            b'6' => Kind::Pipe,
            other => return Err(Fault::broken(format!("an entry of the unknown type {:?}", char::from(other)))),
        };
        // Other kinds have no content, whatever their header says.
        let stored = if kind == Kind::File { ahead.size.unwrap_or(size) } else { 0 };
        (self.stored, self.padding) = (stored, stored.wrapping_neg() % BLOCK as u64);
        if stored.checked_add(self.padding).is_none() {
            return Err(Fault::broken(format!("an entry of {stored} bytes")));
        }
        let mut entry = Entry {
            path,
            kind,
            target: ahead.target.unwrap_or_else(|| header.link_name_bytes().unwrap_or_default().into_owned()),
            size: stored,
            mode: number(header.mode(), &header.as_old().mode)? & 0o7777,
        };
        self.sparse = Sparse::default();
        if kind == Kind::File {
            let map = match header.entry_type() {
                EntryType::GNUSparse => self.old_map(header)?,
                _ => self.pax_map(&ahead.sparse)?,
            };
            if let Some((map, size)) = map {
                self.sparse = Sparse::of(map, size, self.stored)?;
                entry.size = size;
                entry.path = ahead.sparse.name.unwrap_or(entry.path);
            }
        }
        if entry.path.len() > LONGEST_PATH || entry.target.len() > LONGEST_PATH {
            return Err(Fault::broken(format!("a path of more than {LONGEST_PATH} bytes")));
        }
        if entry.path.contains(&0) || entry.target.contains(&0) {
            return Err(Fault::broken("a path with a zero byte".into()));
        }
        Ok(entry)
    }

    /// The next header that says something; `None` behind the last.
    fn header(&mut self) -> Result<Option<Header>, Fault> {
        for zeros in 0..2 {
            let mut header = Header::new_old();
            let block = header.as_mut_bytes();
            match fill(&mut self.reader, block)? {
                0 => return Ok(None),
                BLOCK => {}
                _ => return Err(Fault::broken("it ends early, inside a header".into())),
            }
            if block.iter().any(|byte| *byte != 0) {
                if zeros > 0 {
                    return Err(Fault::broken("a lone block of zeros inside the archive".into()));
                }
                check(&header)?;
                return Ok(Some(header));
            }
        }
        // Two blocks of zeros end it.
        self.ended = true;
        Ok(None)
    }

    /// The content of an entry that describes the next one.
    fn record(&mut self, size: u64) -> Result<Vec<u8>, Fault> {
        if size > LARGEST_RECORD {
            return Err(Fault::broken(format!("a long name or a pax header of {size} bytes")));
        }
        let mut bytes = vec![0; size as usize];
        if fill(&mut self.reader, &mut bytes)? < bytes.len() {
            return Err(early());
        }
        self.skip(size.wrapping_neg() % BLOCK as u64)?;
        Ok(bytes)
    }

    fn skip(&mut self, count: u64) -> Result<(), Fault> {
        let skipped = if count == 0 { 0 } else { self.reader.skip(count)? };
        if skipped < count { Err(early()) } else { Ok(()) }
    }

    /// Fills `into` with what is stored of the present entry.
    fn stored(&mut self, into: &mut [u8]) -> Result<(), Fault> {
        if (into.len() as u64) > self.stored {
            return Err(Fault::broken("the map of a sparse file is longer than the file".into()));
        }
        self.reader.read_exact(into)?;
        self.stored -= into.len() as u64;
        Ok(())
    }
}

/// The content of the present entry, holes as zeros.
impl<R: Read> Read for Tar<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let (span, most) = self.sparse.next(self.stored);
        let count = usize::try_from(most).unwrap_or(usize::MAX).min(into.len());
        if count == 0 {
            return Ok(0);
        }
        let count = match span {
            Span::Hole => {
                into[..count].fill(0);
                count
            }
            Span::Data => match self.reader.read(&mut into[..count])? {
                0 => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, early().to_string())),
                read => {
                    self.stored -= read as u64;
                    read
                }
            },
        };
        self.sparse.advance(count as u64);
        Ok(count)
    }
}

impl Ahead {
    fn read(&mut self, records: &[u8]) -> Result<(), Fault> {
        let mut rest = records;
        while let Some((key, value)) = pax::record(&mut rest)? {
            match key {
                b"path" if !value.is_empty() => self.path = Some(value.to_vec()),
                b"linkpath" if !value.is_empty() => self.target = Some(value.to_vec()),
                b"size" => self.size = Some(sparse::decimal(value)?),
                _ => self.sparse.read(key, value)?,
            }
        }
        Ok(())
    }
}

/// The checksum of a header, by which an archive is known as one.
fn check(header: &Header) -> Result<(), Fault> {
    let wrong = || Fault::broken("it is no tar archive: the checksum of a header is wrong".into());
    let said = header.cksum().map_err(|_| wrong())?;
    let field = 148..156;
    let bytes = header.as_bytes().iter().enumerate();
    let bytes = bytes.map(|(at, byte)| if field.contains(&at) { b' ' } else { *byte });
    let unsigned: u32 = bytes.clone().map(u32::from).sum();
    // Some old programs took bytes for signed.
    let signed: i64 = bytes.map(|byte| i64::from(byte as i8)).sum();
    if said == unsigned || i64::from(said) == signed { Ok(()) } else { Err(wrong()) }
}

/// A number of a header; a field without any digit is 0, as in Go.
fn number<T: Default>(read: io::Result<T>, field: &[u8]) -> Result<T, Fault> {
    if field.iter().all(|byte| matches!(byte, 0 | b' ')) {
        return Ok(T::default());
    }
    read.map_err(|error| Fault::broken(format!("a number in a header that is none ({error})")))
}

/// A long name up to its closing zero.
fn name(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    bytes.truncate(end);
    bytes
}

fn early() -> Fault {
    Fault::broken("it ends early".into())
}

/// As much of `into` as there is left to read.
pub(super) fn fill(reader: &mut (impl Read + ?Sized), into: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < into.len() {
        match reader.read(&mut into[done..]) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}
