//! The link model against the real loader, in real environments: those that GPULOCK_TEST_ENVIRONMENTS names, folders of
//! virtual environments with torch, separated by `:`; without it the healthy one of the tests of verify.
//!
//! Every library is opened by `ctypes.CDLL` in a forked process, alone and after `import torch`, and the model says for
//! each whether that works, what is missing, and which files are mapped.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use gpulock::inventory::{Inventory, Options};
use gpulock::link::{LinkModel, Opening, Problem};
use gpulock::matrix::Matrix;
use serde_json::Value;

use crate::run::network;
use crate::verify::environment::healthy;

pub fn environments() -> Vec<PathBuf> {
    match std::env::var("GPULOCK_TEST_ENVIRONMENTS") {
        Ok(named) => named.split(':').filter(|name| !name.is_empty()).map(PathBuf::from).collect(),
        Err(_) if network() => healthy().map(|healthy| healthy.path()).into_iter().collect(),
        Err(_) => Vec::new(),
    }
}

/// What the real loader does with each of the files.
fn oracle(environment: &Path, way: &str, files: &[PathBuf]) -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/oracle.py");
    let mut child = Command::new(environment.join("bin/python"))
        .args([script, way])
        .env_remove("LD_LIBRARY_PATH")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let list: String = files.iter().map(|file| format!("{}\n", file.display())).collect();
    child.stdin.take().unwrap().write_all(list.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
}

/// The same paths without links, as the kernel names mapped files; what is no library is left out.
fn libraries(paths: &Value) -> BTreeSet<PathBuf> {
    let paths = paths.as_array().into_iter().flatten().filter_map(Value::as_str);
    paths.filter(|path| path.contains(".so")).map(|path| fs::canonicalize(path).unwrap_or(path.into())).collect()
}

#[test]
fn network_every_library_is_loaded_as_the_real_loader_does() {
    let matrix = Matrix::embedded();
    let facts = matrix.dlopen().unwrap();
    let mut differ = Vec::new();
    for environment in environments() {
        let start = Instant::now();
        let inventory = Inventory::read(&environment, &Options::default()).unwrap();
        let read = start.elapsed();
        let start = Instant::now();
        let model = LinkModel::new(&inventory, facts);
        let linked = start.elapsed();
        let files: Vec<PathBuf> = inventory
            .libraries()
            .iter()
            .filter(|library| library.object.is_ok() && library.name.contains(".so"))
            .map(|library| library.place.clone())
            .collect();
        let mut figures = BTreeMap::new();
        for way in ["alone", "torch"] {
            let real = oracle(&environment, way, &files);
            let opening = Opening::after(&inventory, facts, way == "torch");
            if real.is_null() {
                // torch cannot be imported: the model must know.
                let fails = |problem: &Problem| problem.optional().is_none();
                let import = model.contexts.iter().find(|context| context.name == "import torch");
                if !import.is_some_and(|import| import.problems.iter().any(fails)) {
                    differ
                        .push(format!("{}: `import torch` fails, and the model has no reason", environment.display()));
                }
                continue;
            }
            if way == "torch" {
                let mapped = libraries(&real["before"]);
                let ours: BTreeSet<PathBuf> = opening.mapped().into_iter().collect();
                // What torch imports of other packages (NumPy, cuda.bindings) is theirs.
                let of_packages = |path: &&PathBuf| {
                    let path = path.to_string_lossy();
                    ["/torch/", "/nvidia/"].iter().any(|part| path.contains(part))
                };
                for path in mapped.symmetric_difference(&ours).filter(of_packages) {
                    let who = if ours.contains(path) { "the model alone" } else { "the loader alone" };
                    differ.push(format!("{}: import torch: {who} maps {}", environment.display(), path.display()));
                }
                figures.insert("mapped by import torch", mapped.intersection(&ours).filter(of_packages).count());
            }
            for file in &files {
                let answer = &real["files"][file.to_str().unwrap()];
                let error = answer[0].as_str();
                let (problems, new) = opening.open(file);
                let said: Vec<String> = problems.iter().map(message).collect();
                let agrees = match error {
                    None => said.is_empty() && libraries(&answer[1]).iter().all(|path| new.contains(path)),
                    Some(error) => said.iter().any(|said| error.contains(said.as_str())),
                };
                *figures.entry(if error.is_some() { "fail" } else { "load" }).or_insert(0) += usize::from(agrees);
                if !agrees {
                    let missed: Vec<_> = libraries(&answer[1]).into_iter().filter(|path| !new.contains(path)).collect();
                    differ.push(format!(
                        "{way}: {}: real {error:?}, model {said:?}, unmapped {missed:?}",
                        file.display()
                    ));
                }
            }
        }
        let contexts = model.contexts.len();
        println!(
            "{}: {} libraries, {contexts} processes, {figures:?}; read {read:?}, linked {linked:?}",
            environment.display(),
            files.len()
        );
        for problem in model.contexts.iter().flat_map(|context| &context.problems) {
            println!("   {} {problem}", if problem.optional().is_some() { "optional:" } else { "PROBLEM:" });
        }
        for context in &model.contexts {
            for edge in context.edges.iter().filter(|edge| edge.opened.is_none()) {
                let kind = if edge.optional.is_some() { "optional:" } else { "PROBLEM:" };
                println!(
                    "   {kind} {} opens {:?}: {:?}",
                    context.loads[edge.by].library.name,
                    edge.candidates,
                    edge.problems.iter().map(Problem::to_string).collect::<Vec<_>>()
                );
            }
            println!(
                "   {}: {} loads ({} lazy), {} roots",
                context.name,
                context.loads.len(),
                context.loads.len() - context.lazy,
                context.roots.len()
            );
        }
        for unreached in &model.unreached {
            println!(
                "   unreached {} {:?}",
                unreached.library.name,
                unreached.problems.iter().map(Problem::to_string).collect::<Vec<_>>()
            );
        }
    }
    assert!(differ.is_empty(), "{} differ:\n{}", differ.len(), differ.join("\n"));
}

