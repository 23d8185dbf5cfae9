//! Groups of packages by name.
//!
//! Takes `package.toml`.

use super::matches_glob;
use super::schema::{PackageFile, SameCudaRow, SystemCudnnRow, UnfitRow};
use crate::python::{Extra, PackageName};
use crate::version::Pep440;

/// Whether a name is one of `patterns`, where `*` at the end stands for any rest.
pub fn matches_any(patterns: &[String], name: &PackageName) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => name.as_str().starts_with(prefix),
        None => name.as_str() == pattern,
    })
}

impl PackageFile {
    /// Whether the shared libraries of a package are locked.
    pub fn is_gpu(&self, name: &PackageName) -> bool {
        matches_any(&self.gpu, name)
    }

    /// How much of torch's CUDA this version of a package wants to share, where it is known to refuse another.
    pub fn same_cuda(&self, name: &PackageName, version: &Pep440) -> Option<&SameCudaRow> {
        let version = version.clone().without_local();
        self.same_cuda.iter().find(|row| row.package == *name && row.versions.contains(&version))
    }

    /// Whether a package that is asked for with some extras loads the cuDNN of the system, and brings none.
    pub fn loads_system_cudnn(&self, name: &PackageName, extras: &[Extra]) -> bool {
        let with = |row: &SystemCudnnRow| row.with.is_empty() || extras.iter().any(|extra| row.with.contains(extra));
        let without = |row: &SystemCudnnRow| !extras.iter().any(|extra| row.without.contains(extra));
        self.system_cudnn.iter().any(|row| row.packages.contains(name) && with(row) && without(row))
    }

    /// Whether a package brings a library, known by its content, for itself alone.
    pub fn is_private(&self, name: &PackageName, library: &str) -> bool {
        self.private.iter().any(|row| row.library == library && row.packages.contains(name))
    }

    /// Whether this version of a package does not import with that torch, whatever its METADATA says.
    pub fn is_unfit(&self, name: &str, version: &Pep440, torch: &Pep440) -> bool {
        let fits = |row: &UnfitRow| row.versions.contains(version) && row.torch.contains(torch);
        self.unfit.iter().any(|row| row.package.as_str() == name && fits(row))
    }

    /// Whether a library of that name is one that only software for GPUs asks for.
    pub fn is_gpu_library(&self, soname: &str) -> bool {
        self.libraries.iter().any(|pattern| matches_glob(pattern, soname))
    }
}
