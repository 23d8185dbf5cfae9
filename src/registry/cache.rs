//! What was fetched, on disk: takes an index, a package or wheel, gives what is known of it.
//!
//! Several processes may share the folder: an entry appears whole or not at all, the last writer wins, and an entry that
//! is damaged or in another format counts as absent. A folder that cannot be written only makes the next run slower.
//! Names and contents hold addresses without logins.
//!
//! `v2/<index>/pages/<package>` holds pages, `v2/<index>/wheels/<sha256>.<kind>` what was read from wheels. Wheels are
//! kept per index, since what a range request reads cannot be checked against the wheel's hash: one index must not be
//! able to speak for another.
//!
//! An entry is a line with the CRC-32 of all that follows, a line of JSON, the head, and a body that its head describes.
//! The checksum tells what went wrong on the disk; it is no protection against who may write there.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use data_encoding::HEXLOWER;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::options::IndexSource;
use crate::diag::{Diagnostic, Evidence};
use crate::python::{PackageName, Wheel};

/// Changes with the format of the entries.
const VERSION: &str = "v2";
/// The line with the checksum: eight hex digits.
const SUM_LINE: usize = 9;
/// Bytes that are read at once.
const PART: usize = 64 << 10;

/// Where an entry is from, and how long it is good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub(super) struct Stamp {
    /// Address or file name that the entry is about.
    pub(super) about: String,
    /// When it was fetched or last confirmed, in seconds since 1970.
    pub(super) fetched: u64,
    /// Seconds for which it need not be asked for again; absent where the server did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) max_age: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) etag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) last_modified: Option<String>,
}

impl Stamp {
    pub(super) fn new(about: String) -> Self {
        let fetched = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Self { about, fetched, ..Self::default() }
    }

    pub(super) fn time(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.fetched)
    }

    /// Whether it is younger than its limit. A time in the future comes from a wrong clock and does not count.
    pub(super) fn fresh(&self, default: Duration) -> bool {
        let limit = self.max_age.map_or(default, Duration::from_secs);
        SystemTime::now().duration_since(self.time()).is_ok_and(|age| age < limit)
    }
}

/// What is kept of a wheel.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Metadata,
    Libraries,
}

impl Kind {
    /// The file that it is from.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Metadata => "METADATA",
            Self::Libraries => "RECORD",
        }
    }
}

/// The head of an entry.
#[derive(Serialize, Deserialize)]
struct Head<T> {
    stamp: Stamp,
    value: T,
}

/// What follows the head of an entry, to be read in parts.
#[derive(Debug)]
pub(super) enum Body {
    Memory(Vec<u8>),
    /// An open file, which stays as it is when another process puts a new entry in its place, and where the body is in it.
    File(File, Range<u64>),
}

impl Body {
    /// Its length in bytes.
    pub(super) fn length(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File(_, at) => at.end - at.start,
        }
    }

    /// A part of it, which must lie inside.
    pub(super) fn part(&self, part: Range<u64>) -> io::Result<Cow<'_, [u8]>> {
        match self {
            Self::Memory(bytes) => Ok(Cow::Borrowed(&bytes[part.start as usize..part.end as usize])),
            Self::File(file, at) => {
                let mut bytes = vec![0; (part.end - part.start) as usize];
                file.read_exact_at(&mut bytes, at.start + part.start)?;
                Ok(Cow::Owned(bytes))
            }
        }
    }
}

pub(super) struct Cache {
    root: PathBuf,
    /// Nothing is written to it in this run.
    read_only: bool,
    /// Folders of indexes, by name.
    folders: Mutex<HashMap<Arc<str>, PathBuf>>,
    /// What was in a folder when it was first looked into; kept where nothing is written.
    listings: Mutex<HashMap<PathBuf, HashSet<OsString>>>,
    /// Why writing was given up.
    given_up: Mutex<Option<Diagnostic>>,
}

impl Cache {
    pub(super) fn new(root: &Path, read_only: bool) -> Self {
        Self {
            root: root.to_owned(),
            read_only,
            folders: Mutex::default(),
            listings: Mutex::default(),
            given_up: Mutex::new(None),
        }
    }

    pub(super) fn page(&self, index: &IndexSource, package: &PackageName) -> PathBuf {
        self.folder(index).join("pages").join(format!("{package}.json"))
    }

