//! Which Python of several is started, and what it imports besides its own packages: takes variables and the program that
//! a container is started with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{PythonEnvironment, PythonKind, Root, python, walk};

/// What a container is started with.
#[derive(Clone, Copy)]
pub(super) struct Started<'a> {
    /// The program and its arguments.
    pub(super) command: &'a [String],
    /// The folder that it is started in; absent where that is not known.
    pub(super) folder: Option<&'a Path>,
}

/// The folders of `PYTHONPATH` that are there, in its order, without links. Python takes others from the folder that it
/// is started in, which is not known.
pub(super) fn folders(root: &Root, variables: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in listed(variables, "PYTHONPATH") {
        let Ok(folder) = root.resolve(folder) else { continue };
        let is_all = folder == Path::new("/") || walk::is_kernels(&folder);
        if !is_all && root.is_folder(&folder) && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

/// The folders of a variable with colons between them, but for those that are relative.
fn listed<'v>(variables: &'v BTreeMap<String, String>, name: &str) -> impl Iterator<Item = &'v Path> + use<'v> {
    let path = variables.get(name).map(String::as_str).unwrap_or_default();
    path.split(':').filter(|folder| folder.starts_with('/')).map(Path::new)
}

/// Puts `folders` before the own folders of every Python, as all of them do (`site` of the standard library reads no
/// `.pth` files there). Where no environment was found, the system's Python has them.
pub(super) fn import_from(root: &Root, pythons: &mut Vec<PythonEnvironment>, folders: &[PathBuf]) {
    if folders.is_empty() {
        return;
    }
    if pythons.is_empty() {
        pythons.push(python::of_system(root, &folders[0]));
    }
    for python in pythons {
        python.site_packages.retain(|own| !folders.contains(own));
        python.site_packages.splice(0..0, folders.iter().cloned());
    }
}

/// Puts the environment first that a container's program is, or is started by: the first word of its command that is a
/// Python or lies in a virtual environment; else the first Python on `PATH`, where that is an environment of its own. A
/// system's Python comes first only where it is named: images have their PATH from the system they begin with.
pub(super) fn order(
    root: &Root,
    pythons: &mut [PythonEnvironment],
    started: Started<'_>,
    variables: &BTreeMap<String, String>,
) {
    let path = || listed(variables, "PATH");
    let on_path = |name: &str| path().map(|folder| folder.join(name)).find(|file| root.is_file(file));
    let is_own = |at: &usize| pythons[*at].kind != PythonKind::Base;
    // What a shell is to do is one word of the command.
    let words = started.command.iter().flat_map(|word| word.split_whitespace());
    let named = words.filter_map(|word| {
        let file = match word.contains('/') {
            true => started.folder.unwrap_or(Path::new("/")).join(word),
            false => on_path(word)?,
        };
        let found = environment(root, pythons, &file)?;
        (is_python(&file) || is_own(&found)).then_some(found)
    });
    let usual = || {
        let file = path().find_map(|folder| {
            ["python3", "python"].iter().map(|name| folder.join(name)).find(|file| root.is_file(file))
        });
        environment(root, pythons, &file?).filter(is_own)
    };
    let first = { named }.next().or_else(usual);
    if let Some(first) = first {
        pythons[..=first].rotate_right(1);
    }
}

/// The environment that a program lies in, or that it leads to.
fn environment(root: &Root, pythons: &[PythonEnvironment], file: &Path) -> Option<usize> {
    let folder = root.resolve(file.parent()?).ok()?;
    let within = |python: &PythonEnvironment| root.resolve(&python.prefix.join("bin")).is_ok_and(|bin| bin == folder);
    let real = root.resolve(file).ok();
    // A virtual environment's Python leads to that of its base.
    let same = |python: &PythonEnvironment| {
        python.kind != PythonKind::Venv && real.is_some() && python.interpreter == real && is_python(file)
    };
    pythons.iter().position(within).or_else(|| pythons.iter().position(same))
}

/// Whether a program is Python, by its name.
pub(super) fn is_python(file: &Path) -> bool {
    let version = file.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix("python"));
    version.is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}
