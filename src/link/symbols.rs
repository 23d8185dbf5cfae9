//! Symbols and their versions: takes what a process has just loaded, gives what ld.so would not find.
//!
//! Follows glibc: dl-version.c (versions of the libraries that are loaded) and dl-lookup.c (the first definition in the
//! global scope, then in the scope of what was opened). Python opens with RTLD_NOW: every symbol is looked up at once.

use std::sync::Arc;

use super::model::Problem;
use super::process::{Opened, Process};
use crate::elf::{Found, Import, Object};
use crate::inventory::Library;

/// What the files that were opened ask for in vain.
pub(super) fn check(process: &Process<'_>, opened: &Opened) -> Vec<Problem> {
    let mut problems = Vec::new();
    for at in &opened.new {
        versions(process, &process.loads[*at].library, &mut problems);
    }
    let mut scope = Scope::new(process, opened);
    // What was loaded last is bound first.
    for at in opened.new.iter().rev() {
        scope.bind(*at, &mut problems);
    }
    problems
}

/// Versions that a file asks of its libraries. A library without any versions is taken as it is.
fn versions(process: &Process<'_>, by: &Arc<Library>, problems: &mut Vec<Problem>) {
    let Ok(object) = &by.object else { return };
    for need in object.version_needs.iter().filter(|need| !need.weak) {
        let Some(at) = process.named(&need.library) else { continue };
        let library = &process.loads[at].library;
        let Ok(defined) = library.object.as_ref().map(|object| &object.version_definitions) else { continue };
        if !defined.is_empty() && !defined.contains(&need.name) {
            let version = need.name.clone();
            problems.push(Problem::VersionMissing { version, library: Arc::clone(library), by: Arc::clone(by) });
        }
    }
}

/// Where symbols are looked up, and which names may be missing without harm.
struct Scope<'p, 'w> {
    process: &'p Process<'w>,
    /// Loads to look into. The order is not ld.so's: whether a symbol is found does not depend on it, and most are where
    /// the last one was.
    objects: Vec<(usize, &'p Object)>,
    /// Names of symbols that something absent would define; `*` at the end stands for any rest.
    assumed: Vec<&'p str>,
    /// Something is absent of which it is not known what it defines.
    open: bool,
}

impl<'p, 'w> Scope<'p, 'w> {
    fn new(process: &'p Process<'w>, opened: &Opened) -> Self {
        let mut all = process.global.clone();
        all.extend(opened.scope.iter().filter(|at| !process.global.contains(at)));
        let facts = process.world.facts;
        let mut assumed: Vec<&str> = Vec::new();
        let mut open = false;
        if process.loads.first().is_none_or(|load| load.found != super::Found::Program) {
            assumed.extend(facts.interpreter.symbols.iter().map(String::as_str));
        }
        for at in &all {
            let file = process.loads[*at].path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
            for needed in process.missing[*at].iter() {
                match facts.absent(needed, &file) {
                    Some(row) if !row.symbols.is_empty() => assumed.extend(row.symbols.iter().map(String::as_str)),
                    // What the system's libraries define has versions, and those name their library.
                    _ => open |= !facts.system.libraries.contains(needed),
                }
            }
        }
        let object = |at: &usize| Some((*at, process.loads[*at].library.object.as_ref().ok()?));
        Self { process, objects: all.iter().filter_map(object).collect(), assumed, open }
    }

    /// Looks up everything that one file asks for.
    fn bind(&mut self, at: usize, problems: &mut Vec<Problem>) {
        let by = &self.process.loads[at].library;
        let Ok(object) = &by.object else { return };
        let mut lost = Vec::new();
        for import in object.symbols.imports().filter(|import| !import.weak) {
            if let Some(other) = self.lookup(&import) {
                lost.push((import, other));
            }
        }
        if lost.is_empty() {
            return;
        }
        let numbers: Vec<u32> = lost.iter().map(|(import, _)| import.symbol).collect();
        let names = self.process.world.inventory.symbol_names(by, &numbers);
        for ((import, other), name) in lost.into_iter().zip(names) {
            // A file that cannot be read again is named by number.
            let symbol = name.unwrap_or_else(|| format!("symbol {}", import.symbol));
            if self.assumed.iter().any(|pattern| is_of(pattern, &symbol)) {
                continue;
            }
            let version = import.version.cloned();
            let expected = version.as_ref().and_then(|version| self.process.named(&version.library));
            problems.push(Problem::Undefined {
                symbol,
                version,
                by: Arc::clone(by),
                other_version: other.map(|at| Arc::clone(&self.process.loads[at].library)),
                expected: expected.map(|at| Arc::clone(&self.process.loads[at].library)),
            });
        }
    }

    /// `None` when it is found or nothing can be said; else the load that has it with another version, if one has.
    fn lookup(&mut self, import: &Import<'_>) -> Option<Option<usize>> {
        let mut other = None;
        if let Some(version) = import.version {
            let named = self.process.named(&version.library)?;
            if let Some(i) = self.objects.iter().position(|(at, _)| *at == named) {
                self.objects.swap(0, i);
            }
        } else if self.open {
            return None;
        }
        for i in 0..self.objects.len() {
            let (at, object) = self.objects[i];
            match object.symbols.lookup(import) {
                Found::Yes => {
                    self.objects.swap(0, i);
                    return None;
                }
                Found::OtherVersion => other = other.or(Some(at)),
                Found::No => {}
            }
        }
        Some(other)
    }
}

fn is_of(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |prefix| name.starts_with(prefix))
}
