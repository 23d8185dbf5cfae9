//! `index.toml`, `package.toml` and `snapshot/INDEX.toml`: where packages come from, and which are of the GPU stack.

use serde::Deserialize;

use crate::python::PackageName;

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
