//! The lock as data. Maps and sets keep it in its one order, so equal locks have equal text.

use std::collections::{BTreeMap, BTreeSet};

use crate::python::{Extra, PackageName, Platform, PythonVersion};
use crate::version::{Cuda, Cudnn, Driver, Glibc, Nccl, Pep440};

/// The version of the format that is written, and the newest that is read.
pub const VERSION: u64 = 1;
/// Additions to that version: a lock of a newer revision is read, and what it adds is passed over. A lock says the least
/// revision that has what it holds.
pub const REVISION: u64 = 2;

/// Name of the index that tools use when they are told of none.
pub const DEFAULT_INDEX: &str = "pypi";

/// The whole lock.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lock {
    /// Hash of the manifest's normal form, `sha256:` and hex.
    pub inputs: String,
    /// Hash of the compatibility facts that were used, `sha256:` and hex.
    pub matrix: String,
    /// The indexes that packages come from: name and URL, never with credentials.
    pub indexes: BTreeMap<String, String>,
    /// One stack for each target, in the manifest's order.
    pub targets: Vec<Target>,
    /// Every artefact once, by file name.
    pub wheels: BTreeMap<String, Wheel>,
    /// Whether the text that it was read from had the hash of what it holds; since revision 2.
    pub seal: Seal,
}

/// The hash of its own content that a lock carries: what a lock holds was written by a resolve, and by nobody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Seal {
    /// It has none: it was not read from a file, or an earlier release wrote it.
    #[default]
    Absent,
    /// It is that of what the lock holds.
    Whole,
    /// It is not: somebody edited the lock, or merged two line by line.
    Broken,
    /// A later release wrote the lock: what it added is not known here, and may be part of the hash.
    Unknown,
}

/// The stack of one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// As in the manifest.
    pub name: String,
    /// Platform.
    pub platform: Platform,
    /// The least glibc that the locked wheels need; absent when none needs any.
    pub glibc: Option<Glibc>,
    /// Python.
    pub python: PythonVersion,
    /// torch, without local label.
    pub torch: Pep440,
    /// Label of the CUDA build: `cu128`.
    pub variant: String,
    /// CUDA of the build; absent when unknown.
    pub cuda: Option<Cuda>,
    /// cuDNN; absent when unknown.
    pub cudnn: Option<Cudnn>,
    /// NCCL; absent when unknown.
    pub nccl: Option<Nccl>,
    /// What the driver must be.
    pub driver: DriverSupport,
    /// The GPUs, in the manifest's order.
    pub gpus: Vec<Gpu>,
    /// Facts that the choice rests on and that nobody has read or documented, by name.
    pub inferred: BTreeSet<String>,
    /// The image to build, where the manifest has `[image]`; since revision 1.
    pub image: Option<Image>,
    /// Variables for the image and the job: the manifest's `[env]`; since revision 1.
    pub env: BTreeMap<String, String>,
    /// The closure.
    pub packages: BTreeMap<PackageName, Package>,
}

/// The image of a target, and what it is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Operating system: `ubuntu22.04`.
    pub os: String,
    /// `slim`, `base`, `runtime` or `devel`.
    pub flavor: String,
    /// What it is built on; absent when the matrix knows none.
    pub base: Option<Reference>,
    /// The image of uv, which installs the Python; absent when `base` has it.
    pub uv: Option<Reference>,
    /// The bare system, for the small image beside a `devel` one; absent for other flavors.
    pub small: Option<Reference>,
    /// `NVIDIA_REQUIRE_CUDA` of `base`: `cuda>=12.8`; absent when it has none or nobody has read it.
    pub requires: Option<String>,
}

/// An image in a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Repository and tag: `nvidia/cuda:12.8.1-base-ubuntu22.04`.
    pub name: String,
    /// Digest of its index, `sha256:` and hex; absent when no registry was asked.
    pub digest: Option<String>,
}

impl Image {
    /// Every image that a build takes from a registry, the base first.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        [&self.base, &self.uv, &self.small].into_iter().flatten()
    }

    /// The same, to be changed.
    pub fn references_mut(&mut self) -> impl Iterator<Item = &mut Reference> {
        [&mut self.base, &mut self.uv, &mut self.small].into_iter().flatten()
    }
}

