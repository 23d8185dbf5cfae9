//! A running process: takes its number, gives an [`Inventory`] of what it has mapped, read through its own root, with the
//! Python packages that it imports from and the variables that it was started with. It is only read, never stopped.

pub mod core;
mod mapped;
mod maps;
mod table;
pub mod trace;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::model::Known;
use super::subject::{Subject, SubjectKind, refuse};
use super::{
    Inventory, Library, Options, PythonEnvironment, Role, Root, file, library, parallel, python, read, shown, startup,
};
use crate::diag::Failure;
use crate::elf::{Kind, Problem};
pub use table::{ProcFs, ProcessEntry, with_children};
pub use trace::{Program, Request, SearchRule};

/// What is known of a process besides its files.
#[derive(Debug, Default)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// The name of its program.
    pub name: String,
    /// What it has loaded, in order; of a running process it is that of addresses, which is mostly the same.
    pub mapped: Vec<Mapped>,
    /// Files without a name whose content nobody but an administrator may read: they were replaced or removed.
    pub unreadable: Vec<PathBuf>,
    /// Files that are known by their names alone: a core file has kept nothing of them.
    pub by_name: Vec<PathBuf>,
    /// Whether it loaded something while it was read, so that what is not there yet may be on its way.
    pub is_loading: bool,
    /// Libraries that it asked for in vain, where the loader was listened to.
    pub failures: Vec<Request>,
    /// How it ended, where that is known from a core file.
    pub death: Option<Death>,
    /// Where files that have lost their name are read, by inode.
    pub(in crate::inventory) contents: HashMap<(u64, u64), PathBuf>,
}

/// How a process ended that left a core file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Death {
    /// The number of the signal; 0 where the core was taken of a process that went on.
    pub signal: i32,
    /// The file that the instruction was in at which it was.
    pub at: Option<PathBuf>,
    /// That instruction's address.
    pub instruction: Option<u64>,
    /// The address that it must not use.
    pub fault: Option<u64>,
}

/// A library of a process.
#[derive(Debug, Clone)]
pub struct Mapped {
    /// The file that is mapped.
    pub library: Arc<Library>,
    /// Whether it has lost its name: it was replaced or removed after it was loaded.
    pub deleted: bool,
    /// Whether it came to be initialised: what was opened together with something that is missing did not.
    pub ready: bool,
}

/// The number in `pid:4242`; `None` for another kind of subject.
///
/// # Errors
/// When what follows `pid:` is no number of a process.
pub fn pid(given: &Path) -> Result<Option<u32>, Failure> {
    let Some(number) = given.to_str().and_then(|text| text.strip_prefix("pid:")) else { return Ok(None) };
    match number.parse() {
        Ok(pid) if pid > 0 => Ok(Some(pid)),
        _ => {
            let (message, fact) = (format!("`{number}` is no number of a process"), "not a number above 0");
            Err(refuse("not-a-subject", message, shown(given), fact.into(), "name it as pid:4242".into()))
        }
    }
}

impl Inventory {
    /// Reads what a process has loaded.
    ///
    /// # Errors
    /// When it has ended, belongs to somebody else, or is not of the kind that has files.
    pub fn of_process(processes: &ProcFs, pid: u32, options: &Options) -> Result<Self, Failure> {
        let threads = parallel::threads(options.jobs);
        let failed = |error: io::Error| unread(pid, &error);
        let entry = processes.entry(pid).map_err(failed)?;
        let folder = processes.of(pid);
        let text = processes.read(pid, "maps").map_err(failed)?;
        let files = maps::parse(&text);
        let program = fs::read_link(folder.join("exe")).map_err(|error| match files.is_empty() {
            // Neither threads of the kernel nor processes that have ended have a program.
            true => unread(pid, &io::Error::from(io::ErrorKind::NotFound)),
            false => unread(pid, &error),
        })?;
        let (root, seen_root) = root_of(processes, pid).map_err(failed)?;
        let found: Vec<_> = parallel::map(threads, &files, |text| {
            let named = text.path.windows(3).any(|part| part == b".so");
            let loaded = text.executable || text.several && named;
            loaded.then(|| mapped::find(text, &folder, &root, &seen_root))
        });
        let mut found: Vec<mapped::MappedFile> = found.into_iter().flatten().collect();
        // What is loaded later is mapped below, mostly.
        found.reverse();
        let environ = processes.read(pid, "environ").unwrap_or_default();
        let mut variables = variables(environ.split(|byte| *byte == 0));
        variables.extend(options.variables.clone());
        let process = Process { pid, name: entry.name, ..Process::default() };
        let subject = Subject { kind: SubjectKind::Process, given: format!("pid:{pid}").into(), path: program };
        let mut inventory = assemble(subject, root, &found, variables, process, threads);
        // Another process may have its number by now.
        let again = processes.entry(pid).map_err(failed)?;
        let later = processes.read(pid, "maps").map_err(failed)?;
        if again.started != entry.started {
            return Err(unread(pid, &io::Error::from(io::ErrorKind::NotFound)));
        }
        let is_loading = executable(&maps::parse(&later)) != executable(&files);
        inventory.process.iter_mut().for_each(|process| process.is_loading = is_loading);
        Ok(inventory)
    }

