//! What Python opens of one package: its extension modules, and the files that its code opens by path.

use std::collections::BTreeMap;

use super::files::{File, Files, is_module};
use super::import::{self, fails};
use super::model::{Context, Problem, Root};
use super::process::Process;
use crate::inventory::{Inventory, Library};
use crate::matrix::schema::{DlopenFile, FallbackRow};

/// A package, or a folder of files that belong to none.
pub(super) struct Unit<'f> {
    pub package: Option<usize>,
    pub name: String,
    /// Files that are opened one after the other; the first failure ends a sequence.
    pub sequences: Vec<Sequence<'f>>,
    /// Files, by inode, that stay closed: they are for another CUDA than torch's.
    pub closed: Vec<(u64, u64)>,
}

pub(super) struct Sequence<'f> {
    pub files: Vec<&'f File>,
    /// Names of those that are opened with RTLD_GLOBAL.
    pub global: Vec<String>,
    pub when: String,
    pub optional: Option<String>,
    pub fallback: Option<FallbackRow>,
    /// The files are alternatives, and one is enough.
    pub any: bool,
}

/// A sequence after it was opened: its files with what failed.
type Outcome<'f> = Vec<(&'f File, Vec<Problem>)>;

/// All packages of which Python opens something, by name.
pub(super) fn units<'f>(inventory: &Inventory, facts: &DlopenFile, files: &'f Files) -> Vec<Unit<'f>> {
    let python = inventory.pythons.first();
    let cuda = torch_cuda(files).unwrap_or_else(|| "*".into());
    let resolve = |pattern: &String, cuda: &str| files.matching(&pattern.replace("{cuda}", cuda)).collect::<Vec<_>>();
    let mut units: BTreeMap<String, Unit<'f>> = BTreeMap::new();
    let mut opened: Vec<(u64, u64)> = Vec::new();
    for (at, package) in inventory.packages.iter().enumerate() {
        let version = package.pep440();
        let rows = facts.opens(&package.name, version.as_ref());
        let sequences: Vec<Sequence<'f>> = rows
            .filter_map(|row| {
                let files: Vec<&File> = row.files.iter().flat_map(|pattern| resolve(pattern, &cuda)).collect();
                opened.extend(files.iter().map(|file| file.library.inode));
                let (when, fallback) = (row.when.clone(), row.fallback.clone());
                let optional = row.optional.clone().or(fallback.as_ref().map(|fallback| fallback.instead.clone()));
                let global = row.global.clone();
                (!files.is_empty()).then_some(Sequence { files, global, when, optional, fallback, any: row.any })
            })
            .collect();
        let patterns = facts.opens(&package.name, version.as_ref()).flat_map(|row| &row.files);
        let any: Vec<&File> = patterns.flat_map(|pattern| resolve(pattern, "*")).collect();
        let closed: Vec<(u64, u64)> =
            any.iter().map(|file| file.library.inode).filter(|inode| !opened.contains(inode)).collect();
        opened.extend(&closed);
        if !sequences.is_empty() || !closed.is_empty() {
            let name = package.name.to_string();
            units.insert(name.clone(), Unit { package: Some(at), name, sequences, closed });
        }
    }
    for file in files.all() {
        let library = &file.library;
        if !is_module(library, python) || opened.contains(&library.inode) {
            continue;
        }
        opened.push(library.inode);
        // What no package recorded is of the one that its folder is named like, if any.
        let folder = file.name.split('/').next().unwrap_or_default();
        let alike = || inventory.packages.iter().position(|package| package.name.as_str() == folder);
        let package = library.package.or_else(alike);
        let name = package.map_or_else(|| folder.to_owned(), |at| inventory.packages[at].name.to_string());
        let unit = units.entry(name.clone()).or_insert_with(|| Unit {
            package,
            name,
            sequences: Vec::new(),
            closed: Vec::new(),
        });
        let when = format!("`import {}`", module(&file.name));
        unit.sequences.push(Sequence {
            files: vec![file],
            global: Vec::new(),
            when,
            optional: None,
            fallback: None,
            any: false,
        });
    }
    units.into_values().collect()
}

