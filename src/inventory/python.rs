//! Python environments: takes a prefix or a site-packages folder, gives its interpreter, version and import folders
//! (PEP 405; `site` of the standard library).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::{Root, walk};
use crate::python::PythonVersion;

/// Kinds of Python environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PythonKind {
    /// Made by `venv`, virtualenv or uv.
    Venv,
    /// A conda environment.
    Conda,
    /// A Python of the system or of its own folder.
    Base,
    /// Nothing but a site-packages folder is known.
    Folder,
}

/// One Python environment of the subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonEnvironment {
    /// What made it.
    pub kind: PythonKind,
    /// Its folder (`sys.prefix`), inside the root; for a mere site-packages folder, that.
    pub prefix: PathBuf,
    /// The version that its files name.
    pub version: Option<PythonVersion>,
    /// The interpreter as it is started, `bin/python` of the prefix; its links lead to `interpreter`.
    pub command: Option<PathBuf>,
    /// The interpreter's file, inside the root, without links.
    pub interpreter: Option<PathBuf>,
    /// `libpython3.11.so.1.0` of that interpreter's installation, where there is one.
    pub shared_library: Option<PathBuf>,
    /// The folders that packages are imported from, without links, each once: site-packages, folders that `.pth` files
    /// add, and those of the base interpreter where the environment shares them.
    pub site_packages: Vec<PathBuf>,
}

/// Larger files are not what their name says, in bytes.
const LIMIT: u64 = 1 << 20;

/// What `pyvenv.cfg` says.
#[derive(Debug, Default)]
struct Config {
    home: Option<PathBuf>,
    version: Option<PythonVersion>,
    shares: bool,
}

/// The virtual environment at `prefix`.
pub(super) fn venv(root: &Root, prefix: &Path) -> PythonEnvironment {
    let config = config(root, prefix);
    let base = config.home.as_deref().and_then(Path::parent).map(Path::to_owned);
    let mut environment = at(root, prefix, PythonKind::Venv, config.version);
    let version = environment.version;
    if let Some(base) = &base {
        if config.shares {
            // Debian's own Python has its packages in `dist-packages`, below two prefixes.
            for prefix in [base.as_path(), Path::new("/usr/local"), Path::new("/usr")] {
                let folders = sites(root, prefix, version);
                let own =
                    |folder: &PathBuf| prefix == base || folder.ends_with("dist-packages") && base == Path::new("/usr");
                extend(root, &mut environment.site_packages, folders.into_iter().filter(own));
            }
        }
        environment.shared_library = shared_library(root, base, version);
    }
    environment
}

/// The conda environment at `prefix`.
pub(super) fn conda(root: &Root, prefix: &Path) -> PythonEnvironment {
    at(root, prefix, PythonKind::Conda, None)
}

/// The environment that a site-packages folder belongs to, with that folder alone.
pub(super) fn of_site(root: &Root, site: &Path) -> PythonEnvironment {
    let mut environment = match layout(site) {
        Some((prefix, _)) if root.is_file(&prefix.join("pyvenv.cfg")) => venv(root, prefix),
        Some((prefix, _)) if root.is_folder(&prefix.join("conda-meta")) => conda(root, prefix),
        Some((prefix, version)) => base(root, prefix, version),
        None => folder_alone(site),
    };
    environment.site_packages.clear();
    extend(root, &mut environment.site_packages, [site.to_owned()]);
    environment
}

/// The system's own Python, which may have no packages; without any, what imports from `folder`.
pub(super) fn of_system(root: &Root, folder: &Path) -> PythonEnvironment {
    let prefixes = ["/usr/local", "/usr"].map(Path::new);
    let system = prefixes.map(|prefix| at(root, prefix, PythonKind::Base, None));
    system.into_iter().find(|python| python.interpreter.is_some()).unwrap_or_else(|| folder_alone(folder))
}

fn folder_alone(folder: &Path) -> PythonEnvironment {
    PythonEnvironment {
        kind: PythonKind::Folder,
        prefix: folder.to_owned(),
        version: None,
        command: None,
        interpreter: None,
        shared_library: None,
        site_packages: Vec::new(),
    }
}

/// The environments that a walk through a root filesystem met.
pub(super) fn of_marks(root: &Root, marks: &[PathBuf]) -> Vec<PythonEnvironment> {
    let mut environments: Vec<PythonEnvironment> = Vec::new();
    for mark in marks {
        if root.is_file(&mark.join("pyvenv.cfg")) {
            environments.push(venv(root, mark));
        } else if let Some(prefix) = mark.parent().filter(|_| mark.ends_with("conda-meta")) {
            environments.push(conda(root, prefix));
        }
    }
    for site in marks.iter().filter(|mark| is_site(mark)) {
        if environments.iter().any(|environment| environment.site_packages.contains(site)) {
            continue;
        }
        let new = of_site(root, site);
        let same = |other: &&mut PythonEnvironment| {
            other.kind == PythonKind::Base && new.interpreter.is_some() && other.interpreter == new.interpreter
        };
        match environments.iter_mut().find(same) {
            Some(other) => extend(root, &mut other.site_packages, new.site_packages),
            None => environments.push(new),
        }
    }
    environments
}

/// A Python of its own below `prefix`, or Debian's, whose packages lie below `/usr/local` and `/usr`.
fn base(root: &Root, prefix: &Path, version: Option<PythonVersion>) -> PythonEnvironment {
    let own = at(root, prefix, PythonKind::Base, version);
    if own.interpreter.is_none() && prefix == Path::new("/usr/local") {
        let system = at(root, Path::new("/usr"), PythonKind::Base, version);
        if system.interpreter.is_some() {
            return system;
        }
    }
    own
}

