//! `/etc/ld.so.cache`: takes its bytes, gives its entries (glibc, sysdeps/generic/dl-cache.h, format 1.1).

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::python::Platform;

const OLD: &[u8] = b"ld.so-1.7.0";
const NEW: &[u8] = b"glibc-ld.so.cache1.1";
const HEADER: usize = 48;
const ENTRY: usize = 24;
/// Of the table of extensions.
const EXTENSIONS: u32 = 0xEAA4_2174;
/// The extension that names folders below `glibc-hwcaps`.
const HWCAPS: u32 = 1;
/// In an entry's `hwcap`: its lower half is an index into those names.
const NAMED: u64 = 1 << 62;
/// Kinds of library, in an entry's flags: ELF for glibc, and the processor in the next byte.
const LIBC6_X86_64: u32 = 0x0303;
const LIBC6_AARCH64: u32 = 0x0a03;
/// More entries than any machine has.
const MOST: usize = 1 << 20;
/// Names may overlap, but not so that they are more than this together, in bytes.
const MOST_TEXT: usize = 64 << 20;

/// The cache that ldconfig writes and ld.so reads.
#[derive(Debug, Default)]
pub struct Cache {
    entries: Vec<CacheEntry>,
    by_name: HashMap<String, Vec<usize>>,
}

/// One library in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheEntry {
    /// The name that is looked up.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// The flags as they stand: kind of library and processor.
    pub flags: u32,
    /// The folder below `glibc-hwcaps` that it is for.
    pub hwcap: Option<String>,
}

impl CacheEntry {
    /// Whether ld.so of that platform would take it.
    pub fn serves(&self, platform: Platform) -> bool {
        self.flags
            == match platform {
                Platform::LinuxX86_64 => LIBC6_X86_64,
                Platform::LinuxAarch64 => LIBC6_AARCH64,
            }
    }
}

impl Cache {
    /// Reads the cache; entries whose names lie outside the file are left out.
    ///
    /// # Errors
    /// Why it is no cache, as the end of a sentence.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let base = match bytes.strip_prefix(OLD) {
            // The old format comes first, for programs older than glibc 2.2: 16 bytes and 12 for each library.
            Some(_) => {
                let count = word(bytes, 12, false).ok_or("it ends in its header")? as usize;
                count.checked_mul(12).map(|size| (16 + size).next_multiple_of(8)).ok_or("its header is damaged")?
            }
            None => 0,
        };
        let file = bytes.get(base..).ok_or("it ends before the entries that ld.so reads")?;
        if !file.starts_with(NEW) {
            return Err("it does not begin as a cache of glibc 2.2 or later".into());
        }
        // 0 was written before 2.33 and means the byte order of the machine, which is little-endian wherever CUDA runs.
        let big = match file.get(28) {
            Some(flags) => flags & 3 == 3,
            None => return Err("it ends in its header".into()),
        };
        let number = |at: usize| word(file, at, big);
        let count = number(20).ok_or("it ends in its header")? as usize;
        if count > MOST || file.len() < HEADER + count * ENTRY {
            return Err(format!("it says that it has {count} entries, but ends before"));
        }
        let hwcaps = hwcaps(file, big);
        let mut cache = Self::default();
        let mut left = MOST_TEXT;
        for at in (0..count).map(|i| HEADER + i * ENTRY) {
            let [Some(flags), Some(key), Some(value)] = [number(at), number(at + 4), number(at + 8)] else { continue };
            let (Some(name), Some(path)) = (text(file, key), text(file, value)) else { continue };
            left = left.checked_sub(name.len() + path.len()).ok_or("its names are longer than those of any machine")?;
            let (low, high) = if big { (at + 20, at + 16) } else { (at + 16, at + 20) };
            let hwcap = number(low).zip(number(high)).map_or(0, |(low, high)| u64::from(high) << 32 | u64::from(low));
            let named = if hwcap & NAMED == 0 { None } else { hwcaps.get(hwcap as u32 as usize).cloned() };
            let name = String::from_utf8_lossy(name).into_owned();
            cache.by_name.entry(name.clone()).or_default().push(cache.entries.len());
            let path = Path::new(OsStr::from_bytes(path)).to_owned();
            cache.entries.push(CacheEntry { name, path, flags, hwcap: named });
        }
        Ok(cache)
    }

    /// All entries, in the order of the file.
    pub fn entries(&self) -> &[CacheEntry] {
        &self.entries
    }

    /// The entries for a name on a platform, in the order of the file: those for newer processors come first.
    pub fn lookup<'c>(&'c self, name: &str, platform: Platform) -> impl Iterator<Item = &'c CacheEntry> {
        let found = self.by_name.get(name).map(Vec::as_slice).unwrap_or_default();
        found.iter().map(|at| &self.entries[*at]).filter(move |entry| entry.serves(platform))
    }
}

/// The names of folders below `glibc-hwcaps`, by their index.
fn hwcaps(file: &[u8], big: bool) -> Vec<String> {
    let number = |at: usize| word(file, at, big);
    let Some(start) = number(32).map(|at| at as usize).filter(|at| *at != 0) else { return Vec::new() };
    if number(start) != Some(EXTENSIONS) {
        return Vec::new();
    }
    let sections = number(start + 4).unwrap_or(0).min(64) as usize;
    let section = (0..sections).map(|i| start + 8 + i * 16).find(|at| number(*at) == Some(HWCAPS));
    let Some((offset, size)) = section.and_then(|at| Some((number(at + 8)? as usize, number(at + 12)? as usize)))
    else {
        return Vec::new();
    };
    let names = (0..size.min(4096) / 4).map_while(|i| text(file, number(offset + i * 4)?));
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

fn word(bytes: &[u8], at: usize, big: bool) -> Option<u32> {
    let four: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    Some(if big { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) })
}

/// The bytes up to the next zero.
fn text(bytes: &[u8], at: u32) -> Option<&[u8]> {
    let rest = bytes.get(at as usize..)?;
    let end = rest.iter().take(4097).position(|byte| *byte == 0)?;
    Some(&rest[..end])
}
