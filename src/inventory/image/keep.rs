//! What of an image's files is kept: of ELF files what the reader of ELF files looks at, all of the small texts that
//! describe packages and the loader, and nothing of the rest.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;

use sha2::{Digest, Sha256};

use super::fault::Fault;
use super::store::{Writer, keep_ranges};
use super::tar::fill;
use crate::elf::{self, Object, ReadAt};
use crate::inventory::walk;

/// What is larger is no such text, in bytes.
const LARGEST_TEXT: u64 = 64 << 20;
/// Files of `/etc` beyond this are none of the loader's, in bytes.
const LARGEST_OF_ETC: u64 = 4 << 20;
/// What is looked at of a file that is named as a library and is none.
const BEGINNING: u64 = 4096;
/// ELF files up to this size are held in memory while they are read, in bytes.
const IN_MEMORY: u64 = 8 << 20;
/// Read at a time.
const PART: usize = 256 << 10;
/// Gaps between kept parts that are closed: an entry in a list of parts is as large.
const GAP: u64 = 64;
/// Names are read with what follows them.
const BEYOND_NAMES: u64 = 4096;

/// Texts by their names, whatever folder they lie in.
const NAMES: [&str; 10] = [
    "METADATA",
    "PKG-INFO",
    "RECORD",
    "INSTALLER",
    "direct_url.json",
    "installed-files.txt",
    "pyvenv.cfg",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.preload",
];
/// Texts by the end of their names: Python's, configuration, what describes an installed package.
const ENDS: [&str; 4] = [".py", ".pth", ".conf", ".egg-info"];
/// The C library and its loader, which tell version and folders in their texts.
const WHOLE_LIBRARIES: [&str; 3] = ["ld-", "libc.so", "libc-"];

/// What is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// What the rules look at.
    Judged,
    /// All of small files, too.
    AllSmall,
}

/// Reads the content of a file and keeps what matters; gives its number among the kept files.
pub(super) fn keep(
    path: &[u8],
    size: u64,
    kept: Kept,
    content: &mut dyn Read,
    writer: &mut Writer<'_>,
) -> Result<Option<u32>, Fault> {
    let name = path.iter().rposition(|byte| *byte == b'/').map_or(path, |at| &path[at + 1..]);
    let named = walk::judge(name);
    let mut beginning = [0; 4];
    let count = fill(content, &mut beginning)?;
    let mut content = beginning[..count].chain(content);
    if &beginning[..count] == b"\x7fELF" {
        let whole = WHOLE_LIBRARIES.iter().any(|begin| name.starts_with(begin.as_bytes()));
        return elf(size, whole, &mut content, writer).map(Some);
    }
    let is_small = kept == Kept::AllSmall && size <= LARGEST_OF_ETC;
    let most = if is_small || is_text(path, name, size) {
        size
    } else if named.is_some() {
        size.min(BEGINNING)
    } else {
        return Ok(None);
    };
    let mut hash = named.is_some().then(Sha256::new);
    let mut part = vec![0; PART.min(size as usize)];
    let mut at = 0;
    while at < size {
        let count = fill(&mut content, &mut part)?;
        if count == 0 {
            return Err(Fault::broken("it ends early".into()));
        }
        if let Some(hash) = &mut hash {
            hash.update(&part[..count]);
        }
        let kept = most.saturating_sub(at).min(count as u64) as usize;
        writer.keep(&part[..kept]).map_err(Fault::Spool)?;
        at += count as u64;
        if at >= most && hash.is_none() {
            break;
        }
    }
    let ranges = if most > 0 { vec![(0, most)] } else { Vec::new() };
    let sha256 = hash.map(|hash| hash.finalize().into());
    writer.end_file(size, ranges, sha256).map(Some).map_err(Fault::Spool)
}

fn is_text(path: &[u8], name: &[u8], size: u64) -> bool {
    let is = |text: &&str| name == text.as_bytes();
    let ends = |end: &&str| name.ends_with(end.as_bytes());
    let in_etc = path.starts_with(b"etc/") || path.starts_with(b"/etc/") || path.starts_with(b"./etc/");
    let of_conda = name.ends_with(b".json") && memchr::memmem::find(path, b"conda-meta/").is_some();
    let text = NAMES.iter().any(is) || ENDS.iter().any(ends) || of_conda;
    let of_apptainer = path.starts_with(b".singularity.d/") || path.starts_with(b"/.singularity.d/");
    text && size <= LARGEST_TEXT || (in_etc || of_apptainer) && size <= LARGEST_OF_ETC
}

