//! The files of a project: takes its folder, gives the text files that gpulock may have something to say of, and those
//! that it would have judged and could not read.

use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Read as _};
use std::path::{Component, Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

use super::super::shaping::folder_in_repository;
use super::others;
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::dockerfile::instructions;
use crate::file;
use crate::lock;
use crate::render::{generated, pinned};

/// Folders that hold what others wrote: environments, packages, version control.
const FOREIGN: [&str; 8] = [".git", ".hg", ".svn", "node_modules", "__pycache__", "site-packages", ".tox", ".nox"];
/// What only environments have, in their own folder: virtual ones (PEP 405), conda's.
const ENVIRONMENT: [&str; 2] = ["pyvenv.cfg", "conda-meta"];
/// How much of a file is read to see whether gpulock wrote it, in bytes.
const HEAD: u64 = 2048;
/// More than any Dockerfile or template, in bytes.
const LARGEST: u64 = 1 << 20;

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
    /// What is said of files that would have been judged and could not be read; the subject is the file.
    pub unread: Vec<Diagnostic>,
    /// Folders of other projects, which were passed over.
    pub projects: Vec<PathBuf>,
    /// Locks, whatever they are called.
    pub locks: Vec<PathBuf>,
    /// Other files that may not be read: nobody knows whether gpulock wrote them.
    pub closed: Vec<String>,
}

impl Files {
    /// The names of those that something is said of.
    pub fn looked_at(&self) -> BTreeSet<&str> {
        let read = self.generated.iter().chain(&self.pinned).chain(&self.dockerfiles).map(|file| &*file.name);
        read.chain(self.unread.iter().filter_map(|finding| finding.subject.as_deref())).collect()
    }

    /// A Dockerfile, or why it is not judged.
    fn dockerfile(&mut self, name: String, path: &Path, severity: Severity) {
        match file::text_within(path, LARGEST) {
            Ok(text) => self.dockerfiles.push(ProjectFile { name, text }),
            Err(failure) => self.unread(&name, &failure, severity),
        }
    }

    fn unread(&mut self, name: &str, failure: &Failure, severity: Severity) {
        let unread = generated::unread(name, failure, severity);
        // One that is named may be found as well.
        if !self.unread.iter().any(|known| known.subject == unread.subject) {
            self.unread.push(unread);
        }
    }
}

/// Looks at all files below `folder`; folders behind links are not entered, `excluded` paths and other projects passed
/// over: those of another manifest or lock than `own`. `dockerfiles` are taken whatever they are called.
///
/// # Errors
/// One of `dockerfiles` that is not there.
pub fn find(folder: &Path, own: &Path, excluded: &[PathBuf], dockerfiles: &[PathBuf]) -> Result<Files, Failure> {
    let mut files = Files::default();
    let excluded: Vec<PathBuf> = excluded.iter().map(|path| whole(path)).collect();
    for path in dockerfiles {
        // A name that leads nowhere is mistyped; what cannot be read is a finding beside the others.
        if let Err(error) = fs::metadata(path)
            && error.kind() == ErrorKind::NotFound
        {
            return Err(file::unread(path, &error));
        }
        let name = path.display().to_string();
        match file::text_within(path, LARGEST) {
            _ if path.is_dir() => files.unread.extend([none(&name, "a folder")]),
            Ok(text) if instructions(&text).iter().all(|one| one.keyword != "FROM") => {
                files.unread.extend([none(&name, "not a Dockerfile: it has no FROM")]);
            }
            _ => files.dockerfile(name, path, Severity::Error),
        }
    }
    // The current folder stands in no name.
    let (start, above) = if folder.as_os_str().is_empty() { (Path::new("."), ".") } else { (folder, "") };
    let named = |path: &Path| path.strip_prefix(above).unwrap_or(path).to_owned();
    let is_excluded = |path: &Path| excluded.iter().any(|one| whole(path).starts_with(one));
    let of_lock = whole(own).parent().map(Path::to_owned);
    let mut projects = Vec::new();
    let is_ours = |entry: &DirEntry| {
        let path = named(entry.path());
        let is_folder = entry.file_type().is_dir();
        if is_excluded(&path) || is_folder && is_foreign(&path) {
            return false;
        }
        let is_other = is_folder && others::is_project(&path) && Some(whole(&path)) != of_lock;
        projects.extend(is_other.then_some(path));
        !is_other
    };
    for entry in WalkDir::new(start).min_depth(1).sort_by_file_name().into_iter().filter_entry(is_ours) {
        match entry {
            Ok(entry) if !entry.file_type().is_dir() => take(&named(entry.path()), &entry, &mut files),
            Ok(_) => {}
            Err(error) => files.closed.extend(error.path().map(|path| named(path).display().to_string())),
        }
    }
    files.projects = projects;
    for path in of_repository(own) {
        if !is_excluded(&path) {
            take_text(&path, &mut files);
        }
    }
    // One that is named, or that a link leads to, may be called otherwise than where it is found.
    let mut seen = BTreeSet::new();
    files.dockerfiles.retain(|file| seen.insert(real(&file.name)));
    files.unread.retain(|finding| seen.insert(real(finding.subject.as_deref().unwrap_or_default())));
    files.dockerfiles.sort_by_key(|file| whole(Path::new(&file.name)));
    files.generated.sort_by(|a, b| a.name.cmp(&b.name));
    files.pinned.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}

