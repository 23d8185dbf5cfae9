//! A process as it runs: takes what it has mapped, gives it as a context, each load with the rule by which it was found,
//! what the process would open while it works, and where it differs from what the loader would do.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use super::files::Files;
use super::model::{Context, Found, LinkModel, Load, Problem, Running, Step};
use super::process::{Opened, Process};
use super::symbols;
use super::unit::units;
use super::world::World;
use crate::inventory::process::trace::is_variant;
use crate::inventory::process::{Process as Mapped, Request, SearchRule};
use crate::inventory::{LoaderKind, Role};

pub(super) fn model(world: &World<'_>, mapped: &Mapped) -> LinkModel {
    let mut process = Process::with(world, loads(world, mapped));
    preloaded(&mut process);
    explain(&mut process);
    let mut running = compare(&mut process, mapped);
    let mut context = Context::named(format!("process {}", mapped.pid), None, false);
    let failures = failures(&process, mapped);
    // Where a library is missing the loader gives up: what was opened with it lacks the rest too. That is so of the
    // driver's, which a machine without GPU lacks, as of any other.
    let gave_up = !failures.is_empty();
    fall_back(&mut context, world, failures);
    let unready: HashSet<(u64, u64)> =
        mapped.mapped.iter().filter(|one| gave_up && !one.ready).map(|one| one.library.inode).collect();
    running.not_mapped.retain(|(_, by)| !unready.contains(&process.loads[*by].library.inode));
    // Symbols of other files may be looked up when they are first called, which may be never.
    let judged = |at: &usize| {
        let library = &process.loads[*at].library;
        let of_stack = library.object.as_ref().is_ok_and(|object| object.identity.is_some());
        !unready.contains(&library.inode) && (library.package.is_some() || of_stack)
    };
    let all: Vec<usize> = (0..process.loads.len()).collect();
    let new = all.iter().copied().filter(judged).collect();
    let opened = Opened { root: None, scope: all, new, problems: Vec::new() };
    // Of files that nobody can read any more, neither what they define is known nor what they would open.
    let whole = mapped.unreadable.is_empty();
    if whole {
        context.problems.extend(symbols::check(&process, &opened));
    }
    let from = if whole { 0 } else { process.loads.len() };
    LinkModel { contexts: vec![context.ended(process, from)], running: Some(running), ..LinkModel::default() }
}

/// The program, then what it has loaded.
fn loads(world: &World<'_>, mapped: &Mapped) -> Vec<Load> {
    let program = &world.inventory.subject.path;
    let load = |one: &crate::inventory::process::Mapped| {
        let library = Arc::clone(&one.library);
        let is_program = library.role == Role::Program && library.path == *program;
        let path = library.path.clone();
        let found = if is_program { Found::Program } else { Found::Path };
        Load { library, requested: path.display().to_string(), path, by: None, found }
    };
    let mut loads: Vec<Load> = mapped.mapped.iter().map(load).collect();
    loads.sort_by_key(|load| load.found != Found::Program);
    loads
}

/// Finds what LD_PRELOAD names.
fn preloaded(process: &mut Process<'_>) {
    let variable = process.world.inventory.variables.get("LD_PRELOAD").cloned().unwrap_or_default();
    for name in variable.split([':', ' ']).filter(|name| !name.is_empty()) {
        if let Ok(hit) = process.look(name, Some(0), &mut Vec::new())
            && let Some(at) = process.loads.iter().position(|load| load.library.inode == hit.library.inode)
        {
            process.found(at, name, 0, Found::Preload);
        }
    }
}

/// The names that a loaded file asks for: those that it needs, and those that it opens while it works.
fn asked(process: &Process<'_>, at: usize) -> Vec<String> {
    let Ok(object) = &process.loads[at].library.object else { return Vec::new() };
    let name = object.soname.as_deref().unwrap_or(&process.loads[at].requested);
    let opened = process.world.facts.edges(name).flat_map(|row| &row.open).filter(|name| !name.contains('{'));
    object.needed.iter().chain(opened).cloned().collect()
}

/// Finds for each load who asked for it and by which rule the search leads there. Run paths are inherited, so that what
/// is found of one may explain another.
fn explain(process: &mut Process<'_>) {
    let mut left: Vec<usize> = (0..process.loads.len()).filter(|at| process.loads[*at].found == Found::Path).collect();
    let asked: Vec<Vec<String>> = (0..process.loads.len()).map(|at| asked(process, at)).collect();
    loop {
        let before = left.len();
        left.retain(|at| {
            let hit = requests(process, &asked, *at).into_iter().find_map(|(by, name)| {
                let hit = process.look(&name, Some(by), &mut Vec::new()).ok()?;
                is_it(process, *at, &hit.library).then_some((by, name, hit.found))
            });
            let Some((by, name, found)) = hit else { return true };
            process.found(*at, &name, by, found);
            false
        });
        if left.len() == before {
            return;
        }
    }
}

/// Whether the search led to the file of a load, or to the one that has its place now.
fn is_it(process: &Process<'_>, at: usize, library: &crate::inventory::Library) -> bool {
    let own = &process.loads[at].library;
    own.inode == library.inode || own.path == library.path
}

