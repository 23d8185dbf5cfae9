//! `gpu.toml`: GPUs, what they are called, and which code runs on them.

use serde::Deserialize;

use super::Basis;
use crate::version::{Capability, Cuda, Driver, GpuCode};

/// `gpu.toml`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GpuFile {
    /// Compute capabilities.
    #[serde(rename = "gpu")]
    pub gpus: Vec<GpuRow>,
    /// Product names.
    #[serde(rename = "product")]
    pub products: Vec<ProductRow>,
    /// Names that several products share.
    #[serde(rename = "ambiguous", default)]
    pub ambiguous: Vec<AmbiguousRow>,
    /// How typed names are matched.
    pub names: NamesRow,
    /// Where SASS runs.
    #[serde(rename = "cubin")]
    pub cubins: Vec<CubinRow>,
    /// Where code with suffix `f` runs.
    #[serde(rename = "family", default)]
    pub families: Vec<CodeFamilyRow>,
}

/// A compute capability.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GpuRow {
    /// The capability.
    pub capability: Capability,
    /// "Blackwell".
    pub architecture: String,
    /// First CUDA that knows it.
    pub first_cuda: Option<Cuda>,
    /// Last CUDA that supports it; absent while it is supported.
    pub last_cuda: Option<Cuda>,
    /// First driver, where documented.
    pub first_driver: Option<Driver>,
    /// Last driver branch; absent while it is supported.
    pub last_branch: Option<u32>,
    /// Built into a system on chip: code for cards does not run there, and the reverse.
    #[serde(default)]
    pub tegra: bool,
    /// For a system on chip: the CUDA from which packages for Arm servers run on it. Absent: none do.
    pub sbsa_from_cuda: Option<Cuda>,
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

/// What a GPU is sold as; forward compatibility is for data-centre GPUs alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GpuClass {
    /// Consumer cards.
    Geforce,
    /// Workstation cards.
    Workstation,
    /// Data-centre GPUs.
    DataCenter,
    /// Systems on chip.
    Jetson,
}

/// Product names of one capability and class.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ProductRow {
    /// Their capability.
    pub capability: Capability,
    /// Their class.
    pub class: GpuClass,
    /// Names as `nvidia-smi` prints them, without the vendor.
    pub names: Vec<String>,
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

/// A name that several products share.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AmbiguousRow {
    /// The name.
    pub name: String,
    /// What it may mean; empty when the others are not in the matrix.
    pub candidates: Vec<String>,
    /// The capabilities that they have.
    pub capabilities: Vec<Capability>,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// How typed names are matched.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct NamesRow {
    /// Words that may be there or not.
    pub optional_words: Vec<String>,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// Where a cubin runs: from one capability up to another, or on named ones.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CubinRow {
    /// The code.
    pub code: GpuCode,
    /// Least capability.
    pub from: Option<Capability>,
    /// First capability above.
    pub below: Option<Capability>,
    /// Not on these.
    #[serde(default)]
    pub except: Vec<Capability>,
    /// The exception is lifted for code built with this CUDA or a later one.
    pub except_until_cuda: Option<Cuda>,
    /// On these alone.
    pub only: Option<Vec<Capability>>,
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

/// Where family-specific code runs.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CodeFamilyRow {
    /// The code.
    pub code: GpuCode,
    /// The family.
    pub serves: Vec<Capability>,
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
