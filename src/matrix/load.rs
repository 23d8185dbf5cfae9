//! Reads a directory that is laid over the embedded matrix.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::files::SINGLE;
use super::{Files, Matrix};
use crate::diag::{Diagnostic, Evidence, Failure};
use crate::file;

impl Matrix {
    /// The embedded matrix with the files of `directory` over it: a file there replaces the one of the same path.
    ///
    /// # Errors
    /// When the directory or a file in it cannot be read.
    pub fn with_overlay(directory: &Path) -> Result<Self, Failure> {
        let mut overlay = BTreeMap::new();
        read_below(directory, "", &mut overlay)?;
        let overlay_name = directory.display().to_string();
        if overlay.is_empty() {
            let evidence = Evidence::observed(overlay_name, "no .toml or .jsonl file in it");
            let error = Diagnostic::error("matrix-unreadable", "this directory holds no matrix", evidence);
            return Err(Failure::unanswerable(error.fix("name a directory laid out as compat-matrix/ is")));
        }
        Ok(Self { files: Files { overlay, overlay_name, alone: false }, ..Self::default() })
    }

    /// The matrix that a directory holds: by itself if it is a whole one, else laid over the embedded one.
    ///
    /// # Errors
    /// As [`Matrix::with_overlay`].
    pub fn of_directory(directory: &Path) -> Result<Self, Failure> {
        let mut matrix = Self::with_overlay(directory)?;
        matrix.files.alone = SINGLE.iter().all(|path| matrix.files.is_overlaid(path));
        Ok(matrix)
    }

    /// The same matrix with further files over it.
    pub fn with_files(&self, files: &BTreeMap<String, String>) -> Self {
        let mut all = self.files.clone();
        all.overlay.extend(files.iter().map(|(path, text)| (path.clone(), text.clone())));
        Self { files: all, ..Self::default() }
    }
}

fn read_below(root: &Path, below: &str, files: &mut BTreeMap<String, String>) -> Result<(), Failure> {
    let failed = |path: &Path, error: std::io::Error| {
        let evidence = Evidence::observed(path.display().to_string(), error.to_string());
        let problem = Diagnostic::error("matrix-unreadable", "the matrix directory cannot be read", evidence);
        Failure::unanswerable(problem.fix("name a directory laid out as compat-matrix/ is"))
    };
    let folder = root.join(below);
    for entry in fs::read_dir(&folder).map_err(|error| failed(&folder, error))? {
        let entry = entry.map_err(|error| failed(&folder, error))?;
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let relative = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        // Two levels are all there are; going no deeper keeps a link to a parent from being followed for ever.
        if path.is_dir() && below.is_empty() && !name.starts_with('.') {
            read_below(root, &relative, files)?;
        } else if name.ends_with(".toml") || name.ends_with(".jsonl") {
            files.insert(relative, file::text(&path)?);
        }
    }
    Ok(())
}
