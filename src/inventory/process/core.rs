//! A core file: takes it and the files that its process had mapped, as far as they are still on this machine, gives an
//! [`Inventory`] as of a running process, and how that ended.

use std::fs;
use std::io;
use std::path::Path;

use super::super::file::OpenFile;
use super::super::subject::{Subject, SubjectKind, refuse};
use super::super::{Inventory, Options, Root, file, parallel, shown};
use super::mapped::MappedFile;
use super::{Death, Process, assemble, variables};
use crate::diag::Failure;
use crate::elf::{Core, CoreFile, Problem, ReadAt, Unreadable};

/// How often a core file comes packed, by what its name ends with, and what unpacks it.
const PACKED: [(&str, &str); 4] = [("zst", "zstd -d"), ("lz4", "lz4 -d"), ("xz", "xz -d"), ("gz", "gzip -d")];

/// The file in `core:FILE`; `None` for another kind of subject.
pub fn core(given: &Path) -> Option<&Path> {
    given.to_str()?.strip_prefix("core:").map(Path::new)
}

impl Inventory {
    /// Reads what the process of a core file had loaded.
    ///
    /// # Errors
    /// When the file is no core, or the program that left it is not on this machine.
    pub fn of_core(path: &Path, options: &Options) -> Result<Self, Failure> {
        let given = shown(path);
        let opened = OpenFile::open(path).map_err(|error| unopened(&given, &error))?;
        let core = Core::read(&opened).map_err(|error| unread(path, &given, &error))?;
        let root = Root::new("/");
        // Code that was made while the process ran is in files of memory, which end with it.
        let is_loaded = |file: &&CoreFile| {
            file.executable && !file.path.starts_with("/dev") && !shown(&file.path).starts_with("/memfd:")
        };
        let files: Vec<&CoreFile> = core.files.iter().filter(is_loaded).collect();
        let mut found = parallel::map(parallel::threads(options.jobs), &files, |file| find(&root, file));
        let program = core.program.and_then(|at| {
            let path = &core.files[at].path;
            found.iter().find(|file| file.path == *path)
        });
        let Some(program) = program.filter(|file| file.content.is_some()) else {
            return Err(elsewhere(&given, &core));
        };
        let subject =
            Subject { kind: SubjectKind::Core, given: format!("core:{given}").into(), path: program.path.clone() };
        // What is loaded later is mapped below, mostly.
        found.reverse();
        let mut variables = variables(core.variables.iter().map(Vec::as_slice));
        variables.extend(options.variables.clone());
        let at = core.instruction.and_then(|address| core.file_at(address)).map(|file| file.path.clone());
        let death = Death { signal: core.signal, at, instruction: core.instruction, fault: core.fault };
        let process = Process {
            pid: core.pid,
            name: core.name.clone(),
            // What the files that are gone would have loaded is not known.
            is_loading: found.iter().any(|file| file.content.is_none()),
            by_name: files.iter().filter(|file| file.start.is_empty()).map(|file| file.path.clone()).collect(),
            death: Some(death),
            ..Process::default()
        };
        Ok(assemble(subject, root, &found, variables, process, parallel::threads(options.jobs)))
    }
}

/// The file of that path, if it is the one that was mapped.
fn find(root: &Root, mapped: &CoreFile) -> MappedFile {
    let content = root.resolve(&mapped.path).ok().and_then(|inside| {
        let outside = root.outside(&inside)?;
        let metadata = fs::metadata(&outside).ok().filter(fs::Metadata::is_file)?;
        is_it(&outside, mapped).then_some((outside, metadata))
    });
    MappedFile { path: mapped.path.clone(), deleted: false, ready: true, content }
}

/// Whether a file is the one that was mapped, as far as the core has kept what tells: by its build id, else by how it
/// begins, where the sizes of all its parts are. Of what has kept nothing only the name is known.
fn is_it(path: &Path, mapped: &CoreFile) -> bool {
    let build_id = || file::read_object(path).ok().and_then(|object| object.build_id);
    if let Some((was, is)) = mapped.build_id.as_ref().and_then(|was| Some((was, build_id()?))) {
        return *was == is;
    }
    let mut start = vec![0; mapped.start.len()];
    OpenFile::open(path).is_ok_and(|file| file.read_at(0, &mut start).is_ok()) && start == mapped.start
}

fn unopened(given: &str, error: &io::Error) -> Failure {
    let fix = "name a core file that is there and may be read: core:FILE".to_owned();
    refuse("cannot-read", format!("{given} cannot be read"), given.to_owned(), error.to_string(), fix)
}

fn unread(path: &Path, given: &str, error: &Unreadable) -> Failure {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let packed = PACKED.iter().find(|(known, _)| *known == ending).filter(|_| error.problem == Problem::NotElf);
    let fix = match packed {
        Some((_, command)) => format!("unpack it first: {command} {given}, or `coredumpctl dump -o core PID`"),
        None => "name a core file as the kernel writes it, or as `coredumpctl dump -o core PID` does".to_owned(),
    };
    refuse(
        "not-a-subject",
        format!("{given} is no core file that can be read"),
        given.to_owned(),
        error.to_string(),
        fix,
    )
}

/// That the program of a core is not here, so that nothing else of it can be expected to be.
fn elsewhere(given: &str, core: &Core) -> Failure {
    let program = core.program.map(|at| shown(&core.files[at].path));
    let (message, fact) = match program {
        Some(program) => (
            format!("the core is of {program}, and that is not on this machine as it was"),
            format!("process {} ({}) had it mapped", core.pid, core.name),
        ),
        None => (
            "the core does not say which files its process had mapped".to_owned(),
            "no list of mapped files (NT_FILE) with its program".to_owned(),
        ),
    };
    let fix = "read it where the process ran: on that machine, or in a container of that image".to_owned();
    refuse("core-elsewhere", message, given.to_owned(), fact, fix)
}