    pub(super) fn wheel(&self, index: &IndexSource, wheel: &Wheel, kind: Kind) -> PathBuf {
        // A wheel without a hash is known by its address.
        let by_address = || HEXLOWER.encode(&Sha256::digest(wheel.url.as_deref().unwrap_or(&wheel.name.file)));
        let key = wheel.sha256.as_deref().map_or_else(by_address, str::to_owned);
        self.folder(index).join("wheels").join(format!("{key}.{}.json", kind.title().to_ascii_lowercase()))
    }

    fn folder(&self, index: &IndexSource) -> PathBuf {
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = folders.entry(Arc::clone(&index.name)).or_insert_with(|| {
            let key = HEXLOWER.encode(&Sha256::digest(index.url.as_str().trim_end_matches('/')));
            self.root.join(VERSION).join(&key[..16])
        });
        folder.clone()
    }

    /// The entry at `path` if it is whole and about `about`.
    pub(super) fn read<T: DeserializeOwned>(&self, path: &Path, about: &str) -> Option<(Stamp, T)> {
        self.open(path, about).map(|(stamp, value, _)| (stamp, value))
    }

    /// The same with its body. The whole entry is checked, and only its head kept in memory.
    pub(super) fn open<T: DeserializeOwned>(&self, path: &Path, about: &str) -> Option<(Stamp, T, Body)> {
        if !self.may_hold(path) {
            return None;
        }
        let mut reader = BufReader::with_capacity(PART, File::open(path).ok()?);
        let mut sum_line = [0; SUM_LINE];
        reader.read_exact(&mut sum_line).ok()?;
        let mut head = Vec::new();
        reader.read_until(b'\n', &mut head).ok()?;
        let mut sum = crc32fast::Hasher::new();
        sum.update(&head);
        let mut end = (sum_line.len() + head.len()) as u64;
        let start = end;
        loop {
            let part = reader.fill_buf().ok()?;
            if part.is_empty() {
                break;
            }
            sum.update(part);
            let length = part.len();
            end += length as u64;
            reader.consume(length);
        }
        if sum_line != *self::sum_line(sum).as_bytes() {
            return None;
        }
        let Head { stamp, value }: Head<T> = serde_json::from_slice(&head).ok()?;
        (stamp.about == about).then(|| (stamp, value, Body::File(reader.into_inner(), start..end)))
    }

