//! How libraries keep their GPU code: takes `gpu-code.toml`, answers by file name.

use super::schema::{GpuCodeFile, OptionalCodeRow};
use crate::version::Capability;

/// What is known about the GPU code of libraries.
#[derive(Debug)]
pub struct GpuCodeFacts {
    file: GpuCodeFile,
}

impl GpuCodeFacts {
    pub(super) fn new(file: GpuCodeFile) -> Self {
        Self { file }
    }

    /// Whether a library keeps containers of its own for each architecture.
    pub fn is_per_architecture(&self, file_name: &str) -> bool {
        self.file.per_architecture.iter().any(|row| matches(&row.libraries, file_name))
    }

    /// Architectures of the container that the CUDA runtime leaves in what is linked with it.
    pub fn stubs(&self) -> &[Capability] {
        &self.file.stub.capabilities
    }

    fn is_required(&self, file_name: &str) -> bool {
        self.file.required.iter().any(|row| matches(&row.libraries, file_name))
    }

    /// Whether a GPU uses a library.
    pub fn usage(&self, file_name: &str, gpu: Capability) -> Usage<'_> {
        // Without bounds no GPU needs it.
        let uses = |row: &OptionalCodeRow| match (row.from, row.below) {
            (None, None) => false,
            (from, below) => from.is_none_or(|from| gpu >= from) && below.is_none_or(|below| gpu < below),
        };
        let rows = || self.file.optional.iter().filter(|row| matches(&row.libraries, file_name));
        match rows().find(|row| !uses(row)) {
            Some(row) => Usage::Unused(row),
            None if rows().next().is_some() || self.is_required(file_name) => Usage::Used,
            None => Usage::Unknown,
        }
    }
}

/// Whether a GPU uses a library.
#[derive(Debug, Clone, Copy)]
pub enum Usage<'a> {
    /// Nothing is known about that: as far as the library is used at all.
    Unknown,
    /// It does, where others do not.
    Used,
    /// It does without.
    Unused(&'a OptionalCodeRow),
}

/// Whether a library's name up to `.so` is one of `patterns`; `*` at the end of one stands for any rest.
pub(super) fn matches(patterns: &[String], file_name: &str) -> bool {
    let stem = stem(file_name);
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => stem.starts_with(prefix),
        None => stem == pattern,
    })
}

/// The name up to `.so`, without the hash of eight digits that auditwheel puts there: `libcudart.e8e8b82a.so.12` and
/// `libcudart-e8e8b82a.so.12` are `libcudart`.
fn stem(file_name: &str) -> &str {
    let name = file_name.split(".so").next().unwrap_or(file_name);
    match name.rsplit_once(['-', '.']) {
        Some((stem, hash)) if hash.len() == 8 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => stem,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_versions_and_hashes() {
        for (name, expected) in [
            ("libcudart.e8e8b82a.so.12", "libcudart"),
            ("libcusparseLt-f80c68d1.so.0", "libcusparseLt"),
            ("libcudnn_engines_precompiled.so.9", "libcudnn_engines_precompiled"),
            ("_C.cpython-311-x86_64-linux-gnu.so", "_C.cpython-311-x86_64-linux-gnu"),
            ("ptxas", "ptxas"),
        ] {
            assert_eq!(stem(name), expected);
        }
    }
}
