//! What a machine can run: platform, Python version, glibc, and which wheel tags fit (PEP 425, PEP 600).

use std::fmt;
use std::str::FromStr;

use crate::version::{Glibc, ParseError};

/// Operating system and processor of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Platform {
    /// `linux-x86_64`
    #[default]
    LinuxX86_64,
    /// `linux-aarch64`
    LinuxAarch64,
}

impl Platform {
    /// All platforms.
    pub const ALL: [Self; 2] = [Self::LinuxX86_64, Self::LinuxAarch64];

    /// Its name in manifests, locks and facts.
    fn name(self) -> &'static str {
        match self {
            Self::LinuxX86_64 => "linux-x86_64",
            Self::LinuxAarch64 => "linux-aarch64",
        }
    }

    /// The processor, as `uname -m` prints it.
    pub fn machine(self) -> &'static str {
        match self {
            Self::LinuxX86_64 => "x86_64",
            Self::LinuxAarch64 => "aarch64",
        }
    }

    /// The processor, as images of containers name it (GOARCH).
    pub fn architecture(self) -> &'static str {
        match self {
            Self::LinuxX86_64 => "amd64",
            Self::LinuxAarch64 => "arm64",
        }
    }
}

impl FromStr for Platform {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::ALL
            .into_iter()
            .find(|platform| platform.name() == text)
            .ok_or_else(|| ParseError { given: text.into(), expected: "a platform: linux-x86_64 or linux-aarch64" })
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

crate::version::serde_as_text!(Platform);

/// A Python minor version, `3.11`; `free_threaded` is the build without the global lock (`3.13t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PythonVersion {
    /// 3 for every Python that matters here.
    pub major: u32,
    /// 11 of 3.11.
    pub minor: u32,
    /// ABI tag `t`.
    pub free_threaded: bool,
}

impl PythonVersion {
    /// The interpreter tag of CPython: `cp311`, `cp313t`.
    pub fn tag(self) -> String {
        format!("cp{}{}{}", self.major, self.minor, if self.free_threaded { "t" } else { "" })
    }

    /// Reads an interpreter tag: `cp311`, `cp313t`.
    pub fn from_tag(tag: &str) -> Option<Self> {
        let digits = tag.strip_prefix("cp")?;
        let (digits, free_threaded) = match digits.strip_suffix('t') {
            Some(digits) => (digits, true),
            None => (digits, false),
        };
        if digits.len() < 2 || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let (major, minor) = digits.split_at(1);
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()?, free_threaded })
    }
}

impl FromStr for PythonVersion {
    type Err = ParseError;

    /// Takes `3.11`, `3.11.4` (the patch is dropped: wheels do not depend on it) and `3.13t`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let error = || ParseError { given: text.into(), expected: "a Python version such as 3.11" };
        let trimmed = text.trim();
        let (numbers, free_threaded) = match trimmed.strip_suffix('t') {
            Some(numbers) => (numbers, true),
            None => (trimmed, false),
        };
        let parts: Vec<u32> = numbers
            .split('.')
            .map(|part| part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok()).flatten())
            .collect::<Option<_>>()
            .ok_or_else(error)?;
        match parts[..] {
            [major @ 3, minor] | [major @ 3, minor, _] => Ok(Self { major, minor, free_threaded }),
            _ => Err(error()),
        }
    }
}

impl fmt::Display for PythonVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{}{}", self.major, self.minor, if self.free_threaded { "t" } else { "" }))
    }
}

crate::version::serde_as_text!(PythonVersion);

/// What wheels are installed into: decides which wheel tags fit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Runtime {
    /// Platform.
    pub platform: Platform,
    /// Python.
    pub python: PythonVersion,
    /// The oldest glibc of the target; `None` accepts what any wheel asks for.
    pub glibc: Option<Glibc>,
}
