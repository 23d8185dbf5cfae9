//! Whether Python code of a package may open a library before the loader needs it.
//!
//! Wheels that require NVIDIA's packages find their libraries in one of two ways: by a run path that leads there, or by
//! code that opens them first. Which one an unknown package takes shows in its run paths.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use super::{Case, stack};
use crate::inventory::{Distribution, Library, joined};
use crate::python::PackageName;

/// Whether the package of `by` requires the one of `library`, has no run path into other packages, and nothing says what
/// its code opens.
pub fn may_open(case: &Case<'_>, by: &Library, library: &Library) -> bool {
    let packages = (stack::package(case.inventory, by), stack::package(case.inventory, library));
    let (Some(package), Some(provider)) = packages else { return false };
    let is_known = case.matrix.dlopen().is_ok_and(|facts| {
        let version = package.pep440();
        facts.import(&package.name, version.as_ref()).is_some()
            || facts.opens(&package.name, version.as_ref()).count() > 0
    });
    !is_known && requires(case, package, &provider.name) && !has_path_to_others(by, package)
}

/// Whether a package requires another, itself or by what it requires, in any extra.
fn requires(case: &Case<'_>, package: &Distribution, wanted: &PackageName) -> bool {
    let mut seen = BTreeSet::from([package.name.clone()]);
    let mut next = vec![package];
    while let Some(package) = next.pop() {
        for required in package.requirements().map(|requirement| requirement.package) {
            if required == *wanted {
                return true;
            }
            if seen.insert(required.clone()) {
                next.extend(stack::distribution(case.inventory, required.as_str()));
            }
        }
    }
    false
}

/// Whether a run path leads into the folder of another package.
fn has_path_to_others(library: &Library, package: &Distribution) -> bool {
    let (Ok(object), Some(origin)) = (&library.object, library.place.parent()) else { return false };
    let own: BTreeSet<_> = package.files.iter().filter_map(|file| folder(package, &file.path)).collect();
    object.rpath.iter().chain(&object.runpath).any(|path| {
        let path = joined(origin, path.replace("$ORIGIN", &origin.to_string_lossy()).as_bytes());
        folder(package, &path).is_some_and(|folder| !own.contains(&folder))
    })
}

/// The first folder below site-packages on a path.
fn folder(package: &Distribution, path: &Path) -> Option<OsString> {
    let below = path.strip_prefix(&package.site).ok()?;
    below.components().next().map(|first| first.as_os_str().to_owned())
}
