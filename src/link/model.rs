//! What the loader does with an environment, as data.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::elf::VersionNeed;
use crate::inventory::Library;
use crate::matrix::schema::FallbackRow;

/// What happens when an environment is used: process by process.
#[derive(Debug, Default)]
pub struct LinkModel {
    /// Processes: the interpreter, `import torch`, then package by package.
    pub contexts: Vec<Context>,
    /// Libraries of the subject that no process loads, as far as is known.
    pub unreached: Vec<Unreached>,
    /// Libraries, by inode, of which it is known that none does: they are for another CUDA than torch's.
    pub closed: Vec<(u64, u64)>,
    /// Of a running process: what the loader's search alone does not explain.
    pub running: Option<Running>,
}

/// How a running process differs from what the loader would make of its files. Its context is the first; what it has
/// mapped are the loads before [`Context::lazy`], what follows it would open while it works.
#[derive(Debug, Clone, Default)]
pub struct Running {
    /// Names that a mapped file needs and under which nothing is mapped, with the load that needs each.
    pub not_mapped: Vec<(String, usize)>,
    /// Loads that have the place of another file: an index into [`Context::loads`], who needs it, and the file that the
    /// search of that one leads to.
    pub diverted: Vec<(usize, usize, Arc<Library>)>,
}

/// One process: what it loads in which order, and what fails.
#[derive(Debug, Clone)]
pub struct Context {
    /// `import torch`; `torchvision, after torch`; `numpy`.
    pub name: String,
    /// The package whose files are opened: an index into the inventory's packages.
    pub package: Option<usize>,
    /// Whether torch was imported before.
    pub after_torch: bool,
    /// All that is loaded in the end, in order: the interpreter and what it needs first.
    pub loads: Vec<Arc<Load>>,
    /// Which of these offer their symbols to everything: the interpreter's, and what is opened with RTLD_GLOBAL.
    pub global: Vec<usize>,
    /// From here on, loads are opened by `edges`, and only when they are asked for.
    pub lazy: usize,
    /// The files that Python opens.
    pub roots: Vec<Root>,
    /// Libraries that libraries open while they work.
    pub edges: Vec<Edge>,
    /// What fails, in the order in which the loader meets it.
    pub problems: Vec<Problem>,
}

/// A file that Python opens: an extension module, or a library opened by path.
#[derive(Debug, Clone)]
pub struct Root {
    /// The file.
    pub library: Arc<Library>,
    /// When it is opened, as the end of a sentence.
    pub when: String,
    /// Why a failure is no problem.
    pub optional: Option<String>,
    /// What its package does without it, where nobody says so aloud.
    pub fallback: Option<FallbackRow>,
    /// Where its problems are in [`Context::problems`].
    pub problems: std::ops::Range<usize>,
}

/// One loaded file.
#[derive(Debug, Clone)]
pub struct Load {
    /// The file.
    pub library: Arc<Library>,
    /// The path that it was opened by; `$ORIGIN` is its folder.
    pub path: PathBuf,
    /// The name that was asked for.
    pub requested: String,
    /// Who asked first: an index into [`Context::loads`]; `None` for what is started or opened by Python.
    pub by: Option<usize>,
    /// How it was found.
    pub found: Found,
}

/// The rule by which a library is found (ld.so(8)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The program itself.
    Program,
    /// LD_PRELOAD or `/etc/ld.so.preload`.
    Preload,
    /// Opened by its path.
    Path,
    /// DT_RPATH of a file: the one that needs it, or one of those that caused that one to be loaded.
    Rpath {
        /// Whose.
        of: String,
        /// The folder.
        dir: PathBuf,
    },
    /// LD_LIBRARY_PATH.
    LibraryPath {
        /// The folder.
        dir: PathBuf,
    },
    /// DT_RUNPATH of the file that needs it.
    Runpath {
        /// Whose.
        of: String,
        /// The folder.
        dir: PathBuf,
    },
    /// `/etc/ld.so.cache`.
    Cache,
    /// The loader's default folders.
    Default {
        /// The folder.
        dir: PathBuf,
    },
}

/// One place that was looked into without success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// By which rule.
    pub rule: Found,
    /// The file that is not there, or is passed over.
    pub path: PathBuf,
    /// Why a file that is there is passed over: it is for another processor.
    pub passed_over: bool,
}

