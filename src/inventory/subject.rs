//! What a path is: virtual environment, site-packages folder, conda prefix, root filesystem, ELF file or wheel.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::{Root, root, shown};
use crate::diag::{Diagnostic, Evidence, Failure};
use crate::elf::Core;

/// Kinds of subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubjectKind {
    /// A virtual environment (`pyvenv.cfg`, PEP 405).
    Venv,
    /// A folder of installed packages.
    SitePackages,
    /// A conda environment (`conda-meta`).
    Conda,
    /// The root filesystem of a machine, container or image.
    RootFilesystem,
    /// An image: the files that its layers make up.
    Image,
    /// A single ELF file.
    Library,
    /// A wheel.
    Wheel,
    /// A running process.
    Process,
    /// The core file of a process that died.
    Core,
}

impl SubjectKind {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Venv => "venv",
            Self::SitePackages => "site-packages",
            Self::Conda => "conda",
            Self::RootFilesystem => "root-filesystem",
            Self::Image => "image",
            Self::Library => "library",
            Self::Wheel => "wheel",
            Self::Process => "process",
            Self::Core => "core",
        }
    }

    /// Whether it is an environment that a Python is started in: a wheel or a library is no such.
    pub(super) fn has_python(self) -> bool {
        !matches!(self, Self::Library | Self::Wheel)
    }

    /// Whether it is all of a root filesystem.
    pub fn is_root(self) -> bool {
        matches!(self, Self::RootFilesystem | Self::Image)
    }
}

/// What is judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// What it is.
    pub kind: SubjectKind,
    /// As the user named it.
    pub given: PathBuf,
    /// The folder or file, inside the root, without links; for a wheel the folder that it was unpacked into.
    pub path: PathBuf,
}

/// Folders in which projects keep their environment.
const USUAL: [&str; 4] = [".venv", "venv", "env", ".env"];
const KINDS: &str = "a virtual environment, a site-packages folder, a conda environment, a root filesystem, an ELF file or \
                     a wheel";

/// What `given` is, and its root; a wheel's path is that of the wheel.
///
/// # Errors
/// No such file, one that may not be read, or nothing of the kinds above.
pub(super) fn find(given: &Path) -> Result<(Subject, Root), Failure> {
    let path = fs::canonicalize(given).map_err(|error| unread(given, &error))?;
    let metadata = fs::metadata(&path).map_err(|error| unread(given, &error))?;
    let kind = if metadata.is_dir() {
        // Says whether it may be read, before what is not seen in it counts as not there.
        fs::read_dir(&path).map_err(|error| unread(given, &error))?;
        folder(&path).ok_or_else(|| unknown_folder(given, &path))?
    } else {
        file(given, &path)?
    };
    let given = given.to_owned();
    Ok(match kind {
        SubjectKind::RootFilesystem => (Subject { kind, given, path: PathBuf::from("/") }, Root::new(path)),
        _ => (Subject { kind, given, path }, Root::new("/")),
    })
}

fn folder(path: &Path) -> Option<SubjectKind> {
    if path.join("pyvenv.cfg").is_file() {
        Some(SubjectKind::Venv)
    } else if path.join("conda-meta").is_dir() {
        Some(SubjectKind::Conda)
    } else if path.ends_with("site-packages") || path.ends_with("dist-packages") || has_packages(path) {
        Some(SubjectKind::SitePackages)
    } else if is_root(path) {
        Some(SubjectKind::RootFilesystem)
    } else {
        None
    }
}

/// As after `pip install --target`.
fn has_packages(path: &Path) -> bool {
    fs::read_dir(path).into_iter().flatten().flatten().any(|entry| {
        let name = entry.file_name();
        name.to_str().is_some_and(|name| name.ends_with(".dist-info")) && entry.path().join("METADATA").is_file()
    })
}

/// Has what every system has: `etc`, and the loader's configuration or folders that it looks into by default. A link may
/// be absolute, and then leads out of a root that is not this machine's.
fn is_root(path: &Path) -> bool {
    let there = |inside: &str| fs::symlink_metadata(path.join(inside)).is_ok();
    const SIGNS: [&str; 5] = ["etc/ld.so.conf", "etc/ld.so.cache", "etc/os-release", "usr/lib", "lib64"];
    path == Path::new("/") || (there("etc") || there("usr/lib")) && SIGNS.iter().any(|sign| there(sign))
}

fn file(given: &Path, path: &Path) -> Result<SubjectKind, Failure> {
    let name = shown(given);
    // A pipe or a device is not opened.
    let (file, metadata) = root::open_regular(path).map_err(|error| unread(given, &error))?;
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("whl")) {
        return Ok(SubjectKind::Wheel);
    }
    let mut start = [0; 64];
    let count = file.read_at(&mut start, 0).map_err(|error| unread(given, &error))?;
    if Core::starts_with(&start[..count]) {
        let (message, fix) = (format!("{name} is the core file of a process"), format!("gpulock verify core:{name}"));
        return Err(refuse("not-a-subject", message, name, "an ELF file of the type ET_CORE".into(), fix));
    }
    if start[..count].starts_with(b"\x7fELF") {
        return Ok(SubjectKind::Library);
    }
    let fact = match metadata.len() {
        0 => "it is empty".to_owned(),
        size => format!("{size} bytes that do not begin as ELF does"),
    };
    let message = format!("{name} is neither an ELF file nor a wheel");
    let fix = format!("name {KINDS}; an image as image:FILE or sif:FILE");
    Err(refuse("not-a-subject", message, name, fact, fix))
}

fn unknown_folder(given: &Path, path: &Path) -> Failure {
    let name = shown(given);
    let near = USUAL.iter().map(|usual| path.join(usual)).find(|usual| folder(usual) == Some(SubjectKind::Venv));
    let near = near.or_else(|| python_below(path)).map(|near| match near.strip_prefix(path) {
        Ok(below) => given.join(below),
        Err(_) => near,
    });
    let fix = match near {
        _ if path.join("oci-layout").is_file() => format!("it is the layout of an image: name it as oci:{name}"),
        Some(near) => format!("name the environment in it: {}", shown(&near)),
        None => format!("name {KINDS}"),
    };
    let fact = "no pyvenv.cfg, no conda-meta, no *.dist-info, no etc with a loader's configuration";
    refuse("not-a-subject", format!("{name} is not an environment"), name, fact.into(), fix)
}

/// The site-packages folder below a Python's own prefix.
fn python_below(path: &Path) -> Option<PathBuf> {
    let lib = path.join("lib");
    let mut folders: Vec<PathBuf> = fs::read_dir(&lib)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("python"))
        .map(|entry| entry.path().join("site-packages"))
        .filter(|folder| folder.is_dir())
        .collect();
    folders.sort();
    folders.pop()
}

fn unread(given: &Path, error: &io::Error) -> Failure {
    let name = shown(given);
    let (why, fix) = match error.kind() {
        io::ErrorKind::NotFound => ("does not exist", "name a path that is there".to_owned()),
        io::ErrorKind::PermissionDenied => {
            ("may not be read", "change its permissions, or name another path".to_owned())
        }
        io::ErrorKind::InvalidInput => ("is neither a file nor a folder", format!("name {KINDS}")),
        _ => ("cannot be read", "name a path that can be read".to_owned()),
    };
    refuse("cannot-read", format!("{name} {why}"), name, error.to_string(), fix)
}

pub(super) fn refuse(code: &'static str, message: String, what: String, fact: String, fix: String) -> Failure {
    Failure::unanswerable(Diagnostic::error(code, message, Evidence::observed(what, fact)).fix(fix))
}