/// The CUDA of torch in digits, `126`, by the runtime in torch's own folder, else by NVIDIA's package.
fn torch_cuda(files: &Files) -> Option<String> {
    let below = |folder: &str| {
        files.all().iter().filter(|file| file.name.starts_with(folder)).find_map(|file| {
            let identity = file.library.object.as_ref().ok()?.identity.as_ref()?;
            identity.version.as_deref().filter(|_| identity.library == "cudart")
        })
    };
    let version = below("torch/lib/").or_else(|| below("nvidia/"))?;
    Some(version.split('.').take(2).collect())
}

/// `numpy._core._multiarray_umath` of `numpy/_core/_multiarray_umath.cpython-311-x86_64-linux-gnu.so`.
fn module(name: &str) -> String {
    let (folder, file) = name.rsplit_once('/').unwrap_or(("", name));
    let stem = file.split('.').next().unwrap_or(file);
    if folder.is_empty() { stem.to_owned() } else { format!("{}.{stem}", folder.replace('/', ".")) }
}

impl<'f> Unit<'f> {
    /// Whether its files ask for libraries that only a process with torch in it has.
    pub fn needs_torch(&self, inventory: &Inventory, torch: &[&Library]) -> bool {
        let declared = self.package.is_some_and(|at| inventory.packages[at].requires_outright("torch"));
        let is_torchs = |name: &String| torch.iter().any(|library| library.place.file_name() == Some(name.as_ref()));
        let mut libraries = self.sequences.iter().flat_map(|sequence| &sequence.files).map(|file| &file.library);
        declared
            || libraries.any(|library| library.object.as_ref().is_ok_and(|object| object.needed.iter().any(is_torchs)))
    }
}

/// Opens sequences in a process; gives those that fail back, to be tried in another way, with what failed.
pub(super) fn open_all<'s, 'f>(
    process: &mut Process<'_>,
    sequences: Vec<&'s Sequence<'f>>,
    context: &mut Context,
) -> Vec<(&'s Sequence<'f>, Outcome<'f>)> {
    let mut failed = Vec::new();
    for sequence in sequences {
        match open_one(process, sequence) {
            Ok(outcome) => context.add(sequence, outcome),
            Err(_) => failed.push(sequence),
        }
    }
    // What others loaded may have been what was missing.
    let mut lost = Vec::new();
    for sequence in failed {
        match open_one(process, sequence) {
            Ok(outcome) => context.add(sequence, outcome),
            Err(outcome) => lost.push((sequence, outcome)),
        }
    }
    lost
}

/// Opens a sequence. After a failure the process is as it was before.
fn open_one<'f>(process: &mut Process<'_>, sequence: &Sequence<'f>) -> Result<Outcome<'f>, Outcome<'f>> {
    let start = process.clone();
    let mut outcome = Vec::new();
    let mut any = false;
    for file in &sequence.files {
        let before = sequence.any.then(|| process.clone());
        let (_, problems) = import::open(process, file, sequence.global.contains(&file.name));
        let failure = fails(&problems);
        any |= !failure;
        outcome.push((*file, problems));
        match before {
            Some(before) if failure => *process = before,
            None if failure => {
                *process = start;
                return Err(outcome);
            }
            _ => {}
        }
    }
    if sequence.any && !any { Err(outcome) } else { Ok(outcome) }
}

impl Context {
    /// Adds the files of a sequence with what failed.
    pub(super) fn add(&mut self, sequence: &Sequence<'_>, outcome: Outcome<'_>) {
        let worked = outcome.iter().any(|(_, problems)| !fails(problems));
        for (file, problems) in outcome {
            // Where one of many is enough, the others are optional only as long as there is one.
            let optional = sequence.optional.clone().filter(|_| !sequence.any || worked);
            self.add_root(file, &sequence.when, optional, problems);
            if let Some(root) = self.roots.last_mut() {
                root.fallback.clone_from(&sequence.fallback);
            }
        }
    }

    pub(super) fn add_root(&mut self, file: &File, when: &str, optional: Option<String>, problems: Vec<Problem>) {
        let start = self.problems.len();
        self.problems.extend(problems);
        let library = std::sync::Arc::clone(&file.library);
        let problems = start..self.problems.len();
        self.roots.push(Root { library, when: when.to_owned(), optional, fallback: None, problems });
    }
}