    /// What a program had loaded, as the loader told while it ran; `given` is how reports name it.
    pub fn of_run(traced: &Program, given: &Path, options: &Options) -> Self {
        let root = Root::new("/");
        let file = |path: &Path, ready: bool| {
            let path = root.resolve(path).ok()?;
            let content = Some((path.clone(), fs::metadata(&path).ok()?));
            Some(mapped::MappedFile { path, content, deleted: false, ready })
        };
        let program = file(&on_path(&traced.program), true);
        let path = program.as_ref().map_or_else(|| PathBuf::from(&traced.program), |file| file.path.clone());
        // What was found and could not be loaded. Code that tries names may meet a linker's script.
        let is_judged = |failure: &&Request| !failure.opened || failure.path().ancestors().any(python::is_site);
        let unloadable = traced.failures.iter().filter(is_judged).filter_map(|failure| file(failure.path(), false));
        let found: Vec<mapped::MappedFile> = program
            .into_iter()
            .chain(traced.loads.iter().filter_map(|load| file(load.path(), load.ready)))
            .chain(unloadable)
            .collect();
        let mut variables = options.variables.clone();
        // A script may have set another before it started this one.
        variables.extend(traced.library_path.clone().map(|folders| ("LD_LIBRARY_PATH".to_owned(), folders)));
        let name = path.file_name().map(|name| shown(Path::new(name))).unwrap_or_default();
        let process = Process { pid: traced.pid, name, failures: traced.failures.clone(), ..Process::default() };
        let subject = Subject { kind: SubjectKind::Process, given: given.to_owned(), path };
        assemble(subject, root, &found, variables, process, parallel::threads(options.jobs))
    }
}

/// A program that was named without its folder, where PATH has it.
fn on_path(program: &str) -> PathBuf {
    let path = Path::new(program);
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = || std::env::split_paths(&folders).map(|folder| folder.join(path)).find(|path| path.is_file());
    if program.contains('/') { path.to_owned() } else { found().unwrap_or_else(|| path.to_owned()) }
}

/// Reads the files of a process, the first that it loaded first, and what is around them.
fn assemble(
    subject: Subject,
    root: Root,
    found: &[mapped::MappedFile],
    variables: BTreeMap<String, String>,
    mut process: Process,
    threads: usize,
) -> Inventory {
    process.unreadable = found.iter().filter(|file| file.content.is_none()).map(|file| file.path.clone()).collect();
    let size = |file: &mapped::MappedFile| file.content.as_ref().map_or(0, |(_, metadata)| metadata.len());
    let read = parallel::largest_first(threads, found, size, library_of);
    let (mut libraries, mut states) = (Vec::new(), Vec::new());
    for (file, library) in found.iter().zip(read).filter_map(|(file, library)| Some((file, library?))) {
        if let Some((content, _)) = file.content.as_ref().filter(|_| file.deleted) {
            process.contents.insert(library.inode, content.clone());
        }
        states.push((file.deleted, file.ready));
        libraries.push(library);
    }
    let mut pythons = pythons(&root, &libraries);
    // The variable says nothing of a program that is no Python.
    if !pythons.is_empty() || startup::is_python(&subject.path) {
        startup::import_from(&root, &mut pythons, &startup::folders(&root, &variables));
    }
    let (packages, mut troubles) = read::packages(&root, &pythons, threads);
    let names = read::Names::new(&subject, &pythons);
    let (loader, driver, more) = read::settle(&mut libraries, &root, &packages, &names);
    troubles.extend(more);
    let mut libraries = library::share(libraries);
    let mapped = libraries.iter().zip(states);
    process.mapped =
        mapped.map(|(library, (deleted, ready))| Mapped { library: Arc::clone(library), deleted, ready }).collect();
    libraries.sort_by(|a, b| a.place.cmp(&b.place));
    let mut seen = HashSet::new();
    libraries.retain(|library| seen.insert(library.inode));
    Inventory {
        known: Known::new(&libraries),
        variables,
        subject,
        root,
        pythons,
        packages,
        loader,
        driver,
        apptainer: false,
        troubles,
        libraries,
        image: None,
        process: Some(process),
        _unpacked: None,
    }
}

