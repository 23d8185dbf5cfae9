//! The files of the matrix: those embedded in the program, under those of a directory that is laid over them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::OnceLock;

use data_encoding::HEXLOWER;
use flate2::read::DeflateDecoder;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use crate::diag::{Diagnostic, Evidence, Failure, SourceText};

/// Files of the matrix that stand alone; all others lie in folders of their kind. A directory that has all of them is a
/// matrix of its own.
pub(super) const SINGLE: [&str; 13] = [
    "dlopen.toml",
    "driver.toml",
    "env-vars.toml",
    "gpu-code.toml",
    "gpu.toml",
    "image/nvidia-cuda.toml",
    "image/os.toml",
    "image/python.toml",
    "index.toml",
    "message.toml",
    "package.toml",
    "pci.toml",
    "snapshot/INDEX.toml",
];

/// One embedded file.
pub struct Embedded {
    /// Path below `compat-matrix/`.
    path: &'static str,
    /// Its text: of TOML deflated, of the snapshot line by line as `lines` says.
    bytes: &'static [u8],
    /// The same as MessagePack, for TOML files.
    packed: &'static [u8],
    /// For the snapshot: the version of each line, its length in bytes with its end, and where it is deflated, the
    /// length of that.
    lines: &'static str,
    /// The whole text, once it was asked for.
    text: OnceLock<String>,
}

impl Embedded {
    const fn new(path: &'static str, bytes: &'static [u8], packed: &'static [u8], lines: &'static str) -> Self {
        Self { path, bytes, packed, lines, text: OnceLock::new() }
    }

    fn text(&self) -> &str {
        self.text.get_or_init(|| match self.packed {
            [] => self.releases().map(|(_, line)| line.text()).collect(),
            _ => inflated(self.bytes, 0),
        })
    }

    /// Version and line, each.
    fn releases(&self) -> impl Iterator<Item = (&'static str, RawLine<'static>)> {
        let mut rest = self.bytes;
        let mut take = move |length: &str| {
            let (line, after) = rest.split_at_checked(length.parse().ok()?)?;
            rest = after;
            Some(line)
        };
        self.lines.lines().filter_map(move |entry| {
            let mut words = entry.split(' ');
            let (version, length) = (words.next()?, words.next()?);
            let line = match words.next() {
                Some(deflated) => RawLine::Deflated { bytes: take(deflated)?, length: length.parse().ok()? },
                None => RawLine::Text(str::from_utf8(take(length)?).ok()?),
            };
            Some((version, line))
        })
    }
}

/// A line of the snapshot that nobody has read yet.
#[derive(Debug, Clone, Copy)]
pub enum RawLine<'a> {
    /// As it is.
    Text(&'a str),
    /// Embedded, and long.
    Deflated {
        bytes: &'static [u8],
        /// Bytes of its text.
        length: usize,
    },
}

impl<'a> RawLine<'a> {
    /// Its text.
    pub fn text(self) -> Cow<'a, str> {
        match self {
            Self::Text(text) => text.into(),
            Self::Deflated { bytes, length } => inflated(bytes, length).into(),
        }
    }
}

/// What the build script deflated, of about `length` bytes.
fn inflated(bytes: &[u8], length: usize) -> String {
    let mut text = String::with_capacity(length);
    DeflateDecoder::new(bytes).read_to_string(&mut text).expect("the build script wrote it");
    text
}

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// Embedded files and those laid over them, by path below `compat-matrix/`.
#[derive(Debug, Default, Clone)]
pub struct Files {
    /// Path to text. A file here replaces the embedded one of the same path.
    pub overlay: BTreeMap<String, String>,
    /// How the user named the overlay's directory.
    pub overlay_name: String,
    /// The overlay is a whole matrix: there are no embedded files below it.
    pub alone: bool,
}

impl Files {
    /// Paths that begin with `prefix` and end with `suffix`, sorted.
    pub fn paths(&self, prefix: &str, suffix: &str) -> Vec<&str> {
        let wanted = |path: &&str| path.starts_with(prefix) && path.ends_with(suffix);
        let below = if self.alone { &[] } else { &EMBEDDED[..] };
        let mut paths: Vec<&str> = below.iter().map(|file| file.path).filter(wanted).collect();
        paths.extend(self.overlay.keys().map(String::as_str).filter(wanted));
        paths.sort_unstable();
        paths.dedup();
        paths
    }

    /// Whether a file comes from the directory laid over the embedded ones.
    pub fn is_overlaid(&self, path: &str) -> bool {
        self.overlay.contains_key(path)
    }

    /// The text of a file.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.overlay.get(path).map(String::as_str).or_else(|| self.embedded(path).map(Embedded::text))
    }

    /// The lines of a file of the snapshot that are not empty, each with the version that it begins with; that is empty
    /// where it begins with none.
    pub fn releases(&self, path: &str) -> Vec<(&str, RawLine<'_>)> {
        if let Some(text) = self.overlay.get(path) {
            let lines = text.lines().filter(|line| !line.is_empty());
            return lines.map(|line| (version_of(line).unwrap_or_default(), RawLine::Text(line))).collect();
        }
        self.embedded(path).map(|file| file.releases().collect()).unwrap_or_default()
    }

    /// The hash of all facts, `sha256:` and hex: of the embedded ones, and of what is laid over them.
    pub fn digest(&self) -> String {
        if self.overlay.is_empty() {
            return DIGEST.to_owned();
        }
        let mut hash = Sha256::new();
        hash.update(DIGEST);
        for (path, text) in &self.overlay {
            hash.update(path);
            hash.update([0]);
            hash.update(text.len().to_le_bytes());
            hash.update(text);
        }
        format!("sha256:{}", HEXLOWER.encode(&hash.finalize()))
    }

    /// The name that messages give a file.
    pub fn name<'a>(&self, path: &'a str) -> Cow<'a, str> {
        if self.alone || self.overlay.contains_key(path) {
            format!("{}/{path}", self.overlay_name).into()
        } else {
            format!("compat-matrix/{path}").into()
        }
    }

    /// A TOML file as `T`.
    ///
    /// # Errors
    /// A file that is missing, is not TOML, or does not have the form of `T`: with the place in it.
    pub fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        if let Some(text) = self.overlay.get(path) {
            return toml_edit::de::from_str(text).map_err(|error| {
                let place = SourceText::new(&self.name(path), text).span(error.span());
                let message = error.message().trim_end().replace('\n', "; ");
                Failure::unanswerable(Diagnostic::error("matrix-invalid", message, place))
            });
        }
        let invalid = |why: String| {
            let evidence = Evidence::observed(self.name(path), why);
            Failure::unanswerable(Diagnostic::error("matrix-invalid", "the matrix cannot be read", evidence))
        };
        let file = self.embedded(path).ok_or_else(|| invalid("no such file".into()))?;
        rmp_serde::from_slice(file.packed).map_err(|error| invalid(error.to_string()))
    }

    /// The embedded file of that path, unless the overlay stands alone.
    fn embedded(&self, path: &str) -> Option<&'static Embedded> {
        let found = EMBEDDED.binary_search_by(|file| file.path.cmp(path)).ok();
        found.filter(|_| !self.alone).map(|i| &EMBEDDED[i])
    }
}

/// The version that a line of the snapshot begins with, so that the rest can wait.
fn version_of(line: &str) -> Option<&str> {
    let (version, _) = line.strip_prefix(r#"{"version":""#)?.split_once('"')?;
    Some(version)
}