/// A library that a library opens while it works.
#[derive(Debug, Clone)]
pub struct Edge {
    /// Who opens: an index into [`Context::loads`].
    pub by: usize,
    /// Names in the order in which they are tried.
    pub candidates: Vec<String>,
    /// When, as the end of a sentence.
    pub when: String,
    /// Why a failure is no problem.
    pub optional: Option<String>,
    /// Where the fact is from.
    pub source: String,
    /// The name that led to a file, and the load: an index into [`Context::loads`].
    pub opened: Option<(String, usize)>,
    /// Where names were looked for in vain.
    pub tried: Vec<Step>,
    /// What fails when it is opened.
    pub problems: Vec<Problem>,
}

/// A library that no process loads, as far as is known.
#[derive(Debug, Clone)]
pub struct Unreached {
    /// The file.
    pub library: Arc<Library>,
    /// What nothing in the environment could provide.
    pub problems: Vec<Problem>,
}

/// Something that the loader stops at.
#[derive(Debug, Clone)]
pub enum Problem {
    /// A library that is not found.
    Unresolved {
        /// Its name.
        needed: String,
        /// Who needs it.
        by: Arc<Library>,
        /// Where it was looked for.
        tried: Vec<Step>,
        /// Why it is no problem.
        optional: Option<String>,
    },
    /// A symbol that no loaded file defines.
    Undefined {
        /// Its name.
        symbol: String,
        /// Its version, and the library that had it when `by` was linked.
        version: Option<VersionNeed>,
        /// Who needs it.
        by: Arc<Library>,
        /// A loaded file that has it with another version only.
        other_version: Option<Arc<Library>>,
        /// The loaded file that was to define it, where the version says so.
        expected: Option<Arc<Library>>,
    },
    /// A library without a version that is asked of it.
    VersionMissing {
        /// The version.
        version: String,
        /// The library that was found.
        library: Arc<Library>,
        /// Who asks.
        by: Arc<Library>,
    },
    /// A file that is found and is no library for this machine.
    Unloadable {
        /// The file.
        library: Arc<Library>,
        /// Who asks; `None` for Python.
        by: Option<Arc<Library>>,
        /// Why, as the end of a sentence.
        why: String,
    },
    /// A file that Python opens and that is not there.
    Absent {
        /// Below site-packages, as Python's code has it.
        file: String,
        /// Whose code.
        package: String,
        /// A file that would do but for being a module of another Python.
        other_python: Option<String>,
    },
}

impl Problem {
    /// Why it is no problem, where that is known.
    pub fn optional(&self) -> Option<&str> {
        match self {
            Self::Unresolved { optional, .. } => optional.as_deref(),
            _ => None,
        }
    }

    /// Who meets it.
    pub fn by(&self) -> Option<&Arc<Library>> {
        match self {
            Self::Unresolved { by, .. } | Self::Undefined { by, .. } | Self::VersionMissing { by, .. } => Some(by),
            Self::Unloadable { by, .. } => by.as_ref(),
            Self::Absent { .. } => None,
        }
    }
}

impl fmt::Display for Problem {
    /// As glibc's loader says it, with names in place of paths.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unresolved { needed, .. } => {
                write!(f, "{needed}: cannot open shared object file: No such file or directory")
            }
            Self::Undefined { symbol, version: Some(version), by, .. } => {
                write!(f, "{}: undefined symbol: {symbol}, version {}", by.name, version.name)
            }
            Self::Undefined { symbol, by, .. } => write!(f, "{}: undefined symbol: {symbol}", by.name),
            Self::VersionMissing { version, library, by } => {
                write!(f, "{}: version `{version}' not found (required by {})", library.name, by.name)
            }
            Self::Unloadable { library, why, .. } => write!(f, "{}: {why}", library.name),
            Self::Absent { file, package, .. } => write!(f, "{file} of {package}: no such file"),
        }
    }
}

impl Found {
    /// The folder that the rule names, where it names one.
    pub fn dir(&self) -> Option<&PathBuf> {
        match self {
            Self::Rpath { dir, .. } | Self::LibraryPath { dir } | Self::Runpath { dir, .. } | Self::Default { dir } => {
                Some(dir)
            }
            Self::Program | Self::Preload | Self::Path | Self::Cache => None,
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program => f.write_str("the program"),
            Self::Preload => f.write_str("LD_PRELOAD"),
            Self::Path => f.write_str("its path"),
            Self::Rpath { of, dir } => write!(f, "DT_RPATH of {of}: {}", dir.display()),
            Self::LibraryPath { dir } => write!(f, "LD_LIBRARY_PATH: {}", dir.display()),
            Self::Runpath { of, dir } => write!(f, "DT_RUNPATH of {of}: {}", dir.display()),
            Self::Cache => f.write_str("/etc/ld.so.cache"),
            Self::Default { dir } => write!(f, "default folder {}", dir.display()),
        }
    }
}