    /// Whether it is worth the while to open an entry. A run that only reads asks for hundreds that are not there: it lists
    /// their folder once.
    fn may_hold(&self, path: &Path) -> bool {
        let (Some(folder), Some(name), true) = (path.parent(), path.file_name(), self.read_only) else { return true };
        let mut listings = self.listings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listing) = listings.get(folder) {
            return listing.contains(name);
        }
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let listing: HashSet<OsString> = entries.map(|entry| entry.file_name()).collect();
        let held = listing.contains(name);
        listings.insert(folder.to_owned(), listing);
        held
    }

    /// Keeps an entry. When that fails, nothing more is written in this run.
    pub(super) fn write<T: Serialize>(&self, path: &Path, stamp: Stamp, value: &T, body: &[u8]) {
        let mut given_up = self.given_up.lock().unwrap_or_else(PoisonError::into_inner);
        if given_up.is_some() {
            return;
        }
        let Ok(mut head) = serde_json::to_vec(&Head { stamp, value }) else { return };
        head.push(b'\n');
        let mut sum = crc32fast::Hasher::new();
        sum.update(&head);
        sum.update(body);
        let written = self.place(path, &[sum_line(sum).as_bytes(), &head, body]);
        if let Err(error) = written {
            *given_up = Some(
                Diagnostic::warning(
                    "cache-unwritable",
                    format!("the cache in {} cannot be written, so the next run fetches again", self.root.display()),
                    Evidence::observed(path.display().to_string(), error.to_string()),
                )
                .fix("free space there, or name another folder with GPULOCK_CACHE_DIR"),
            );
        }
    }

    fn place(&self, path: &Path, parts: &[&[u8]]) -> io::Result<()> {
        let folder = path.parent().unwrap_or(&self.root);
        if !folder.is_dir() {
            fs::create_dir_all(folder)?;
            self.tag();
        }
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(folder)?;
        for part in parts {
            file.write_all(part)?;
        }
        file.persist(path)?;
        Ok(())
    }

    /// Tells backup programs to pass the folder over. A cache without the tag works as well.
    fn tag(&self) {
        let text = "Signature: 8a477f597d28d172789f06886806bc55\n# Made by gpulock; may be deleted at any time.\n";
        let path = self.root.join("CACHEDIR.TAG");
        if !path.exists() {
            let _ = fs::write(path, text);
        }
    }

    /// Forgets an entry.
    pub(super) fn remove(&self, path: &Path) {
        // Absent, or in a folder that cannot be written: both leave things as they are.
        let _ = fs::remove_file(path);
    }

    /// A nameless file for a download, in the cache folder if that can be written: it vanishes with the process.
    pub(super) fn scratch(&self) -> io::Result<fs::File> {
        let folder = self.root.join(VERSION);
        fs::create_dir_all(&folder).and_then(|()| tempfile::tempfile_in(&folder)).or_else(|_| tempfile::tempfile())
    }

    /// Why writing was given up, if it was.
    pub(super) fn warning(&self) -> Option<Diagnostic> {
        self.given_up.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The first line of an entry.
fn sum_line(sum: crc32fast::Hasher) -> String {
    format!("{:08x}\n", sum.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_entries_are_absent() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path(), false);
        let path = folder.path().join("a/b.json");
        let read = |about: &str| {
            let (_, value, body) = cache.open::<Vec<u32>>(&path, about)?;
            Some((value, body.part(0..body.length()).unwrap().into_owned()))
        };
        let right = (vec![1, 2, 3], b"body\n".to_vec());
        assert!(read("x").is_none());
        cache.write(&path, Stamp::new("x".into()), &right.0, &right.1);
        assert_eq!(read("x").as_ref(), Some(&right));
        assert!(read("y").is_none());
        assert!(cache.read::<String>(&path, "x").is_none());
        let good = fs::read(&path).unwrap();
        for end in 0..good.len() {
            fs::write(&path, &good[..end]).unwrap();
            assert!(read("x").is_none(), "cut off after {end}");
        }
        for at in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[at / 8] ^= 1 << (at % 8);
            fs::write(&path, &bad).unwrap();
            assert!(read("x").is_none(), "bit {at}");
        }
        fs::write(&path, [&good[..], b"\n"].concat()).unwrap();
        assert!(read("x").is_none(), "too long");
        // As version 1 had it.
        fs::write(&path, "{\"about\":\"x\",\"fetched\":1,\"sha256\":\"00\"}\n[1,2,3]").unwrap();
        assert!(read("x").is_none(), "older format");
        assert!(cache.warning().is_none());
    }

    #[test]
    fn an_open_body_outlives_its_entry() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path(), false);
        let path = folder.path().join("x");
        cache.write(&path, Stamp::new("x".into()), &1, b"first");
        let (_, _, body) = cache.open::<u32>(&path, "x").unwrap();
        cache.write(&path, Stamp::new("x".into()), &2, b"second");
        assert_eq!(&*body.part(1..5).unwrap(), b"irst");
        cache.remove(&path);
        assert_eq!(&*body.part(0..body.length()).unwrap(), b"first");
    }

    #[test]
    fn a_cache_that_is_only_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(VERSION).join("x");
        assert!(Cache::new(folder.path(), true).read::<u32>(&path, "x").is_none());
        Cache::new(folder.path(), false).write(&path, Stamp::new("x".into()), &1, b"");
        assert_eq!(Cache::new(folder.path(), true).read::<u32>(&path, "x").unwrap().1, 1);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_one_warning() {
        let folder = tempfile::tempdir().unwrap();
        let blocked = folder.path().join("file");
        fs::write(&blocked, "").unwrap();
        let cache = Cache::new(&blocked, false);
        cache.write(&blocked.join("v2/x"), Stamp::new("x".into()), &1, b"");
        cache.write(&blocked.join("v2/y"), Stamp::new("x".into()), &1, b"");
        assert_eq!(cache.warning().unwrap().code, "cache-unwritable");
        assert!(cache.scratch().is_ok());
    }

    #[test]
    fn freshness() {
        let mut stamp = Stamp::new("x".into());
        let hour = Duration::from_secs(3600);
        assert!(stamp.fresh(hour));
        stamp.max_age = Some(0);
        assert!(!stamp.fresh(hour));
        stamp.max_age = Some(60);
        stamp.fetched += 1000;
        assert!(!stamp.fresh(hour));
        stamp.fetched -= 1030;
        assert!(stamp.fresh(hour));
        stamp.fetched -= 60;
        assert!(!stamp.fresh(hour));
    }
}
