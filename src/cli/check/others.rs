//! Other projects of a repository: which folders are theirs, and which files were written from their locks.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::super::input::{LOCK, MANIFEST};
use crate::file;
use crate::lock::Lock;
use crate::manifest;

/// Whether a folder is that of a project: it has a manifest, or a lock that was made without one, or is a submodule of git.
pub fn is_project(folder: &Path) -> bool {
    folder.join(MANIFEST).exists()
        || folder.join(LOCK).exists()
        || folder.join(".git").is_file()
        || has_table(&folder.join("pyproject.toml"))
}

/// Whether a pyproject.toml has `[tool.gpulock]`; one that is wrong is for its own project to say.
fn has_table(path: &Path) -> bool {
    file::text(path).is_ok_and(|text| {
        text.contains("tool.gpulock") && !matches!(manifest::parse_pyproject(&text, "pyproject.toml"), Ok(None))
    })
}

/// The hashes that files of other projects are marked with: those of the lock of each of `projects`, and of each of `locks` that
/// another manifest beside it was resolved to. A copy of the lock as it was is of no other project.
pub fn marks(projects: &[PathBuf], locks: &[PathBuf], ours: Option<&Path>) -> BTreeSet<String> {
    let read = |path: &Path| Lock::parse(&file::text(path).ok()?, "lock").ok();
    let theirs = projects.iter().filter_map(|folder| read(&folder.join(LOCK)));
    let beside = locks.iter().filter_map(|path| read(path).filter(|lock| is_of_another(lock, path, ours)));
    theirs.chain(beside).map(|lock| lock.digest()).collect()
}

/// Whether a manifest in the folder of a lock is the one that it was made for, and is not ours.
fn is_of_another(lock: &Lock, path: &Path, ours: Option<&Path>) -> bool {
    let Some(entries) = path.parent().map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
    else {
        return false;
    };
    let ours = ours.and_then(|path| fs::canonicalize(path).ok());
    let manifests = fs::read_dir(entries).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut manifests = manifests.filter(|path| path.extension().is_some_and(|end| end == "toml"));
    manifests.any(|path| {
        fs::canonicalize(&path).ok() != ours
            && file::text(&path).is_ok_and(|text| manifest::parse(&text, "toml").is_ok_and(|one| lock.satisfies(&one)))
    })
}