/// What must be in the loader's message.
fn message(problem: &Problem) -> String {
    match problem {
        Problem::Undefined { symbol, version: Some(version), .. } => format!("{symbol}, version {}", version.name),
        Problem::Undefined { symbol, .. } => format!("undefined symbol: {symbol}"),
        Problem::VersionMissing { version, .. } => format!("version `{version}' not found"),
        Problem::Unresolved { needed, .. } => format!("{needed}: cannot open"),
        other => other.to_string(),
    }
}

/// What `ldd` says of a file: the names that it does not find, and the files below `environment` that it does.
fn ldd(file: &Path, environment: &Path) -> (BTreeSet<String>, BTreeSet<PathBuf>) {
    let output = Command::new("ldd").arg(file).env_remove("LD_LIBRARY_PATH").output().unwrap();
    let (mut missing, mut found) = (BTreeSet::new(), BTreeSet::new());
    for (name, what) in
        String::from_utf8_lossy(&output.stdout).lines().filter_map(|line| line.trim().split_once(" => "))
    {
        match what.rsplit_once(" (0x") {
            None => drop(missing.insert(name.to_owned())),
            Some((path, _)) => {
                let path = fs::canonicalize(path).unwrap_or(path.into());
                found.extend(path.starts_with(environment).then_some(path));
            }
        }
    }
    (missing, found)
}

/// Alone, as `ldd` looks at a file: it knows no process in which others were loaded before.
#[test]
fn network_every_library_is_resolved_as_ldd_does() {
    let matrix = Matrix::embedded();
    let facts = matrix.dlopen().unwrap();
    let mut differ = Vec::new();
    for environment in environments() {
        let environment = environment.canonicalize().unwrap();
        let inventory = Inventory::read(&environment, &Options::default()).unwrap();
        let opening = Opening::after(&inventory, facts, false);
        let files =
            inventory.libraries().iter().filter(|library| library.object.is_ok() && library.name.contains(".so"));
        let (mut count, mut misses) = (0, 0);
        for file in files.map(|library| &library.place) {
            let (problems, new) = opening.open(file);
            let missing: BTreeSet<String> = problems
                .iter()
                .filter_map(|problem| match problem {
                    Problem::Unresolved { needed, .. } => Some(needed.clone()),
                    _ => None,
                })
                .collect();
            let own = fs::canonicalize(file).unwrap();
            let new: BTreeSet<PathBuf> =
                new.into_iter().filter(|path| path.starts_with(&environment) && *path != own).collect();
            let real = ldd(file, &environment);
            count += 1;
            misses += real.0.len();
            if (&missing, &new) != (&real.0, &real.1) {
                let not_found: Vec<_> = missing.symmetric_difference(&real.0).collect();
                let found: Vec<_> = new.symmetric_difference(&real.1).collect();
                differ.push(format!("{}: not found {not_found:?}, found {found:?}", file.display()));
            }
        }
        println!("{}: {count} libraries, {misses} names that ldd does not find", environment.display());
        assert!(count > 0);
    }
    assert!(differ.is_empty(), "{} differ from ldd:\n{}", differ.len(), differ.join("\n"));
}
