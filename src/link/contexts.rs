//! The processes of an environment: the interpreter, `import torch`, and each package in the ways in which it is used.
//!
//! A package that needs torch is opened after it. Any other is opened in a process of its own; only where that fails,
//! after what it requires, and after torch. It has a problem when every way fails, and the first way says which.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::files::Files;
use super::import;
use super::model::{Context, Found, LinkModel, Load};
use super::process::Process;
use super::unit::{Unit, open_all, units};
use super::world::World;
use super::{edges, running, symbols, unreached};
use crate::elf::Kind;
use crate::inventory::{Inventory, Library, SubjectKind};
use crate::matrix::schema::DlopenFile;

impl LinkModel {
    /// What the loader makes of an environment.
    pub fn new(inventory: &Inventory, facts: &DlopenFile) -> Self {
        let world = World::new(inventory, facts);
        if let Some(process) = &inventory.process {
            return running::model(&world, process);
        }
        let files = Files::new(inventory);
        let mut model = Self::default();
        let python = inventory.pythons.first();
        let (base, opened) = Process::start(&world, python.and_then(|python| python.interpreter.as_deref()));
        if !base.loads.is_empty() {
            let mut context = Context::named("python", None, false);
            context.problems = opened.problems.clone();
            context.problems.extend(symbols::check(&base, &opened));
            model.contexts.push(context.ended(base.clone(), 0));
        }
        if inventory.subject.kind == SubjectKind::Library {
            model.contexts.extend(inventory.libraries().first().map(|library| alone(&world, &base, library)));
        }
        let all = units(inventory, facts, &files);
        let torch = import_torch(&base, &files, &all, &mut model);
        package_contexts(&all, &files, &base, torch.as_ref(), &mut model);
        model.closed = all.iter().flat_map(|unit| &unit.closed).copied().collect();
        model.unreached = unreached::unreached(torch.as_ref().unwrap_or(&base), &model);
        model
    }
}

impl Context {
    pub(super) fn named(name: impl Into<String>, package: Option<usize>, after_torch: bool) -> Self {
        Self {
            name: name.into(),
            package,
            after_torch,
            loads: Vec::new(),
            global: Vec::new(),
            lazy: 0,
            roots: Vec::new(),
            edges: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// With all that `process` has loaded, and with what the loads from `from` on open while they work.
    pub(super) fn ended(mut self, mut process: Process<'_>, from: usize) -> Self {
        self.lazy = process.loads.len();
        self.edges = edges::follow(&mut process, from);
        self.loads = process.loads;
        self.global = process.global;
        self
    }
}

/// A single file: a program is started, a library is opened.
fn alone(world: &World<'_>, base: &Process<'_>, library: &Arc<Library>) -> Context {
    let mut context = Context::named(&library.name, library.package, false);
    if library.object.as_ref().is_ok_and(|object| object.kind == Kind::Executable) {
        let (process, opened) = Process::start(world, Some(&library.place));
        context.problems = opened.problems.clone();
        context.problems.extend(symbols::check(&process, &opened));
        return context.ended(process, 0);
    }
    let mut process = base.clone();
    let mut opened = process.open_path(&library.place, false);
    context.problems = std::mem::take(&mut opened.problems);
    context.problems.extend(symbols::check(&process, &opened));
    context.ended(process, 0)
}

/// `import torch`, and torch's other modules in that process.
pub(super) fn import_torch<'w>(
    base: &Process<'w>,
    files: &Files,
    units: &[Unit<'_>],
    model: &mut LinkModel,
) -> Option<Process<'w>> {
    let world = base.world;
    let name = "torch".parse().ok()?;
    let package = world.inventory.packages.iter().position(|package| package.name == name);
    // Where nothing says that torch is installed, its own module does.
    files.matching("torch/_C.*.so").next().or_else(|| files.matching("torch/lib/libtorch_global_deps.so").next())?;
    let version = package.and_then(|at| world.inventory.packages[at].pep440());
    let row = world.facts.import(&name, version.as_ref())?;
    let cuda = cuda_family(&libraries_below("torch", files));
    let mut process = base.clone();
    let mut context = Context::named("import torch", package, false);
    let imported = import::run(&mut process, row, files, cuda.as_deref());
    context.problems = imported.absent;
    for (file, problems) in imported.opened {
        context.add_root(file, "`import torch`", None, problems);
    }
    // Torch's further modules are not part of its import.
    let mut whole = process.clone();
    if let Some(unit) = units.iter().find(|unit| unit.name == "torch") {
        let loaded: BTreeSet<_> = process.loads.iter().map(|load| load.library.inode).collect();
        let fresh = unit.sequences.iter().filter(|sequence| !loaded.contains(&sequence.files[0].library.inode));
        for (sequence, outcome) in open_all(&mut whole, fresh.collect(), &mut context) {
            context.add(sequence, outcome);
        }
    }
    model.contexts.push(context.ended(whole, 0));
    Some(process)
}

/// The libraries in a package's own folder.
fn libraries_below<'f>(folder: &str, files: &'f Files) -> Vec<&'f Library> {
    let below = files.all().iter().filter(|file| file.name.split('/').next() == Some(folder));
    below.map(|file| file.library.as_ref()).collect()
}

