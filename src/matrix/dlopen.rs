//! What code loads: which rows of `dlopen.toml` apply to a package, a library or a symbol.
//!
//! Takes `dlopen.toml`.

use super::schema::{AbsentRow, DlopenFile, EdgeRow, ImportRow, OpenRow};
use crate::python::PackageName;
use crate::version::{Pep440, Specifiers};

impl DlopenFile {
    /// What importing this version of a package loads, where that is known; a version that is not known is a new one.
    pub fn import(&self, package: &PackageName, version: Option<&Pep440>) -> Option<&ImportRow> {
        self.imports.iter().rfind(|row| row.package == *package && applies(row.versions.as_ref(), version))
    }

    /// The files that Python code of this version of a package opens by path.
    pub fn opens(&self, package: &PackageName, version: Option<&Pep440>) -> impl Iterator<Item = &OpenRow> {
        self.opens.iter().filter(move |row| row.package == *package && applies(row.versions.as_ref(), version))
    }

    /// What the library that is loaded under `name` opens.
    pub fn edges(&self, name: &str) -> impl Iterator<Item = &EdgeRow> {
        self.edges.iter().filter(move |row| row.from.iter().any(|from| matches_glob(from, name)))
    }

    /// Why the file named `by` may do without `library`.
    pub fn absent(&self, library: &str, by: &str) -> Option<&AbsentRow> {
        let any = |patterns: &[String], name: &str| patterns.iter().any(|pattern| matches_glob(pattern, name));
        self.absent.iter().find(|row| any(&row.libraries, library) && (row.by.is_empty() || any(&row.by, by)))
    }
}

/// Whether a version is among those that a row is for. A version that is not known is among all.
fn applies(versions: Option<&Specifiers>, version: Option<&Pep440>) -> bool {
    match (versions, version) {
        // A vendor's build of what is not released yet (2.5.0a0+git.nv24.08) is next to that release.
        (Some(versions), Some(version)) => versions.contains(&version.only_release()),
        _ => true,
    }
}

/// Whether `name` is what `pattern` describes: `*` is any text without `/`, `[0-9]` a digit.
pub fn matches_glob(pattern: &str, name: &str) -> bool {
    if let Some(rest) = pattern.strip_prefix('*') {
        let ends = name.find('/').unwrap_or(name.len());
        return (0..=ends).filter(|at| name.is_char_boundary(*at)).any(|at| matches_glob(rest, &name[at..]));
    }
    if let Some(rest) = pattern.strip_prefix("[0-9]") {
        return name.starts_with(|c: char| c.is_ascii_digit()) && matches_glob(rest, &name[1..]);
    }
    let (mut pattern, mut name) = (pattern.chars(), name.chars());
    match (pattern.next(), name.next()) {
        (None, None) => true,
        (Some(a), Some(b)) => a == b && matches_glob(pattern.as_str(), name.as_str()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        for (pattern, name, fits) in [
            ("libcudart.so.*[0-9]", "libcudart.so.12", true),
            ("libcudart.so.*[0-9]", "libcudart.so.12.8.90", true),
            ("libcudart.so.*[0-9]", "libcudart.so", false),
            ("libcudart.so.*[0-9]", "libcudart.so.12.bak", false),
            ("libnvrtc.so.*[0-9].*[0-9]", "libnvrtc.so.11.2", true),
            ("libnvrtc.so.*[0-9].*[0-9]", "libnvrtc.so.12", false),
            ("torch/_C.*.so", "torch/_C.cpython-311-x86_64-linux-gnu.so", true),
            ("torch/_C.*.so", "torch/_C/a.so", false),
            ("a/*/b", "a/c/b", true),
            ("a/*/b", "a/c/d/b", false),
            ("", "", true),
            ("*", "", true),
        ] {
            assert_eq!(matches_glob(pattern, name), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn a_torch_build_has_the_steps_of_its_release() {
        let matrix = crate::matrix::Matrix::embedded();
        let facts = matrix.dlopen().unwrap();
        let steps = |version: &str| {
            let version: Pep440 = version.parse().unwrap();
            facts.import(&"torch".parse().unwrap(), Some(&version)).unwrap().steps.len()
        };
        assert_eq!([steps("2.3.0+cu121"), steps("2.8.0+cu128"), steps("2.15.0"), steps("9.0")], [3, 4, 4, 4]);
        assert_eq!([steps("2.5.0a0+872d972e41.nv24.08"), steps("2.7.0a0+ecf3bae40a.nv25.2")], [3, 4]);
        let driver = facts.absent("libcuda.so.1", "libcaffe2_nvrtc.so").unwrap();
        assert!(driver.driver && driver.reason.contains("driver"));
        assert!(facts.absent("libcudart.so.12", "libc10_cuda.so").is_none());
    }
}
