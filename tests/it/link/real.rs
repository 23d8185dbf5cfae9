//! The real loader and the model, asked about the same program.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpulock::inventory::{Inventory, Options};
use gpulock::link::{LinkModel, Problem};
use gpulock::matrix::Matrix;

const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";

/// What a loader says of a program.
#[derive(Debug, PartialEq, Eq)]
pub struct Listing {
    /// Each name that was asked for with the file that was loaded for it, in order; `None` where none was found.
    pub loads: Vec<(String, Option<PathBuf>)>,
    /// What else is wrong, sorted: `version V1 of libb.so.1 by main`, `undefined f, version V1 by main`.
    pub problems: Vec<String>,
}

/// What ld.so says, as `ldd -r` asks it; `None` where this machine has none for x86-64.
pub fn listed(program: &Path, library_path: &str) -> Option<Listing> {
    if !Path::new(LOADER).exists() {
        eprintln!("skipped: no {LOADER} here to compare with");
        return None;
    }
    let mut command = Command::new(LOADER);
    command.arg(program).env_clear();
    command.envs([("LD_TRACE_LOADED_OBJECTS", "1"), ("LD_WARN", "yes"), ("LD_BIND_NOW", "yes")]);
    if !library_path.is_empty() {
        command.env("LD_LIBRARY_PATH", library_path);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    let mut loads = Vec::new();
    for line in text.lines().filter(|line| !line.contains("linux-vdso")) {
        // What is asked for by path is listed by it alone, and so is the loader itself.
        let (name, rest) = match line.trim().split_once(" => ") {
            Some(parts) => parts,
            None => (line.trim().split(" (0x").next().unwrap(), line.trim()),
        };
        if name.contains("ld-linux") {
            continue;
        }
        let path = rest.rsplit_once(" (0x").map(|(path, _)| PathBuf::from(path));
        loads.push((name.to_owned(), path));
    }
    let mut problems = Vec::new();
    for line in errors.lines().chain(text.lines()) {
        if let Some((symbol, by)) =
            line.trim().strip_prefix("undefined symbol: ").and_then(|rest| rest.split_once('\t'))
        {
            problems.push(format!("undefined {symbol} by {}", file_name(by.trim_matches(['(', ')']))));
        } else if let Some((library, rest)) = line.split_once(": version `") {
            let (version, rest) = rest.split_once("' not found (required by ").unwrap();
            let (library, by) = (file_name(library), file_name(rest.trim_end_matches(')')));
            problems.push(format!("version {version} of {library} by {by}"));
        } else if line.contains("invalid ELF header") || line.contains("file too short") {
            let library = line.rsplit_once(": ").unwrap().0.rsplit(": ").next().unwrap();
            problems.push(format!("unloadable {}", file_name(library)));
        }
    }
    problems.sort();
    problems.dedup();
    Some(Listing { loads, problems })
}

/// What the model says.
pub fn modelled(program: &Path, library_path: &str) -> Listing {
    let mut variables = BTreeMap::new();
    if !library_path.is_empty() {
        variables.insert("LD_LIBRARY_PATH".to_owned(), library_path.to_owned());
    }
    let inventory = Inventory::read(program, &Options { variables, jobs: Some(1) }).unwrap();
    let matrix = Matrix::embedded();
    let model = LinkModel::new(&inventory, matrix.dlopen().unwrap());
    let context = model.contexts.first().expect("a program is a context");
    let mut problems = Vec::new();
    let mut missing = Vec::new();
    for problem in &context.problems {
        let by = problem.by().map(|by| file_name(&by.path.to_string_lossy()).to_owned()).unwrap_or_default();
        match problem {
            Problem::Unresolved { needed, .. } => missing.push(needed.clone()),
            Problem::Undefined { symbol, version: Some(version), .. } => {
                problems.push(format!("undefined {symbol}, version {} by {by}", version.name));
            }
            Problem::Undefined { symbol, .. } => problems.push(format!("undefined {symbol} by {by}")),
            Problem::VersionMissing { version, library, .. } => {
                let library = library.path.to_string_lossy().into_owned();
                problems.push(format!("version {version} of {} by {by}", file_name(&library)));
            }
            Problem::Unloadable { library, .. } => {
                problems.push(format!("unloadable {}", file_name(&library.path.to_string_lossy())));
            }
            Problem::Absent { file, .. } => problems.push(format!("absent {file}")),
        }
    }
    problems.sort();
    problems.dedup();
    missing.sort();
    missing.dedup();
    let libraries = context.loads[1..context.lazy].iter().filter(|load| !load.requested.starts_with("ld-linux"));
    let loads = libraries.map(|load| {
        let by_path = load.requested.contains('/').then(|| load.path.display().to_string());
        (by_path.unwrap_or_else(|| load.requested.clone()), Some(load.path.clone()))
    });
    Listing { loads: loads.chain(missing.into_iter().map(|name| (name, None))).collect(), problems }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Fails unless both say the same; gives what they say.
pub fn agree(program: &Path, library_path: &str) -> Listing {
    let ours = modelled(program, library_path);
    if let Some(mut real) = listed(program, library_path) {
        // ld.so lists what is missing among the rest.
        let (found, mut missing): (Vec<_>, Vec<_>) = real.loads.into_iter().partition(|(_, path)| path.is_some());
        missing.sort();
        missing.dedup();
        real.loads = found.into_iter().chain(missing).collect();
        assert_eq!(ours, real, "the model (left) and ld.so (right) about {}", program.display());
    }
    ours
}
