//! `index.toml`, `package.toml` and `snapshot/INDEX.toml`: where packages come from, and which are of the GPU stack.

use serde::Deserialize;

use super::Basis;
use crate::python::PackageName;
use crate::version::Specifiers;

/// `index.toml`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct IndexFile {
    /// Package indexes.
    #[serde(rename = "index")]
    pub indexes: Vec<IndexRow>,
}

/// `package.toml`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PackageFile {
    /// Packages whose shared libraries are locked; `*` at the end stands for any rest.
    pub gpu: Vec<String>,
    /// Packages that an index of a torch variant carries in that variant, and that must not be mixed with another.
    pub variant: Vec<PackageName>,
    /// Prefixes of the packages that bring CUDA, and so differ between the variants of one torch release.
    pub cuda: Vec<String>,
    /// The packages that torch itself is installed by.
    pub torch: Vec<PackageName>,
    /// Names of shared libraries that only software for GPUs asks for; `*` stands for any text.
    pub libraries: Vec<String>,
    /// Companions of torch that refuse a torch of another CUDA.
    #[serde(default)]
    pub same_cuda: Vec<SameCudaRow>,
    /// Companions whose METADATA accepts a torch with which they do not import.
    #[serde(default)]
    pub unfit: Vec<UnfitRow>,
    /// Packages that load the cuDNN of the system.
    #[serde(default)]
    pub system_cudnn: Vec<SystemCudnnRow>,
    /// Libraries that packages bring for themselves alone.
    #[serde(default)]
    pub private: Vec<PrivateRow>,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// Packages that load the cuDNN of the system, and bring none of their own.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SystemCudnnRow {
    /// The packages.
    pub packages: Vec<PackageName>,
    /// With one of these extras alone; none: always.
    #[serde(default)]
    pub with: Vec<PackageName>,
    /// Extras with which they bring a cuDNN.
    #[serde(default)]
    pub without: Vec<PackageName>,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// A library that packages bring for themselves alone, and open by its path.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PrivateRow {
    /// The packages.
    pub packages: Vec<PackageName>,
    /// The library, as it is known by its content: `cupti`.
    pub library: String,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// A companion that refuses, when it is imported, a torch of another CUDA.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SameCudaRow {
    /// The package.
    pub package: PackageName,
    /// Its versions.
    pub versions: Specifiers,
    /// How much of the CUDA version has to be the same.
    pub digits: CudaDigits,
    /// What it says when it refuses.
    pub says: String,
    /// How it is known.
    #[serde(default)]
    pub basis: Basis,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// How much of a CUDA version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CudaDigits {
    /// 12 of 12.8.
    Major,
    /// 12.8.
    Minor,
}

/// A companion whose METADATA accepts a torch with which it does not import.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct UnfitRow {
    /// The package.
    pub package: PackageName,
    /// Its versions.
    pub versions: Specifiers,
    /// The releases of torch.
    pub torch: Specifiers,
    /// Why, a sentence.
    pub reason: String,
    /// How it is known.
    #[serde(default)]
    pub basis: Basis,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// A package index.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct IndexRow {
    /// Name, as locks have it.
    pub name: String,
    /// URL of the simple index.
    pub url: String,
    /// Packages come from here unless something says otherwise.
    #[serde(default)]
    pub default: bool,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// `snapshot/INDEX.toml`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SnapshotFile {
    /// Day of the snapshot.
    pub retrieved: String,
    /// Where it is from.
    pub source: String,
    /// What was uploaded later is not in it: `2026-11-29T00:00:00Z`.
    pub exclude_newer: String,
    /// Its packages.
    pub packages: SnapshotPackages,
}

/// The packages of the snapshot, by name.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SnapshotPackages {
    /// Those whose shared libraries it lists.
    pub gpu: Vec<PackageName>,
    /// Those that they need.
    pub other: Vec<PackageName>,
}
