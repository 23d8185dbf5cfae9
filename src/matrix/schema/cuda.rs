//! `cuda/*.toml` and `driver.toml`: CUDA releases and the drivers that run them.

use serde::Deserialize;

use crate::version::{Cuda, CudaRelease, Driver, PtxIsa};

/// `cuda/12.8.toml`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CudaFile {
    /// The minor.
    pub cuda: Cuda,
    /// PTX ISA that its compiler emits and its driver accepts.
    pub ptx_isa: Option<PtxIsa>,
    /// Driver branch that belongs to it.
    pub branch: Option<u32>,
    /// Releases, oldest first.
    #[serde(rename = "release")]
    pub releases: Vec<CudaReleaseRow>,
    /// A remark for people.
    pub note: Option<String>,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// One CUDA release.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CudaReleaseRow {
    /// Three numbers.
    pub version: CudaRelease,
    /// Linux driver that it is bundled with.
    pub driver: Option<Driver>,
    /// A remark for people.
    pub note: Option<String>,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// `driver.toml`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DriverFile {
    /// Minor-version compatibility, by CUDA family.
    #[serde(rename = "family")]
    pub families: Vec<FamilyRow>,
    /// Driver branches.
    #[serde(rename = "branch")]
    pub branches: Vec<BranchRow>,
    /// Forward compatibility, by CUDA minor.
    #[serde(rename = "forward", default)]
    pub forward: Vec<ForwardRow>,
}

/// The least driver of a CUDA family.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FamilyRow {
    /// Family.
    pub cuda: u32,
    /// Least driver that runs it.
    pub floor: Driver,
    /// A remark for people.
    pub note: Option<String>,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// A driver branch.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BranchRow {
    /// First number of its drivers.
    pub branch: u32,
    /// CUDA that it supports natively.
    pub cuda: Option<Cuda>,
    /// "Production", "LTS", "New Feature".
    pub designation: Option<String>,
    /// End of life.
    pub eol: Option<String>,
    /// A remark for people.
    pub note: Option<String>,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// Branches on which the cuda-compat package of a CUDA minor may be used.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ForwardRow {
    /// The CUDA minor of the package.
    pub cuda: Cuda,
    /// Base driver branches.
    pub branches: Vec<u32>,
    /// A remark for people.
    pub note: Option<String>,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}
