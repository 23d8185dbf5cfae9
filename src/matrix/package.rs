//! Groups of packages by name.
//!
//! Takes `package.toml`.

use super::matches_glob;
use super::schema::PackageFile;
use crate::python::PackageName;

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

    /// Whether a library of that name is one that only software for GPUs asks for.
    pub fn is_gpu_library(&self, soname: &str) -> bool {
        self.libraries.iter().any(|pattern| matches_glob(pattern, soname))
    }
}
