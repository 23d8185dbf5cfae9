//! `cudnn/*.toml`: cuDNN releases and the GPUs that each has code for.

use serde::Deserialize;

use super::Basis;
use crate::python::Platform;
use crate::version::{Capability, Cudnn, Driver, Glibc, GpuCode};

/// `cudnn/9.10.toml`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CudnnFile {
    /// The minor.
    pub cudnn: Cudnn,
    /// Releases, oldest first.
    #[serde(rename = "release")]
    pub releases: Vec<CudnnReleaseRow>,
    /// A remark for people.
    pub note: Option<String>,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// One cuDNN release.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CudnnReleaseRow {
    /// As the wheel has it, else as documented.
    pub version: Cudnn,
    /// Withdrawn.
    #[serde(default)]
    pub yanked: bool,
    /// One a CUDA family.
    #[serde(rename = "build", default)]
    pub builds: Vec<CudnnBuildRow>,
    /// A remark for people.
    pub note: Option<String>,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// cuDNN for one CUDA family.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CudnnBuildRow {
    /// Family.
    pub cuda: u32,
    /// CUDA minors that are documented to work.
    pub cuda_range: Option<String>,
    /// Least driver, where documented.
    pub driver: Option<Driver>,
    /// GPU code that was read from the x86_64 wheel.
    pub code: Option<Vec<GpuCode>>,
    /// Documented capabilities.
    pub capabilities: Option<Vec<Capability>>,
    /// Platforms of the wheel.
    #[serde(default)]
    pub platforms: Vec<Platform>,
    /// glibc by the wheel's tag.
    pub glibc: Option<Glibc>,
    /// A remark for people.
    pub note: Option<String>,
    /// How it is known.
    #[serde(default)]
    pub basis: Basis,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}
