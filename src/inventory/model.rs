//! The whole of what was read: an [`Inventory`].

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use super::file::OpenFile;
use super::image::Image;
use super::process::Process;
use super::root::FileKind;
use super::{Distribution, DriverFile, Library, Loader, PythonEnvironment, Root, Subject, library, shown};

/// What to take into account besides the files.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The variables of the subject; those of this process are never read.
    pub variables: BTreeMap<String, String>,
    /// How many threads read; as many as there are cores when absent.
    pub jobs: Option<usize>,
}

/// What kind of thing could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TroubleKind {
    /// A file that is named as a library.
    Library,
    /// A folder, and all that is in it.
    Folder,
    /// What describes a package: METADATA, RECORD, a file of conda's.
    Package,
    /// A file of the loader: `ld.so.cache`, `ld.so.conf`.
    Loader,
}

/// Something in the subject that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What kind of thing it is.
    pub kind: TroubleKind,
    /// Which file or folder, inside the root.
    pub path: PathBuf,
    /// As reports name it.
    pub name: String,
    /// Why, as a sentence without its full stop: "it is a named pipe, not a file".
    pub why: String,
}

impl Trouble {
    pub(super) fn new(kind: TroubleKind, path: PathBuf, why: impl Into<String>) -> Self {
        Self { kind, name: shown(&path), path, why: why.into() }
    }
}

/// What a subject holds.
#[derive(Debug)]
pub struct Inventory {
    /// What it is.
    pub subject: Subject,
    /// Where its files lie.
    pub root: Root,
    /// Its Python environments, that of the subject itself first.
    pub pythons: Vec<PythonEnvironment>,
    /// Its packages.
    pub packages: Vec<Distribution>,
    /// Where its loader looks.
    pub loader: Loader,
    /// The driver's own libraries in the subject and in the loader's folders.
    pub driver: Vec<DriverFile>,
    /// Its variables.
    pub variables: BTreeMap<String, String>,
    /// Whether Apptainer starts it, and not a container runtime: `--nv` binds the driver's libraries into a folder at the
    /// end of LD_LIBRARY_PATH, mounts no cuda-compat, and does not ask what the image requires
    /// (github.com/apptainer/apptainer, `internal/pkg/runtime/launch/launcher_linux.go`).
    pub apptainer: bool,
    /// What could not be read.
    pub troubles: Vec<Trouble>,
    /// The image that it is, if it is one.
    pub image: Option<Image>,
    /// The process that it was read of, where it is one; then the libraries are those that it has mapped.
    pub process: Option<Process>,
    pub(super) libraries: Vec<Arc<Library>>,
    pub(super) known: Known,
    /// Where a wheel was unpacked; vanishes with this.
    pub(super) _unpacked: Option<tempfile::TempDir>,
}

/// Libraries that were asked for, by path and by inode.
#[derive(Debug, Default)]
pub(super) struct Known {
    paths: Mutex<HashMap<PathBuf, Option<Arc<Library>>>>,
    inodes: Mutex<HashMap<(u64, u64), Arc<Library>>>,
    /// Which package recorded a file.
    owners: OnceLock<HashMap<PathBuf, usize>>,
}

impl Known {
    pub(super) fn new(libraries: &[Arc<Library>]) -> Self {
        let inodes = libraries.iter().map(|library| (library.inode, Arc::clone(library))).collect();
        Self { paths: Mutex::default(), inodes: Mutex::new(inodes), owners: OnceLock::new() }
    }
}

impl Inventory {
    /// Its ELF files, and those named as if they were, sorted by place; each inode once.
    pub fn libraries(&self) -> &[Arc<Library>] {
        &self.libraries
    }

    /// The file that `path`, inside the root, leads to, read when it is first asked for; `None` where there is no regular
    /// file. Several paths of one inode give the same library.
    pub fn at(&self, path: &Path) -> Option<Arc<Library>> {
        let lock = |poisoned: std::sync::PoisonError<_>| poisoned.into_inner();
        if let Some(known) = self.known.paths.lock().unwrap_or_else(lock).get(path) {
            return known.clone();
        }
        let found = self.find(path);
        self.known.paths.lock().unwrap_or_else(lock).insert(path.to_owned(), found.clone());
        found
    }

    /// The names of symbols of a library, by their numbers in its symbol table, read from its file again; `None` for those
    /// that can no longer be read.
    pub fn symbol_names(&self, library: &Library, symbols: &[u32]) -> Vec<Option<String>> {
        let file = self.open(library).ok();
        let Some((object, file)) = library.object.as_ref().ok().zip(file) else { return vec![None; symbols.len()] };
        symbols.iter().map(|symbol| object.symbols.name(&file, *symbol).ok()).collect()
    }

    fn find(&self, path: &Path) -> Option<Arc<Library>> {
        let file = self.root.resolve(path).ok()?;
        let look = self.root.look(&file).ok().filter(|look| look.kind == FileKind::File)?;
        let lock = |poisoned: std::sync::PoisonError<_>| poisoned.into_inner();
        if let Some(known) = self.known.inodes.lock().unwrap_or_else(lock).get(&look.inode) {
            return Some(Arc::clone(known));
        }
        let mut read = library::read_on_demand(&self.root, path, file, look);
        if self.process.is_some() {
            // What it has not loaded is nevertheless of its packages.
            let recorded = |(at, package): (usize, &Distribution)| {
                package.files.iter().map(|file| (file.path.clone(), at)).collect::<Vec<_>>()
            };
            let owners = || self.packages.iter().enumerate().flat_map(recorded).collect();
            read.package = self.known.owners.get_or_init(owners).get(&read.path).copied();
            let sites = self.pythons.iter().flat_map(|python| &python.site_packages);
            let below = sites.filter_map(|site| read.path.strip_prefix(site).ok()).next();
            read.name = below.map_or_else(|| shown(&read.path), shown);
        }
        let read = Arc::new(read);
        // Another thread may have been faster; all get the same.
        Some(Arc::clone(self.known.inodes.lock().unwrap_or_else(lock).entry(look.inode).or_insert(read)))
    }
    /// A link at `path` that leads to nothing: how reports name it, and what it names.
    pub fn dangling(&self, path: &Path) -> Option<(String, PathBuf)> {
        let folder = self.root.resolve(path.parent()?).ok()?;
        let place = folder.join(path.file_name()?);
        let to = self.root.read_link(&place).ok()?;
        let below =
            self.pythons.iter().flat_map(|python| &python.site_packages).find_map(|site| place.strip_prefix(site).ok());
        Some((shown(below.unwrap_or(&place)), to)).filter(|_| self.root.resolve(&place).is_err())
    }

    /// Whether a library is mapped in a process and its file has lost its name since.
    pub fn is_deleted(&self, library: &Library) -> bool {
        self.process.as_ref().is_some_and(|process| process.contents.contains_key(&library.inode))
    }

    /// Opens the file of a library once more, for the names of its symbols.
    ///
    /// # Errors
    /// When it is gone or may not be read.
    pub fn open(&self, library: &Library) -> std::io::Result<OpenFile> {
        // One that a process has mapped may have lost its name.
        match self.process.as_ref().and_then(|process| process.contents.get(&library.inode)) {
            Some(content) => OpenFile::open(content),
            None => self.root.open_resolved(&library.path),
        }
    }
}