/// Who asks for a load by one of its names.
fn requests(process: &Process<'_>, asked: &[Vec<String>], at: usize) -> Vec<(usize, String)> {
    let library = &process.loads[at].library;
    let soname = library.object.as_ref().ok().and_then(|object| object.soname.as_deref());
    let file = library.path.file_name().and_then(|name| name.to_str());
    let is_named = |name: &&String| Some(name.as_str()) == soname || Some(name.as_str()) == file;
    let others = asked.iter().enumerate().filter(|(by, _)| *by != at);
    others.filter_map(|(by, names)| Some((by, names.iter().find(is_named)?.clone()))).collect()
}

/// What a loaded file needs and the loader looked for in vain, and files that it found and could not load. What is
/// opened by name may be absent by design.
fn failures(process: &Process<'_>, mapped: &Mapped) -> Vec<Problem> {
    let inventory = process.world.inventory;
    let load_at = |path: &Path| {
        let path = inventory.root.resolve(path).ok()?;
        process.loads.iter().find(|load| load.library.path == path).map(|load| Arc::clone(&load.library))
    };
    let problem = |failure: &Request| {
        let by = load_at(Path::new(&failure.by));
        if let Some(library) = load_at(failure.path()) {
            let why = library.object.as_ref().err().map(|error| error.what.clone())?;
            return Some(Problem::Unloadable { library, by, why });
        }
        let by = by.filter(|_| !failure.opened)?;
        let tried = failure.tried.iter().filter(|(_, path)| path.parent().is_none_or(|folder| !is_variant(folder)));
        let steps = tried.map(|(rule, path)| step(process, rule, path));
        let file = by.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let optional = process.world.facts.absent(&failure.name, &file).map(|row| row.reason.clone());
        Some(Problem::Unresolved { needed: failure.name.clone(), by, tried: steps.collect(), optional })
    };
    mapped.failures.iter().filter_map(problem).collect()
}

/// Puts what failed where it belongs: to a file that its package does without, or to the process.
fn fall_back(context: &mut Context, world: &World<'_>, mut failures: Vec<Problem>) {
    let files = Files::new(world.inventory);
    let units = units(world.inventory, world.facts, &files);
    for sequence in units.iter().flat_map(|unit| &unit.sequences).filter(|sequence| sequence.optional.is_some()) {
        let mut failed = Vec::new();
        for file in &sequence.files {
            let is_its = |problem: &Problem| problem.by().is_some_and(|by| by.inode == file.library.inode);
            let (own, left) = std::mem::take(&mut failures).into_iter().partition(is_its);
            failures = left;
            failed.push((*file, own));
        }
        if failed.iter().any(|(_, own)| !own.is_empty()) {
            context.add(sequence, failed);
        }
    }
    context.problems.extend(failures);
}

fn step(process: &Process<'_>, rule: &SearchRule, path: &Path) -> Step {
    let dir = path.parent().unwrap_or(Path::new("/")).to_owned();
    let of = |of: &str| {
        let path = process.world.inventory.root.resolve(Path::new(of)).ok();
        let load = process.loads.iter().find(|load| path.as_ref() == Some(&load.library.path));
        load.map_or_else(|| of.to_owned(), |load| load.library.name.clone())
    };
    let rule = match rule {
        SearchRule::Path => Found::Path,
        SearchRule::Rpath(file) => Found::Rpath { of: of(file), dir },
        SearchRule::LibraryPath => Found::LibraryPath { dir },
        SearchRule::Runpath(file) => Found::Runpath { of: of(file), dir },
        SearchRule::Cache => Found::Cache,
        SearchRule::Default => Found::Default { dir },
    };
    Step { rule, path: path.to_owned(), passed_over: false }
}

/// Where the process and the search differ.
fn compare(process: &mut Process<'_>, mapped: &Mapped) -> Running {
    let mut running = Running::default();
    // musl serves the names of glibc's libraries itself.
    let complete = !mapped.is_loading && process.world.inventory.loader.kind == LoaderKind::Glibc;
    for by in 0..process.loads.len() {
        let library = Arc::clone(&process.loads[by].library);
        let Ok(object) = &library.object else { continue };
        for needed in &object.needed {
            let hit = process.look(needed, Some(by), &mut Vec::new()).ok();
            let place = |process: &Process<'_>| {
                let hit = hit.as_ref()?;
                (0..process.loads.len()).find(|at| is_it(process, *at, &hit.library))
            };
            match (process.named(needed).or_else(|| place(process)), hit.as_ref()) {
                (Some(at), Some(hit))
                    if !is_it(process, at, &hit.library) && process.loads[at].found == Found::Path =>
                {
                    if running.diverted.iter().all(|(known, _, _)| *known != at) {
                        running.diverted.push((at, by, Arc::clone(&hit.library)));
                    }
                }
                (Some(_), _) => {}
                (None, _) => {
                    let file = library.path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
                    let told = mapped.failures.iter().any(|failure| failure.name == *needed);
                    let known = told || running.not_mapped.iter().any(|(name, _)| name == needed);
                    if complete && !known && process.world.facts.absent(needed, &file).is_none() {
                        running.not_mapped.push((needed.clone(), by));
                    }
                }
            }
        }
    }
    running
}
