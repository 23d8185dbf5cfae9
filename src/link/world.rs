//! What is the same for all processes of an environment: where its loader looks besides the files' own paths, and what
//! may be absent.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::expand::{Tokens, expand};
use super::model::{Found, Step};
use crate::elf::Machine;
use crate::inventory::{Inventory, Library, LoaderKind, SubjectKind};
use crate::matrix::schema::DlopenFile;
use crate::python::Platform;

/// An environment and the facts about it.
pub(super) struct World<'a> {
    pub inventory: &'a Inventory,
    pub facts: &'a DlopenFile,
    /// Processor of the files that its loader loads.
    pub machine: Option<Machine>,
    /// LD_LIBRARY_PATH, one folder each.
    library_path: Vec<PathBuf>,
    /// Folders, and those of them and below that are looked into: `dir/glibc-hwcaps/x86-64-v3`, `dir`.
    folders: RefCell<HashMap<PathBuf, Arc<[PathBuf]>>>,
}

/// A file that a search led to.
pub(super) struct Hit {
    pub library: Arc<Library>,
    pub path: PathBuf,
    pub found: Found,
}

impl<'a> World<'a> {
    pub fn new(inventory: &'a Inventory, facts: &'a DlopenFile) -> Self {
        let machine = match inventory.loader.platform {
            Some(Platform::LinuxX86_64) => Some(Machine::X86_64),
            Some(Platform::LinuxAarch64) => Some(Machine::Aarch64),
            None => most_common(inventory.libraries()),
        };
        let mut world =
            Self { inventory, facts, machine, library_path: Vec::new(), folders: RefCell::new(HashMap::new()) };
        let program = inventory.pythons.first().and_then(|python| python.interpreter.as_deref());
        let origin = program.and_then(Path::parent).unwrap_or(Path::new("/"));
        let variable = inventory.variables.get("LD_LIBRARY_PATH").map(String::as_str).unwrap_or_default();
        // An empty entry is the working directory, which is not known.
        world.library_path = variable
            .split([':', ';'])
            .filter(|entry| !entry.is_empty())
            .map(|entry| expand(entry, world.tokens(origin)))
            .collect();
        world
    }

    /// What the tokens in a file's texts stand for; `origin` is the folder that it was loaded from.
    pub fn tokens<'t>(&self, origin: &'t Path) -> Tokens<'t>
    where
        'a: 't,
    {
        let platform = match self.machine {
            Some(Machine::Aarch64) => "aarch64",
            _ => "x86_64",
        };
        Tokens { origin, lib: &self.inventory.loader.lib, platform }
    }

    /// Whether the system's own libraries are not there to be looked at: they are unknown, not missing.
    pub fn without_system(&self) -> bool {
        self.inventory.loader.kind != LoaderKind::Glibc
    }

    /// Whether the subject is a part of an environment only, so that what it needs may be elsewhere.
    pub fn is_part(&self) -> bool {
        matches!(self.inventory.subject.kind, SubjectKind::Library | SubjectKind::Wheel)
    }

    /// Looks for `name` in LD_LIBRARY_PATH.
    pub fn in_library_path(&self, name: &str, tried: &mut Vec<Step>) -> Option<Hit> {
        self.library_path
            .iter()
            .find_map(|dir| self.in_folder(dir, name, &Found::LibraryPath { dir: dir.clone() }, tried))
    }

    /// Looks for `name` in the cache and in the default folders; without the latter for files that forbid it.
    pub fn in_system(&self, name: &str, no_defaults: bool, tried: &mut Vec<Step>) -> Option<Hit> {
        let loader = &self.inventory.loader;
        let within = |path: &Path| loader.defaults.iter().any(|dir| path.starts_with(dir));
        if let Some((cache, platform)) = loader.cache.as_ref().zip(loader.platform) {
            // The processor is not known here; one that is new enough is taken for granted.
            let entries = cache.lookup(name, platform).filter(|entry| !(no_defaults && within(&entry.path)));
            for entry in entries {
                if let Some(hit) = self.file(entry.path.clone(), &Found::Cache, tried) {
                    return Some(hit);
                }
            }
        }
        if no_defaults {
            return None;
        }
        loader.defaults.iter().find_map(|dir| self.in_folder(dir, name, &Found::Default { dir: dir.clone() }, tried))
    }

    /// Looks for `name` in a folder and in what is below it for newer processors.
    pub fn in_folder(&self, dir: &Path, name: &str, rule: &Found, tried: &mut Vec<Step>) -> Option<Hit> {
        let known = self.folders.borrow().get(dir).cloned();
        let folders = known.unwrap_or_else(|| {
            let below = dir.join("glibc-hwcaps");
            let mut folders = Vec::new();
            if self.inventory.root.is_folder(&below) {
                folders.extend(self.inventory.loader.hwcaps().iter().map(|name| below.join(name)));
            }
            folders.push(dir.to_owned());
            let folders: Arc<[PathBuf]> = folders.into();
            self.folders.borrow_mut().insert(dir.to_owned(), Arc::clone(&folders));
            folders
        });
        folders.iter().find_map(|folder| self.file(folder.join(name), rule, tried))
    }

    /// The file at `path`, unless it is for another processor or word size, which ld.so passes over in a search.
    pub fn file(&self, path: PathBuf, rule: &Found, tried: &mut Vec<Step>) -> Option<Hit> {
        let library = self.inventory.at(&path);
        match library.filter(|library| self.is_foreign(library).is_none()) {
            Some(library) => Some(Hit { library, path, found: rule.clone() }),
            None => {
                let passed_over = self.inventory.at(&path).is_some();
                tried.push(Step { rule: rule.clone(), path, passed_over });
                None
            }
        }
    }

    /// Why a file is for another machine, as the end of a sentence.
    pub fn is_foreign(&self, library: &Library) -> Option<String> {
        match &library.object {
            Ok(object) if self.machine.is_some_and(|machine| machine != object.machine) => {
                Some(format!("it is for another processor ({:?})", object.machine))
            }
            Err(error) if error.problem == crate::elf::Problem::Unsupported => Some(error.what.clone()),
            _ => None,
        }
    }
}

/// The processor of most files.
fn most_common(libraries: &[Arc<Library>]) -> Option<Machine> {
    let mut counts: Vec<(Machine, usize)> = Vec::new();
    for machine in libraries.iter().filter_map(|library| library.object.as_ref().ok().map(|object| object.machine)) {
        match counts.iter_mut().find(|(known, _)| *known == machine) {
            Some((_, count)) => *count += 1,
            None => counts.push((machine, 1)),
        }
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(machine, _)| machine)
}
