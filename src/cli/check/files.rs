//! The files of a project: takes its folder, gives the text files that gpulock may have something to say of.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

use crate::diag::Failure;
use crate::file;
use crate::render::{generated, pinned};

/// Folders that hold what others wrote: environments, packages, version control.
const FOREIGN: [&str; 8] = [".git", ".hg", ".svn", "node_modules", "__pycache__", "site-packages", ".tox", ".nox"];
/// What only environments have, in their own folder: virtual ones (PEP 405), conda's.
const ENVIRONMENT: [&str; 2] = ["pyvenv.cfg", "conda-meta"];
/// How much of a file is read to see whether gpulock wrote it, in bytes.
const HEAD: u64 = 2048;

/// A file.
#[derive(Debug, Clone)]
pub struct ProjectFile {
    /// As it is shown: from where the command was started.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Files {
    /// Files that gpulock wrote, by their header.
    pub generated: Vec<ProjectFile>,
    /// Each pyproject.toml with pins of gpulock.
    pub pinned: Vec<ProjectFile>,
    /// Dockerfiles, by their name.
    pub dockerfiles: Vec<ProjectFile>,
    /// Templates (`*.j2`).
    pub templates: Vec<(String, String)>,
}

impl Files {
    /// Those that something is said of.
    pub fn all(&self) -> impl Iterator<Item = &ProjectFile> {
        self.generated.iter().chain(&self.pinned).chain(&self.dockerfiles)
    }
}

/// Looks at all files below `folder`; links are not followed, `excluded` paths and other projects passed over. `dockerfiles`
/// are taken whatever they are called.
///
/// # Errors
/// A file of these that cannot be read.
pub fn find(folder: &Path, excluded: &[PathBuf], dockerfiles: &[PathBuf]) -> Result<Files, Failure> {
    let mut files = Files::default();
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let excluded: Vec<PathBuf> = excluded.iter().map(|path| absolute(path)).collect();
    for path in dockerfiles {
        files.dockerfiles.push(ProjectFile { name: path.display().to_string(), text: file::text(path)? });
    }
    // The current folder stands in no name.
    let (start, above) = if folder.as_os_str().is_empty() { (Path::new("."), ".") } else { (folder, "") };
    let named = |path: &Path| path.strip_prefix(above).unwrap_or(path).to_owned();
    let is_excluded = |path: &Path| excluded.iter().any(|one| absolute(path).starts_with(one));
    let is_ours = |entry: &DirEntry| {
        let path = named(entry.path());
        !(is_excluded(&path) || entry.file_type().is_dir() && is_foreign(&path))
    };
    let entries = WalkDir::new(start).min_depth(1).sort_by_file_name().into_iter().filter_entry(is_ours);
    // What may not be read is not this project's own.
    for entry in entries.filter_map(Result::ok).filter(|entry| entry.file_type().is_file()) {
        take(&named(entry.path()), &mut files)?;
    }
    files.dockerfiles.sort_by_key(|file| absolute(Path::new(&file.name)));
    // One that is named may be called otherwise than where it is found.
    files.dockerfiles.dedup_by(|a, b| absolute(Path::new(&a.name)) == absolute(Path::new(&b.name)));
    files.generated.sort_by(|a, b| a.name.cmp(&b.name));
    files.pinned.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}

fn is_foreign(folder: &Path) -> bool {
    let named = folder.file_name().is_some_and(|name| FOREIGN.iter().any(|foreign| name == *foreign));
    named
        || ENVIRONMENT.iter().any(|sign| folder.join(sign).exists())
        || folder.join(super::super::input::MANIFEST).exists()
}

fn take(path: &Path, files: &mut Files) -> Result<(), Failure> {
    let named = |file: &Path| file.display().to_string();
    if path.extension().is_some_and(|extension| extension == "j2") {
        files.templates.push((named(path), file::text(path)?));
        return Ok(());
    }
    if is_dockerfile(path) {
        files.dockerfiles.push(ProjectFile { name: named(path), text: file::text(path)? });
    }
    if path.file_name().is_some_and(|name| name == "pyproject.toml") {
        // What is no text has nothing that gpulock wrote.
        files.pinned.extend(
            file::text(path)
                .ok()
                .filter(|text| pinned::is_pinned(text))
                .map(|text| ProjectFile { name: named(path), text }),
        );
    } else if generated::header(&head(path)).is_some() {
        files.generated.push(ProjectFile { name: named(path), text: file::text(path)? });
    }
    Ok(())
}

/// `Dockerfile`, `Dockerfile.gpu`, `gpu.Dockerfile`, and the same as Containerfile.
fn is_dockerfile(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let is_one =
        |word: &str| name == word || name.starts_with(&format!("{word}.")) || name.ends_with(&format!(".{word}"));
    (is_one("dockerfile") || is_one("containerfile")) && !name.ends_with("ignore")
}

/// How a file begins; what cannot be read was not written by gpulock.
fn head(path: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = file::open(path) {
        let _ = file.take(HEAD).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