/// What lies below `prefix`.
fn at(root: &Root, prefix: &Path, kind: PythonKind, version: Option<PythonVersion>) -> PythonEnvironment {
    let mut names = vec!["python".to_owned(), "python3".to_owned()];
    if let Some(version) = version {
        // The very version first: `python3` of a system may be another.
        names.insert(0, format!("python{version}"));
    }
    let command = names.iter().map(|name| prefix.join("bin").join(name)).find(|path| root.is_file(path));
    let interpreter = command.as_deref().and_then(|path| root.resolve(path).ok());
    let named = interpreter.as_deref().and_then(Path::file_name).and_then(python_name).flatten();
    let folders = sites(root, prefix, version.or(named));
    let version = version.or(named).or_else(|| folders.iter().find_map(|folder| layout(folder)?.1));
    let mut site_packages = Vec::new();
    extend(root, &mut site_packages, folders);
    let shared_library = shared_library(root, prefix, version);
    PythonEnvironment { kind, prefix: prefix.to_owned(), version, command, interpreter, shared_library, site_packages }
}

/// `pyvenv.cfg`: lines of `name = value`.
fn config(root: &Root, prefix: &Path) -> Config {
    let mut config = Config::default();
    let bytes = root.read(&prefix.join("pyvenv.cfg"), LIMIT).unwrap_or_default();
    for (name, value) in String::from_utf8_lossy(&bytes).lines().filter_map(|line| line.split_once('=')) {
        let value = value.trim();
        match name.trim().to_lowercase().as_str() {
            "home" => config.home = Some(PathBuf::from(value)),
            // `version_info` is uv's and virtualenv's, where it may go on: `3.11.7.final.0`.
            "version" | "version_info" => {
                let numbers: Vec<&str> = value.split('.').take(2).collect();
                config.version = numbers.join(".").parse().ok().or(config.version);
            }
            "include-system-site-packages" => config.shares = value.eq_ignore_ascii_case("true"),
            _ => {}
        }
    }
    config
}

/// The folders of packages below `prefix`: those of `version` where there are any, else all.
fn sites(root: &Root, prefix: &Path, version: Option<PythonVersion>) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for lib in ["lib", "lib64"] {
        let lib = prefix.join(lib);
        for name in root.list(&lib) {
            let Some(found) = python_name(&name) else { continue };
            for folder in ["site-packages", "dist-packages"] {
                let folder = lib.join(&name).join(folder);
                if root.is_folder(&folder) {
                    all.push((found, folder));
                }
            }
        }
    }
    // The version of a build without the global lock is in the folder's name and not in `pyvenv.cfg`.
    let same = |found: Option<PythonVersion>| {
        let numbers = |version: PythonVersion| (version.major, version.minor);
        found.is_none() || found.map(numbers) == version.map(numbers)
    };
    let chosen: Vec<PathBuf> = all.iter().filter(|(found, _)| same(*found)).map(|(_, folder)| folder.clone()).collect();
    if chosen.is_empty() { all.into_iter().map(|(_, folder)| folder).collect() } else { chosen }
}

/// `python3.11`, `python3.13t`, `pypy3.10`: the version; `python3` names none.
fn python_name(name: &OsStr) -> Option<Option<PythonVersion>> {
    let version = name.to_str()?;
    let version = version.strip_prefix("python").or_else(|| version.strip_prefix("pypy"))?;
    match version {
        "3" => Some(None),
        _ => version.parse().ok().map(Some),
    }
}

/// Prefix and version of a folder `PREFIX/lib/python3.11/site-packages`.
pub(super) fn layout(site: &Path) -> Option<(&Path, Option<PythonVersion>)> {
    let python = site.parent()?;
    let lib = python.parent()?;
    let known = matches!(lib.file_name()?.as_bytes(), b"lib" | b"lib64");
    known.then(|| Some((lib.parent()?, python_name(python.file_name()?)?))).flatten()
}

/// Whether a folder is one of installed packages, by its name.
pub(super) fn is_site(folder: &Path) -> bool {
    folder.ends_with("site-packages") || folder.ends_with("dist-packages")
}

fn shared_library(root: &Root, prefix: &Path, version: Option<PythonVersion>) -> Option<PathBuf> {
    let name = format!("libpython{}.so.1.0", version?);
    const FOLDERS: [&str; 4] = ["lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"];
    FOLDERS.iter().find_map(|folder| root.resolve(&prefix.join(folder).join(&name)).ok())
}

/// Adds folders, and those that their `.pth` files name, as `site.addsitedir` does; lines that are code are not run.
fn extend(root: &Root, sites: &mut Vec<PathBuf>, folders: impl IntoIterator<Item = PathBuf>) {
    for folder in folders {
        let Ok(folder) = root.resolve(&folder) else { continue };
        if sites.contains(&folder) {
            continue;
        }
        sites.push(folder.clone());
        for name in root.list(&folder).into_iter().filter(|name| name.as_bytes().ends_with(b".pth")) {
            if name.as_bytes().starts_with(b".") {
                continue;
            }
            let bytes = root.read(&folder.join(&name), LIMIT).unwrap_or_default();
            for line in bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
                let code = [&b"#"[..], b"import ", b"import\t"].iter().any(|start| line.starts_with(start));
                if line.is_empty() || code {
                    continue;
                }
                let added = root.resolve(&folder.join(OsStr::from_bytes(line)));
                if let Ok(added) = added
                    && added != Path::new("/")
                    && !walk::is_kernels(&added)
                    && root.is_folder(&added)
                    && !sites.contains(&added)
                {
                    sites.push(added);
                }
            }
        }
    }
}