/// Jobs of CI stand at the root of a repository, wherever the project is: those that were written for this one, by the folder
/// that their header names.
fn of_repository(own: &Path) -> Vec<PathBuf> {
    let Some(below) = folder_in_repository(own) else { return Vec::new() };
    let mut root = own.parent().map_or_else(PathBuf::new, Path::to_owned);
    for _ in Path::new(&below).components() {
        if !matches!(root.components().next_back(), Some(Component::Normal(_))) {
            root.push("..");
        } else {
            root.pop();
        }
    }
    let jobs = fs::read_dir(root.join(".github/workflows")).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut paths: Vec<PathBuf> = jobs.chain([root.join(".gitlab-ci.yml")]).filter(|path| path.is_file()).collect();
    paths.retain(|path| head(path).is_ok_and(|head| generated::folder(&head).as_ref() == Some(&below)));
    paths.sort();
    paths
}

/// What is said of what is named and is no Dockerfile.
fn none(name: &str, what: &str) -> Diagnostic {
    let seen = Evidence::observed(name, "is named on the command line");
    let finding = Diagnostic::error(generated::UNCHECKED, format!("{name} is {what}, so it is not judged"), seen);
    finding.about(name).fix("name Dockerfiles alone; a project is named by its manifest: --manifest DIR/gpulock.toml")
}

/// The path from the root, without `.` and `..`, whether there is such a file or not.
fn whole(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for component in std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).components() {
        match component {
            Component::ParentDir => drop(whole.pop()),
            other => whole.push(other),
        }
    }
    whole
}

/// The same, links followed.
fn real(name: &str) -> PathBuf {
    fs::canonicalize(name).unwrap_or_else(|_| whole(Path::new(name)))
}

fn is_foreign(folder: &Path) -> bool {
    let named = folder.file_name().is_some_and(|name| FOREIGN.iter().any(|foreign| name == *foreign));
    named || ENVIRONMENT.iter().any(|sign| folder.join(sign).exists())
}

fn take(path: &Path, entry: &DirEntry, files: &mut Files) {
    let name = path.display().to_string();
    let is_file = entry.file_type().is_file();
    // Of what is no file, or a link, a Dockerfile alone is missed.
    let is_folder = || fs::metadata(path).is_ok_and(|it| it.is_dir());
    if is_dockerfile(path) && (is_file || !is_folder()) {
        files.dockerfile(name.clone(), path, Severity::Warning);
    }
    if !is_file {
        return;
    }
    if path.extension().is_some_and(|extension| extension == "j2") {
        // One that cannot be read wrote nothing here.
        files.templates.extend(file::text_within(path, LARGEST).ok().map(|text| (name, text)));
        return;
    }
    take_text(path, files);
}

/// A file of whatever kind, by its text.
fn take_text(path: &Path, files: &mut Files) {
    let name = path.display().to_string();
    let head = match head(path) {
        Ok(head) => head,
        // What a Dockerfile is, is said already.
        Err(_) if is_dockerfile(path) => return,
        Err(_) => return files.closed.push(name),
    };
    if path.file_name().is_some_and(|name| name == "pyproject.toml") {
        // What is no text has nothing that gpulock wrote.
        let text = file::text(path).ok().filter(|text| pinned::is_pinned(text));
        files.pinned.extend(text.map(|text| ProjectFile { name, text }));
    } else if head.starts_with(lock::MARK) {
        files.locks.push(path.to_owned());
    } else if generated::header(&head).is_some() {
        match file::text(path) {
            Ok(text) => files.generated.push(ProjectFile { name, text }),
            Err(failure) => {
                files.unread.retain(|known| known.subject.as_ref() != Some(&name));
                files.unread(&name, &failure, Severity::Error);
            }
        }
    }
}

/// How files end that are called after a Dockerfile and are none: texts about it, copies, templates.
const NONE: [&str; 16] = [
    "md", "rst", "adoc", "txt", "bak", "orig", "rej", "old", "save", "swp", "in", "j2", "jinja", "jinja2", "tmpl",
    "template",
];

/// `Dockerfile`, `Dockerfile.gpu`, `Dockerfile-gpu`, `Dockerfile_gpu`, `gpu.Dockerfile`, and the same as Containerfile; no
/// texts, copies and templates that are called so.
fn is_dockerfile(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let end = name.rsplit_once('.').map_or("", |(_, end)| end);
    // `dockerfile_parser.py` is a program, `Dockerfile-cuda12.1` a Dockerfile.
    let is_suffix = |rest: &str| !rest.contains('.') || end.starts_with(|c: char| c.is_ascii_digit());
    let is_one = |word: &str| {
        name.ends_with(&format!(".{word}"))
            || name.strip_prefix(word).is_some_and(|rest| {
                rest.is_empty() || rest.starts_with('.') || rest.starts_with(['-', '_']) && is_suffix(rest)
            })
    };
    (is_one("dockerfile") || is_one("containerfile"))
        && !name.ends_with("ignore")
        && !name.ends_with('~')
        && !NONE.contains(&end)
}

/// How a file begins.
fn head(path: &Path) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    file::open(path)?.take(HEAD).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
