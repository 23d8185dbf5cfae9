//! `gpu-code.toml`: how libraries keep their GPU code, and which of it a stack does without.

use serde::Deserialize;

use super::Basis;
use crate::version::Capability;

/// `gpu-code.toml`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GpuCodeFile {
    /// What the CUDA runtime leaves in every library that is linked with it.
    pub stub: StubRow,
    /// Libraries that keep containers of their own for each architecture.
    #[serde(rename = "per-architecture")]
    pub per_architecture: Vec<PerArchitectureRow>,
    /// Libraries that every GPU needs.
    #[serde(rename = "required", default)]
    pub required: Vec<RequiredCodeRow>,
    /// Libraries that a GPU does without.
    #[serde(rename = "optional")]
    pub optional: Vec<OptionalCodeRow>,
}

/// Libraries that keep containers of their own for each architecture: the share that serves a GPU says nothing.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PerArchitectureRow {
    /// Their file names up to `.so`, without a hash that a wheel repair tool added; `*` at the end stands for any rest.
    pub libraries: Vec<String>,
    /// How it is known.
    #[serde(default)]
    pub basis: Basis,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// Libraries without whose code for a GPU nothing of their package works there.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RequiredCodeRow {
    /// As in [`PerArchitectureRow::libraries`].
    pub libraries: Vec<String>,
    /// How it is known.
    #[serde(default)]
    pub basis: Basis,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// Libraries that are not used on some GPUs, so that a lack of code for those is no fault.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OptionalCodeRow {
    /// As in [`PerArchitectureRow::libraries`].
    pub libraries: Vec<String>,
    /// The first capability that uses them; without either bound none needs them.
    pub from: Option<Capability>,
    /// The first capability above that does not use them.
    pub below: Option<Capability>,
    /// What happens on the other GPUs, a sentence.
    pub reason: String,
    /// How it is known.
    #[serde(default)]
    pub basis: Basis,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// The container without kernels that the CUDA runtime leaves in what is linked with it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct StubRow {
    /// The architectures that it is compiled for: the compiler's default.
    pub capabilities: Vec<Capability>,
    /// How it is known.
    #[serde(default)]
    pub basis: Basis,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}
