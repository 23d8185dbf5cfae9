//! The resolver: a [`Request`] for one target becomes a [`Solution`], or a [`Conflict`] with repairs.
//!
//! Pure: packages come through a [`Catalog`], facts through the [`Matrix`]. The solver is PubGrub; what the user asks
//! (driver, GPUs, glibc, Python, CUDA ...) are packages of their own that depend on the torch builds they allow, so that
//! one derivation explains both sides.

mod candidate;
mod expected;
mod explain;
mod machine;
mod note;
mod package;
mod provider;
mod rank;
mod repair;
mod rule;
mod solution;
mod solve;
mod value;
mod why;

use std::collections::BTreeMap;

pub use explain::{Conflict, Repair};
pub use machine::{DriverAsk, Machine, bad_gpu_name, first_driver};
pub use rule::Fact;
pub use rule::Input;
pub use solution::{Chosen, Gives, GpuService, Solution, Stack as SolvedStack};
pub use solve::{Outcome, resolve, resolve_all};
pub use why::{Why, why};

use crate::diag::Failure;
use crate::manifest::{Ask, Index, Manifest, Stack, Target};
use crate::matrix::Matrix;
use crate::python::{Catalog, PackageName, PythonVersion};
use crate::version::Pep440;

/// What is asked for one target.
#[derive(Debug, Clone)]
pub struct Request {
    /// The machines.
    pub target: Target,
    /// The stack.
    pub stack: Stack,
    /// Further packages.
    pub packages: Vec<Ask>,
    /// Indexes and what is pinned to them.
    pub indexes: Vec<Index>,
}

impl Request {
    /// One request a target of the manifest.
    pub fn all(manifest: &Manifest) -> Vec<Self> {
        let request = |target: &Target| Self {
            target: target.clone(),
            stack: manifest.stack.clone(),
            packages: manifest.packages.clone(),
            indexes: manifest.indexes.clone(),
        };
        manifest.targets.iter().map(request).collect()
    }

    /// Whether the wheel label that is asked for is one that no build for this platform has, and that no index of the
    /// manifest may have.
    ///
    /// # Errors
    /// When the matrix cannot be read.
    pub fn variant_is_unknown(&self, matrix: &Matrix) -> Result<bool, Failure> {
        let Some(variant) = &self.stack.variant else { return Ok(false) };
        let torch = |package: &PackageName| package.as_str() == "torch";
        if self.indexes.iter().any(|index| index.packages.iter().any(torch)) {
            return Ok(false);
        }
        Ok(matrix.torch()?.builds(self.target.platform).all(|build| build.row().variant != *variant))
    }

    /// The index that a package is pinned to.
    pub fn pinned_index(&self, package: &PackageName) -> Option<&str> {
        self.indexes.iter().find(|index| index.packages.contains(package)).map(|index| index.name.as_str())
    }
}

/// Where facts and packages come from.
pub struct Context<'a> {
    /// Facts.
    pub matrix: &'a Matrix,
    /// Packages.
    pub catalog: &'a dyn Catalog,
    /// Name of the index that packages come from unless something says otherwise.
    pub default_index: &'a str,
    /// Builds whose artefacts are not known here may be chosen; they are marked pending.
    pub pending: bool,
    /// The catalog holds only what is known without the network.
    pub offline: bool,
    /// Versions to keep while they fit: those of an existing lock.
    pub keep: &'a Keep,
}

/// Versions of an existing lock of the same target.
#[derive(Debug, Clone, Default)]
pub struct Keep {
    /// By package.
    pub versions: BTreeMap<PackageName, Pep440>,
    /// The Python.
    pub python: Option<PythonVersion>,
}
