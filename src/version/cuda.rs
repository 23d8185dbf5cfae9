//! CUDA as people speak of it: a minor (`12.8`) that builds are made for, and a release of it (`12.8.1`).

use std::fmt;
use std::str::FromStr;

use super::{ParseError, serde_as_text};

/// A CUDA minor release, `12.8`: what driver support, PTX ISA and wheels are tied to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cuda {
    /// The family: minor-version compatibility holds inside it.
    pub major: u32,
    /// The minor inside the family.
    pub minor: u32,
}

impl Cuda {
    /// CUDA `major.minor`.
    pub fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }
}

impl FromStr for Cuda {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let error = || ParseError { given: text.into(), expected: "a CUDA version such as 12.8" };
        let (major, minor) = text.trim().split_once('.').ok_or_else(error)?;
        let number = |part: &str| part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok()).flatten();
        Ok(Self { major: number(major).ok_or_else(error)?, minor: number(minor).ok_or_else(error)? })
    }
}

impl fmt::Display for Cuda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{}", self.major, self.minor))
    }
}

serde_as_text!(Cuda);

/// One release of a CUDA minor: `12.8.1`. NVIDIA numbers these as semver.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CudaRelease(semver::Version);

impl CudaRelease {
    /// The minor that it is a release of.
    pub fn cuda(&self) -> Cuda {
        Cuda::new(self.0.major as u32, self.0.minor as u32)
    }
}

impl FromStr for CudaRelease {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        semver::Version::parse(text.trim())
            .ok()
            .filter(|v| v.major < 1000 && v.minor < 1000)
            .map(Self)
            .ok_or_else(|| ParseError { given: text.into(), expected: "a CUDA release such as 12.8.1" })
    }
}

impl fmt::Display for CudaRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.to_string())
    }
}

serde_as_text!(CudaRelease);