/// The root of a process, and its folder as this machine sees it: `/` but for what was started with chroot(2).
fn root_of(processes: &ProcFs, pid: u32) -> io::Result<(Root, PathBuf)> {
    let folder = processes.of(pid);
    let seen = fs::read_link(folder.join("root"))?;
    let mounts = |folder: &Path| fs::read_link(folder.join("ns/mnt")).ok();
    let shared = mounts(&folder).is_some_and(|mounts_of| Some(mounts_of) == mounts(&processes.own()));
    let root = if shared { Root::new(&seen) } else { Root::new(folder.join("root")) };
    Ok((root, seen))
}

/// The paths of what may be executed.
fn executable<'t>(files: &[maps::MappedText<'t>]) -> BTreeSet<&'t [u8]> {
    files.iter().filter(|file| file.executable).map(|file| file.path).collect()
}

/// What a mapped file says; `None` for what is no ELF file.
fn library_of(file: &mapped::MappedFile) -> Option<Library> {
    let (content, metadata) = file.content.as_ref()?;
    let object = file::read_object(content);
    if matches!(&object, Err(error) if error.problem == Problem::NotElf && file.ready) {
        return None;
    }
    let program = object.as_ref().is_ok_and(|object| object.kind == Kind::Executable && object.soname.is_none());
    Some(Library {
        path: file.path.clone(),
        place: file.path.clone(),
        others: Vec::new(),
        name: String::new(),
        size: metadata.len(),
        inode: (metadata.dev(), metadata.ino()),
        role: if program { Role::Program } else { Role::Library },
        object,
        package: None,
    })
}

/// The environments that a process imports from: the folders of packages of which it has extension modules; that of torch
/// first, then by how many there are. Libraries that lie in other folders were brought by the loader's search.
fn pythons(root: &Root, libraries: &[Library]) -> Vec<PythonEnvironment> {
    let mut sites: BTreeMap<&Path, (bool, usize)> = BTreeMap::new();
    for library in libraries {
        let Some(site) = library.path.ancestors().find(|folder| python::is_site(folder)) else { continue };
        let name = library.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let below = library.path.strip_prefix(site).unwrap_or(Path::new(""));
        let torch = below.starts_with("torch/lib") && name.starts_with("libtorch");
        let module = name.contains(".cpython-") || name.ends_with(".abi3.so");
        if torch || module {
            let seen = sites.entry(site).or_default();
            *seen = (seen.0 || torch, seen.1 + 1);
        }
    }
    let mut sites: Vec<(&Path, (bool, usize))> = sites.into_iter().collect();
    sites.sort_by_key(|(_, seen)| std::cmp::Reverse(*seen));
    sites.iter().map(|(site, _)| python::of_site(root, site)).collect()
}

/// `NAME=VALUE`, each.
fn variables<'t>(entries: impl Iterator<Item = &'t [u8]>) -> BTreeMap<String, String> {
    let entries = entries.map(String::from_utf8_lossy);
    entries.filter_map(|entry| entry.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()))).collect()
}

/// How to run a command that reads other processes (proc_pid_maps(5): who may trace one with ptrace(2)).
pub fn with_rights(command: &str, is_root: bool) -> String {
    match is_root {
        // Containers take it from root.
        true => format!("{command}, with the capability SYS_PTRACE or outside of this container"),
        false => format!("sudo {command}"),
    }
}

fn unread(pid: u32, error: &io::Error) -> Failure {
    const ENDED: i32 = 3;
    let gone = error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(ENDED);
    let (code, message, fix) = match error.kind() {
        _ if gone => (
            "process-ended",
            format!("there is no process {pid} with files, or it has ended"),
            "`ps -e` lists the processes".to_owned(),
        ),
        io::ErrorKind::PermissionDenied => (
            "cannot-read",
            format!("process {pid} may not be read: it is another user's, or protects itself"),
            with_rights(&format!("gpulock verify pid:{pid}"), rustix::process::geteuid().is_root()),
        ),
        _ => ("cannot-read", format!("process {pid} cannot be read"), "`ps -e` lists the processes".to_owned()),
    };
    refuse(code, message, format!("/proc/{pid}"), error.to_string(), fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Root itself gets no advice to become root.
    #[test]
    fn who_may_read_another_process() {
        assert_eq!(with_rights("gpulock verify --all", false), "sudo gpulock verify --all");
        assert!(!with_rights("gpulock verify --all", true).contains("sudo"));
    }
}