/// How the driver carries the CUDA of the build.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DriverSupport {
    /// What the manifest says of the driver, as written there.
    pub given: Option<String>,
    /// The least driver that runs the stack, under minor-version compatibility; absent when unknown.
    pub floor: Option<Driver>,
    /// The least driver that supports this CUDA natively; absent when unknown.
    pub native: Option<Driver>,
    /// How the given driver supports it; absent when none was given or its tier is unknown.
    pub tier: Option<Tier>,
}

/// The three ways in which a driver supports a CUDA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// The driver knows this CUDA.
    Native,
    /// The driver knows an earlier minor of the same family.
    MinorVersion,
    /// The cuda-compat package stands in for a newer driver.
    Forward,
}

/// A GPU of the target and the code that serves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpu {
    /// As in the manifest.
    pub name: String,
    /// Its architecture: `sm_120`.
    pub sm: String,
    /// What kind of code serves it.
    pub code: Code,
    /// The code entry that serves it: `sm_120`, `compute_90`; absent when unknown.
    pub from: Option<String>,
}

/// What kind of code serves a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// Machine code.
    Sass,
    /// PTX, compiled by the driver when first used.
    Ptx,
    /// Nobody has read what the build carries.
    Unknown,
}

/// One package of the closure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// Version, with local label.
    pub version: Pep440,
    /// Its extras that are asked for.
    pub extras: BTreeSet<Extra>,
    /// The file that is installed.
    pub artefact: Artefact,
    /// Who asks for it: names of packages, or [`Package::MANIFEST`].
    pub needed_by: BTreeSet<String>,
}

impl Package {
    /// In [`Package::needed_by`]: the manifest itself asks.
    pub const MANIFEST: &'static str = "gpulock.toml";

    /// Whether the manifest itself asks for it.
    pub fn is_direct(&self) -> bool {
        self.needed_by.contains(Self::MANIFEST)
    }
}

/// The file of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Artefact {
    /// File name, a key of [`Lock::wheels`].
    Wheel(String),
    /// Not known so far: an online resolve fills it from this index.
    Pending {
        /// Name of the index.
        index: String,
    },
}

/// A wheel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wheel {
    /// Name of the index that lists it.
    pub index: String,
    /// SHA-256, lower-case hex.
    pub sha256: String,
    /// Size in bytes; absent where the index does not tell.
    pub size: Option<u64>,
    /// Only for what no index lists.
    pub url: Option<String>,
    /// Its shared libraries by path below site-packages.
    pub libraries: BTreeMap<String, FileDigest>,
}

/// What a file must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDigest {
    /// SHA-256, lower-case hex.
    pub sha256: String,
    /// Size in bytes.
    pub size: u64,
}

impl Lock {
    /// The least revision that has what this lock holds, but for the hash of that.
    pub fn revision(&self) -> u64 {
        u64::from(self.targets.iter().any(|target| target.image.is_some() || !target.env.is_empty()))
    }

    /// The target of that name.
    pub fn target(&self, name: &str) -> Option<&Target> {
        self.targets.iter().find(|target| target.name == name)
    }

    /// The wheel of a package; `None` while it is pending.
    pub fn wheel(&self, package: &Package) -> Option<(&str, &Wheel)> {
        match &package.artefact {
            Artefact::Wheel(file) => self.wheels.get_key_value(file).map(|(file, wheel)| (file.as_str(), wheel)),
            Artefact::Pending { .. } => None,
        }
    }

    /// The name of the index that a package comes from.
    pub fn index_of<'l>(&'l self, package: &'l Package) -> Option<&'l str> {
        match &package.artefact {
            Artefact::Wheel(file) => self.wheels.get(file).map(|wheel| wheel.index.as_str()),
            Artefact::Pending { index } => Some(index),
        }
    }
}

impl Target {
    /// The packages whose artefact is not known.
    pub fn pending(&self) -> impl Iterator<Item = &PackageName> {
        let pending = |package: &Package| matches!(package.artefact, Artefact::Pending { .. });
        self.packages.iter().filter(move |(_, package)| pending(package)).map(|(name, _)| name)
    }
}

macro_rules! names {
    ($type:ty, $($variant:ident = $name:literal),+) => {
        impl $type {
            pub(super) const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Its name in the lock and in JSON.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }
        }
    };
}
names!(Tier, Native = "native", MinorVersion = "minor-version", Forward = "forward");
names!(Code, Sass = "sass", Ptx = "ptx", Unknown = "unknown");
