//! What was fetched, on disk: takes an index, a package or wheel, gives what is known of it.
//!
//! Several processes may share the folder: an entry appears whole or not at all, the last writer wins, and an entry that
//! is damaged counts as absent. A folder that cannot be written only makes the next run slower. Names and contents hold
//! addresses without logins.
//!
//! `v1/<index>/pages/<package>` holds pages, `v1/<index>/wheels/<sha256>.<kind>` what was read from wheels. Wheels are
//! kept per index, since what a range request reads cannot be checked against the wheel's hash: one index must not be
//! able to speak for another.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::options::IndexSource;
use crate::diag::{Diagnostic, Evidence};
use crate::python::{PackageName, Wheel};

/// Changes with the format of the entries.
const VERSION: &str = "v1";

/// First line of an entry.
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
    /// Hash of the rest of the entry, which tells a damaged one.
    #[serde(default)]
    sha256: String,
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

pub(super) struct Cache {
    root: PathBuf,
    /// Why writing was given up.
    given_up: Mutex<Option<Diagnostic>>,
}

impl Cache {
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), given_up: Mutex::new(None) }
    }

    pub(super) fn page(&self, index: &IndexSource, package: &PackageName) -> PathBuf {
        self.folder(index).join("pages").join(format!("{package}.json"))
    }

    pub(super) fn wheel(&self, index: &IndexSource, wheel: &Wheel, kind: Kind) -> PathBuf {
        // A wheel without a hash is known by its address.
        let by_address = || hex(&Sha256::digest(wheel.url.as_deref().unwrap_or(&wheel.name.file)));
        let key = wheel.sha256.as_deref().map_or_else(by_address, str::to_owned);
        self.folder(index).join("wheels").join(format!("{key}.{}.json", kind.title().to_ascii_lowercase()))
    }

    fn folder(&self, index: &IndexSource) -> PathBuf {
        let key = hex(&Sha256::digest(index.url.as_str().trim_end_matches('/')));
        self.root.join(VERSION).join(&key[..16])
    }

    /// The entry at `path` if it is whole and about `about`.
    pub(super) fn read<T: DeserializeOwned>(&self, path: &Path, about: &str) -> Option<(Stamp, T)> {
        let bytes = fs::read(path).ok()?;
        let line = bytes.iter().position(|&byte| byte == b'\n')?;
        let (head, body) = (&bytes[..line], &bytes[line + 1..]);
        let stamp: Stamp = serde_json::from_slice(head).ok()?;
        if stamp.about != about || stamp.sha256 != hex(&Sha256::digest(body)) {
            return None;
        }
        Some((stamp, serde_json::from_slice(body).ok()?))
    }

    /// Keeps an entry. When that fails, nothing more is written in this run.
    pub(super) fn write<T: Serialize>(&self, path: &Path, mut stamp: Stamp, value: &T) {
        let mut given_up = self.given_up.lock().unwrap_or_else(PoisonError::into_inner);
        if given_up.is_some() {
            return;
        }
        let Ok(body) = serde_json::to_vec(value) else { return };
        stamp.sha256 = hex(&Sha256::digest(&body));
        let written = serde_json::to_vec(&stamp).map_err(io::Error::from).and_then(|mut bytes| {
            bytes.push(b'\n');
            bytes.extend_from_slice(&body);
            self.place(path, &bytes)
        });
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

    fn place(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let folder = path.parent().unwrap_or(&self.root);
        if !folder.is_dir() {
            fs::create_dir_all(folder)?;
            self.tag();
        }
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(folder)?;
        file.write_all(bytes)?;
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

/// Lower-case hex.
pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_entries_are_absent() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path());
        let path = folder.path().join("a/b.json");
        assert!(cache.read::<Vec<u32>>(&path, "x").is_none());
        cache.write(&path, Stamp::new("x".into()), &vec![1, 2, 3]);
        assert_eq!(cache.read::<Vec<u32>>(&path, "x").unwrap().1, [1, 2, 3]);
        assert!(cache.read::<Vec<u32>>(&path, "y").is_none());
        assert!(cache.read::<String>(&path, "x").is_none());
        let good = fs::read(&path).unwrap();
        for end in 0..good.len() {
            fs::write(&path, &good[..end]).unwrap();
            assert!(cache.read::<Vec<u32>>(&path, "x").is_none(), "{end}");
        }
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            fs::write(&path, &bad).unwrap();
            if let Some((_, value)) = cache.read::<Vec<u32>>(&path, "x") {
                assert_eq!(value, [1, 2, 3], "{at}");
            }
        }
        assert!(cache.warning().is_none());
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_one_warning() {
        let folder = tempfile::tempdir().unwrap();
        let blocked = folder.path().join("file");
        fs::write(&blocked, "").unwrap();
        let cache = Cache::new(&blocked);
        cache.write(&blocked.join("v1/x"), Stamp::new("x".into()), &1);
        cache.write(&blocked.join("v1/y"), Stamp::new("x".into()), &1);
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
