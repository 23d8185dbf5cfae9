//! The files of `compat-matrix/` as data: one struct a table, keys in kebab-case, unknown keys refused.
//!
//! What is not known is absent. Every table says where it is from (`source`) and when that was read (`retrieved`).

use serde::Deserialize;

use crate::python::{PackageName, Platform, PythonVersion};
use crate::version::{Capability, Cuda, CudaRelease, Cudnn, Driver, Glibc, GpuCode, Nccl, Pep440, PtxIsa};

/// How a fact is known; read beats the rest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Read from the artefact itself.
    Read,
    /// A document of the vendor or project says so.
    #[default]
    Documented,
    /// Derived from other facts.
    Inferred,
}

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