/// The CUDA family that a package was built for, by the runtime that its libraries ask for: `12` of `libcudart.so.12`.
fn cuda_family(libraries: &[&Library]) -> Option<String> {
    let mut needed =
        libraries.iter().filter_map(|library| library.object.as_ref().ok()).flat_map(|object| &object.needed);
    needed.find_map(|name| name.strip_prefix("libcudart.so.")?.split('.').next().map(str::to_owned))
}

/// Each package but torch in the ways in which it is used.
fn package_contexts(
    all: &[Unit<'_>],
    files: &Files,
    base: &Process<'_>,
    torch: Option<&Process<'_>>,
    model: &mut LinkModel,
) {
    let inventory = base.world.inventory;
    let torch_libraries = libraries_below("torch", files);
    for unit in all.iter().filter(|unit| unit.name != "torch") {
        let after = torch.filter(|_| unit.needs_torch(inventory, &torch_libraries));
        // The ways, and what each is called.
        let mut ways: Vec<(Way, &Process<'_>)> = vec![(Way::Alone, after.unwrap_or(base))];
        ways.push((Way::AfterRequired, after.unwrap_or(base)));
        if let (None, Some(torch)) = (after, torch) {
            ways.push((Way::Alone, torch));
        }
        let mut left: Vec<_> = unit.sequences.iter().collect();
        let mut first_failures = None;
        for (way, start) in ways {
            let mut process = start.clone();
            if way == Way::AfterRequired && !open_required(unit, all, &mut process) {
                continue;
            }
            let after_torch = torch.is_some_and(|torch| std::ptr::eq(torch, start));
            let name = if after_torch { format!("{}, after torch", unit.name) } else { unit.name.clone() };
            let mut context = Context::named(name, unit.package, after_torch);
            let from = if after_torch { start.loads.len() } else { 0 };
            let failed = open_all(&mut process, left, &mut context);
            left = failed.iter().map(|(sequence, _)| *sequence).collect();
            if first_failures.is_none() {
                first_failures = Some((model.contexts.len(), failed));
                model.contexts.push(context.ended(process, from));
            } else if !context.roots.is_empty() {
                model.contexts.push(context.ended(process, from));
            }
            if left.is_empty() {
                break;
            }
        }
        if let Some((at, failed)) = first_failures {
            let lost = |inode| left.iter().any(|sequence| sequence.files[0].library.inode == inode);
            for (sequence, outcome) in failed {
                if lost(sequence.files[0].library.inode) {
                    model.contexts[at].add(sequence, outcome);
                }
            }
            // A way in which nothing works and nothing is left to say is none.
            if model.contexts[at].roots.is_empty() {
                model.contexts.remove(at);
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Alone,
    AfterRequired,
}

/// Opens what the packages that this one requires open; false when there are none.
fn open_required(unit: &Unit<'_>, all: &[Unit<'_>], process: &mut Process<'_>) -> bool {
    let Some(package) = unit.package.map(|at| &process.world.inventory.packages[at]) else { return false };
    let required: BTreeSet<String> = package.requirements().map(|required| required.package.to_string()).collect();
    let mut any = false;
    for other in all.iter().filter(|other| required.contains(&other.name) && other.name != "torch") {
        let mut unused = Context::named("", None, false);
        open_all(process, other.sequences.iter().collect(), &mut unused);
        any = true;
    }
    any
}

impl Load {
    /// Whether it was opened by Python, or is the program: nobody asked for it by a list of what it needs.
    pub fn is_root(&self) -> bool {
        self.by.is_none() && self.found != Found::Preload
    }
}
