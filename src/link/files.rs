//! The files of Python's packages by the names that code has for them: below site-packages, with patterns.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::inventory::{Inventory, Library, PythonEnvironment, Role};
use crate::matrix::matches_glob;

/// One file below a folder of `sys.path`.
pub(super) struct File {
    /// Which folder, by its place in `sys.path`.
    pub site: usize,
    /// Its path below that.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    pub library: Arc<Library>,
    /// Whether its name says that it is a module of another Python, which this one never imports.
    other_python: bool,
}

/// All files below the folders of `sys.path`, by folder and name.
pub(super) struct Files {
    files: Vec<File>,
}

impl Files {
    pub fn new(inventory: &Inventory) -> Self {
        let sites: Vec<&Path> = inventory
            .pythons
            .first()
            .into_iter()
            .flat_map(|python| &python.site_packages)
            .map(PathBuf::as_path)
            .collect();
        let mut files = Vec::new();
        for library in inventory.libraries().iter().filter(|library| library.role == Role::Library) {
            for path in std::iter::once(&library.place).chain(&library.others) {
                // One folder may lie in another; a file is named from the innermost.
                let below =
                    sites.iter().enumerate().filter_map(|(site, dir)| Some((site, path.strip_prefix(dir).ok()?)));
                let below = below.min_by_key(|(_, name)| name.as_os_str().len());
                if let Some((site, name)) = below {
                    let name = name.to_string_lossy().into_owned();
                    let other_python = is_for_other_python(&name, inventory.pythons.first());
                    files.push(File { site, name, path: path.clone(), library: Arc::clone(library), other_python });
                }
            }
        }
        files.sort_by(|a, b| (a.site, &a.name).cmp(&(b.site, &b.name)));
        Self { files }
    }

    /// All of them.
    pub fn all(&self) -> &[File] {
        &self.files
    }

    /// A module that a pattern describes and that is for another Python.
    pub fn of_other_python(&self, pattern: &str) -> Option<&File> {
        self.files.iter().find(|file| file.other_python && matches_glob(pattern, &file.name))
    }

    /// The files that a pattern describes, in the first folder of `sys.path` that has any; modules of another Python are
    /// none.
    pub fn matching<'f, 'p>(&'f self, pattern: &'p str) -> impl Iterator<Item = &'f File> + use<'f, 'p> {
        let fits = move |file: &&'f File| !file.other_python && matches_glob(pattern, &file.name);
        let site = self.files.iter().find(fits).map(|file| file.site);
        self.files.iter().filter(move |file| Some(file.site) == site).filter(fits)
    }

    /// The file that `part/name` stands for: in the first folder of `sys.path` with one, in the first of `places` there.
    pub fn find(&self, file: &str, places: &[String], cuda: Option<&str>) -> Option<&File> {
        let patterns: Vec<String> = match file.split_once('/') {
            Some((part, name)) if !places.is_empty() => places
                .iter()
                // Where the CUDA family is not known, there is no such folder.
                .filter(|place| cuda.is_some() || !place.contains("{cuda}"))
                .map(|place| place.replace("{part}", part).replace("{cuda}", cuda.unwrap_or_default()) + "/" + name)
                .collect(),
            _ => vec![file.to_owned()],
        };
        let found = patterns.iter().enumerate().filter_map(|(rank, pattern)| {
            let first = self.matching(pattern).next()?;
            Some((first.site, rank, first))
        });
        found.min_by_key(|(site, rank, _)| (*site, *rank)).map(|(_, _, file)| file)
    }
}

/// Whether Python can import a file as an extension module: by its name, or since it exports an init function.
pub(super) fn is_module(library: &Library, python: Option<&PythonEnvironment>) -> bool {
    let Some(name) = library.place.file_name().and_then(|name| name.to_str()) else { return false };
    let Ok(object) = &library.object else { return false };
    let Some((stem, suffix)) = name.split_once('.') else { return false };
    if suffix != "so" && !suffix.ends_with(".so") {
        return false;
    }
    if suffix.starts_with("cpython-") {
        return !is_for_other_python(name, python);
    }
    suffix == "abi3.so" || object.symbols.find(&format!("PyInit_{stem}")).len() > 0
}

/// Whether a file's name has the tag of another Python than this one (PEP 3149).
fn is_for_other_python(name: &str, python: Option<&PythonEnvironment>) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    let tag = file
        .split_once(".cpython-")
        .filter(|_| file.ends_with(".so"))
        .and_then(|(_, tag)| tag.split(['-', '.']).next());
    let own = python.and_then(|python| python.version);
    tag.zip(own).is_some_and(|(tag, version)| tag != version.to_string().replace('.', ""))
}

#[cfg(test)]
mod tests {
    use crate::python::PythonVersion;

    #[test]
    fn the_tag_of_a_module_is_the_version_without_dot() {
        let version: PythonVersion = "3.13t".parse().unwrap();
        assert_eq!(version.to_string().replace('.', ""), "313t");
    }
}
