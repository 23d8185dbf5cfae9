//! `torch/*.toml`: torch releases and their builds.

use serde::Deserialize;

use super::Basis;
use crate::python::{Platform, PythonVersion};
use crate::version::{Cuda, Cudnn, Glibc, GpuCode, Nccl, Pep440};

/// `torch/2.8.toml`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TorchFile {
    /// The minor: `2.8`.
    pub torch: String,
    /// Releases, oldest first.
    #[serde(rename = "release")]
    pub releases: Vec<TorchReleaseRow>,
    /// A remark for people.
    pub note: Option<String>,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// One torch release.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TorchReleaseRow {
    /// The version, without local label.
    pub version: Pep440,
    /// Day of its upload.
    pub released: Option<String>,
    /// Pythons that it says it is for.
    pub requires_python: Option<String>,
    /// torchvision releases that belong to it, best first. Absent when unknown.
    pub torchvision: Option<Vec<Pep440>>,
    /// torchaudio releases that belong to it, best first. Absent when unknown.
    pub torchaudio: Option<Vec<Pep440>>,
    /// Its builds, PyPI's own first.
    #[serde(rename = "build")]
    pub builds: Vec<TorchBuildRow>,
    /// A remark for people.
    pub note: Option<String>,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// One build of a torch release.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TorchBuildRow {
    /// Wheel label: `cu128`, or `cpu`.
    pub variant: String,
    /// Name of the index that has it.
    pub index: String,
    /// Platform.
    pub platform: Platform,
    /// CUDA that it was built with; absent for `cpu`.
    pub cuda: Option<Cuda>,
    /// The exact CUDA release.
    pub toolkit: Option<String>,
    /// Interpreter tags of its wheels. Absent when nobody has read them.
    pub python: Option<Vec<String>>,
    /// Least glibc.
    pub glibc: Option<Glibc>,
    /// cuDNN that it is made for and pins.
    pub cudnn: Option<Cudnn>,
    /// cuDNN that it was compiled against.
    pub cudnn_compiled: Option<Cudnn>,
    /// NCCL that it pins.
    pub nccl: Option<Nccl>,
    /// triton that it pins: a version or a specifier.
    pub triton: Option<String>,
    /// GPU code of torch itself. Absent when nobody has read it.
    pub code: Option<Vec<GpuCode>>,
    /// Compiled with the C++11 ABI of libstdc++.
    pub cxx11_abi: Option<bool>,
    /// CUDA packages that it pins; for builds that are not on PyPI.
    pub requires: Option<Vec<String>>,
    /// Fields that are inferred.
    #[serde(default)]
    pub inferred: Vec<String>,
    /// Not the project's recommendation.
    #[serde(default)]
    pub experimental: bool,
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

impl TorchBuildRow {
    /// The Pythons of its wheels, where known.
    pub fn pythons(&self) -> Option<Vec<PythonVersion>> {
        self.python.as_ref().map(|tags| tags.iter().filter_map(|tag| PythonVersion::from_tag(tag)).collect())
    }
}
