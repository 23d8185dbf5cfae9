//! The manifest as data. Everything that is left out is the resolver's choice.

use std::collections::BTreeMap;

use crate::diag::Evidence;
use crate::python::{Extra, PackageName, Platform, PythonVersion};
use crate::version::{Constraint, Cuda, Cudnn, Driver, Glibc, Nccl, Specifiers};

/// The whole manifest.
#[derive(Debug, Clone, Default)]
pub struct Manifest {
    /// `[stack]`
    pub stack: Stack,
    /// `[packages]`: further Python packages, in the order of the file.
    pub packages: Vec<Ask>,
    /// `[target.NAME]`, in the order of the file; at least one.
    pub targets: Vec<Target>,
    /// `[[index]]`
    pub indexes: Vec<Index>,
    /// `[image]`: `os` and `flavor`.
    pub image: BTreeMap<String, String>,
    /// `[env]`
    pub env: BTreeMap<String, String>,
    /// `[checks]`
    pub checks: BTreeMap<String, Check>,
    /// Where each of these stands in the file.
    pub places: Places,
}

/// Places in the manifest, by path: `stack.torch`, `packages.numpy`, `target.cluster`, `target.cluster.driver`,
/// `target.cluster.gpus.RTX 5090`, `env.NCCL_DEBUG`.
pub type Places = BTreeMap<String, Evidence>;

impl Manifest {
    /// Where `path` stands; `None` when the file does not say it.
    pub fn place(&self, path: &str) -> Option<&Evidence> {
        self.places.get(path)
    }
}

/// `[stack]`
#[derive(Debug, Clone, Default)]
pub struct Stack {
    /// `python`
    pub python: Option<PythonAsk>,
    /// `torch`
    pub torch: Option<Specifiers>,
    /// `torchvision`
    pub torchvision: Option<Specifiers>,
    /// `torchaudio`
    pub torchaudio: Option<Specifiers>,
    /// `triton`
    pub triton: Option<Specifiers>,
    /// `nccl`
    pub nccl: Option<Constraint<Nccl>>,
    /// `cuda`
    pub cuda: Option<Constraint<Cuda>>,
    /// `cudnn`
    pub cudnn: Option<Constraint<Cudnn>>,
    /// `variant`: the wheel label, `cu128`.
    pub variant: Option<String>,
    /// `same-torch`: one torch version for all targets.
    pub same_torch: bool,
}

/// The Python that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PythonAsk {
    /// `3.11`
    Exact(PythonVersion),
    /// `>=3.10,<3.13`
    Range(Specifiers),
}

impl PythonAsk {
    /// Whether `python` will do. A range never chooses the free-threaded build.
    pub fn allows(&self, python: PythonVersion) -> bool {
        match self {
            Self::Exact(exact) => *exact == python,
            Self::Range(range) => {
                let version = crate::version::Pep440::new([u64::from(python.major), u64::from(python.minor)]);
                !python.free_threaded && range.contains(&version)
            }
        }
    }
}

impl std::fmt::Display for PythonAsk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exact(exact) => exact.fmt(f),
            Self::Range(range) => range.fmt(f),
        }
    }
}

/// One entry of `[packages]`: `numpy = "<3"` or `{ version = "<3", extras = ["x"] }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The package.
    pub package: PackageName,
    /// Its extras.
    pub extras: Vec<Extra>,
    /// Versions that will do; empty for any.
    pub specifiers: Specifiers,
}

/// `[target.NAME]`: one kind of machine.
#[derive(Debug, Clone)]
pub struct Target {
    /// NAME.
    pub name: String,
    /// `platform`
    pub platform: Platform,
    /// `glibc`: the oldest among these machines.
    pub glibc: Option<Glibc>,
    /// `gpus`: product names or compute capabilities as typed; at least one.
    pub gpus: Vec<String>,
    /// `driver`: a version or branch (the oldest of the fleet), or bounds where the user controls it.
    pub driver: Option<Constraint<Driver>>,
    /// `forward-compat`: the cuda-compat package may be used.
    pub forward_compat: bool,
}

/// `[[index]]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    /// `name`
    pub name: String,
    /// `url` of the simple index; may carry credentials, which never leave the manifest.
    pub url: String,
    /// `packages` that come from here and from nowhere else.
    pub packages: Vec<PackageName>,
}

/// How grave a rule's findings are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Not reported.
    Off,
    /// Reported.
    Note,
    /// Reported.
    Warning,
    /// Fails.
    Error,
}

/// One entry of `[checks]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// `level`
    pub level: Level,
    /// `reason`
    pub reason: Option<String>,
}