/// Reads an ELF file once more from where it is put meanwhile, and keeps what is read then.
fn elf(size: u64, whole: bool, content: &mut dyn Read, writer: &mut Writer<'_>) -> Result<u32, Fault> {
    let mut scratch = Scratch::new(size).map_err(Fault::Spool)?;
    let mut hash = Sha256::new();
    let mut part = vec![0; PART.min(size as usize)];
    let mut at = 0;
    while at < size {
        let count = fill(content, &mut part)?;
        if count == 0 {
            return Err(Fault::broken("it ends early".into()));
        }
        hash.update(&part[..count]);
        scratch.write(&part[..count]).map_err(Fault::Spool)?;
        at += count as u64;
    }
    let scratch = Recorder { file: scratch.done(size).map_err(Fault::Spool)?, size, read: RefCell::default() };
    let ranges = if whole { vec![(0, size)] } else { scratch.ranges() };
    keep_ranges(writer, &scratch, &ranges).map_err(Fault::Spool)?;
    writer.end_file(size, ranges, Some(hash.finalize().into())).map_err(Fault::Spool)
}

/// Where an ELF file is put: in memory, or in a file without a name, which vanishes with the process.
enum Scratch {
    Memory(Vec<u8>),
    File(File),
}

impl Scratch {
    fn new(size: u64) -> io::Result<Self> {
        Ok(match size > IN_MEMORY {
            true => Self::File(tempfile::tempfile()?),
            false => Self::Memory(Vec::with_capacity(size as usize)),
        })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Memory(memory) => {
                memory.extend_from_slice(bytes);
                Ok(())
            }
            // Zeros need no room on the disk.
            Self::File(file) if bytes.iter().all(|byte| *byte == 0) => {
                file.seek(SeekFrom::Current(bytes.len() as i64)).map(drop)
            }
            Self::File(file) => file.write_all(bytes),
        }
    }

    fn done(self, size: u64) -> io::Result<Self> {
        if let Self::File(file) = &self {
            file.set_len(size)?;
        }
        Ok(self)
    }
}

/// Notes what is read of a file.
struct Recorder {
    file: Scratch,
    size: u64,
    read: RefCell<Vec<(u64, u64)>>,
}

impl ReadAt for Recorder {
    fn len(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let count = match &self.file {
            Scratch::Memory(memory) => memory.as_slice().read_at(offset, into)?,
            Scratch::File(file) => file.read_at(into, offset)?,
        };
        let mut read = self.read.borrow_mut();
        match read.last_mut() {
            // Reading on and on is one part.
            Some((start, length)) if *start + *length == offset => *length += count as u64,
            _ => read.push((offset, count as u64)),
        }
        Ok(count)
    }
}

impl Recorder {
    /// The parts of the file that the reader of ELF files looks at, now and when it is asked for names or texts later.
    fn ranges(&self) -> Vec<(u64, u64)> {
        let mut later = Vec::new();
        if let Ok(object) = Object::read(self) {
            later.extend(object.symbols.places().map(|place| place.start..place.end.saturating_add(BEYOND_NAMES)));
        }
        later.extend(elf::constants(self).unwrap_or_default());
        let mut parts = std::mem::take(&mut *self.read.borrow_mut());
        // What is no ELF file inside is looked at from its beginning.
        parts.push((0, BEGINNING));
        parts.extend(later.into_iter().map(|part| (part.start, part.end.saturating_sub(part.start))));
        merged(parts, self.size)
    }
}

/// Parts in order, those that meet as one, none beyond `size`.
fn merged(mut parts: Vec<(u64, u64)>, size: u64) -> Vec<(u64, u64)> {
    parts.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (start, length) in parts {
        let end = start.saturating_add(length).min(size);
        if start >= end {
            continue;
        }
        match merged.last_mut() {
            Some((first, length)) if start <= (*first + *length).saturating_add(GAP) => {
                *length = (*length).max(end - *first);
            }
            _ => merged.push((start, end - start)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_meet_are_one() {
        let parts = vec![(1000, 10), (0, 4), (4, 6), (1005, 2000), (50, 10), (5000, 1), (9000, 10)];
        assert_eq!(merged(parts, 5500), [(0, 60), (1000, 2005), (5000, 1)]);
    }

    #[test]
    fn texts() {
        let text = |path: &str, size| is_text(path.as_bytes(), path.rsplit('/').next().unwrap().as_bytes(), size);
        assert!(text("usr/lib/python3/dist-packages/torch-2.8.0.dist-info/METADATA", 1));
        assert!(text("./etc/ld.so.conf.d/x.conf", 1) && text("etc/os-release", 1) && text("a/b.py", 1));
        assert!(text("opt/conda/conda-meta/x.json", 1) && !text("opt/x.json", 1));
        assert!(!text("a/b.py", LARGEST_TEXT + 1) && !text("usr/share/doc/x", 1));
    }
}
