//! One process: takes names and paths to open, gives what ld.so loads for them, in its order.
//!
//! Follows glibc: dl-load.c (where a library is looked for), dl-deps.c (breadth first), dl-open.c (scopes). What ld.so
//! gives up at is recorded, and the rest goes on as if it were there, so that one run finds all there is to find.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::expand::expand;
use super::model::{Found, Load, Problem, Step};
use super::world::{Hit, World};
use crate::inventory::Library;

/// A process after some files were opened in it.
#[derive(Clone)]
pub(super) struct Process<'w> {
    pub world: &'w World<'w>,
    /// All that is loaded, in order.
    pub loads: Vec<Arc<Load>>,
    /// Who caused each to be loaded: RPATHs are inherited from there.
    loaders: Vec<Option<usize>>,
    /// What each misses, by the name that it needs.
    pub missing: Vec<Arc<[String]>>,
    /// The names under which each is found by others.
    names: HashMap<String, usize>,
    inodes: HashMap<(u64, u64), usize>,
    /// The global scope.
    pub global: Vec<usize>,
}

/// What opening a file led to.
#[derive(Debug, Default)]
pub(super) struct Opened {
    /// The file itself.
    pub root: Option<usize>,
    /// It and all that it needs, breadth first: its scope.
    pub scope: Vec<usize>,
    /// What was not loaded before.
    pub new: Vec<usize>,
    /// What failed.
    pub problems: Vec<Problem>,
}

impl<'w> Process<'w> {
    /// A process of `program`, an interpreter; of none where it is not known.
    pub fn start(world: &'w World<'w>, program: Option<&Path>) -> (Self, Opened) {
        let mut process = Self {
            world,
            loads: Vec::new(),
            loaders: Vec::new(),
            missing: Vec::new(),
            names: HashMap::new(),
            inodes: HashMap::new(),
            global: Vec::new(),
        };
        let library = program.and_then(|path| Some((world.inventory.at(path)?, path)));
        let Some((library, path)) = library.filter(|(library, _)| library.object.is_ok()) else {
            return (process, Opened::default());
        };
        let requested = path.display().to_string();
        let load = Load { library, path: path.to_owned(), requested, by: None, found: Found::Program };
        let main = process.add(load, None);
        let mut scope = vec![main];
        scope.extend(process.preload(main));
        let mut opened = process.close(main, scope);
        opened.new = (0..process.loads.len()).collect();
        process.global.clone_from(&opened.scope);
        (process, opened)
    }

    /// A process that has `loads`, the program first; who caused each to be loaded is not known yet.
    pub fn with(world: &'w World<'w>, loads: Vec<Load>) -> Self {
        let (mut process, _) = Self::start(world, None);
        for load in loads {
            let name = load.path.file_name().map(|name| name.to_string_lossy().into_owned());
            let at = process.add(load, None);
            // The name that it was asked for by is mostly that of its file, where its own is another.
            if let Some(name) = name {
                process.names.entry(name).or_insert(at);
            }
        }
        process.global = (0..process.loads.len()).collect();
        process
    }

    /// Notes who caused a load, and how it was found.
    pub fn found(&mut self, at: usize, requested: &str, by: usize, found: Found) {
        let load = Arc::make_mut(&mut self.loads[at]);
        (load.requested, load.by, load.found) = (requested.to_owned(), Some(by), found);
        self.loaders[at] = Some(by);
        self.names.entry(requested.to_owned()).or_insert(at);
    }

    /// Loads what LD_PRELOAD and `/etc/ld.so.preload` list; what is not found is left out with a warning by ld.so.
    fn preload(&mut self, main: usize) -> Vec<usize> {
        let inventory = self.world.inventory;
        let variable = inventory.variables.get("LD_PRELOAD").map(String::as_str).unwrap_or_default();
        let mut names: Vec<String> =
            variable.split([':', ' ']).filter(|name| !name.is_empty()).map(Into::into).collect();
        names.extend(inventory.loader.preload.iter().map(|path| path.display().to_string()));
        let mut loaded = Vec::new();
        for name in names {
            if let Ok(hit) = self.look(&name, Some(main), &mut Vec::new()) {
                let hit = Hit { found: Found::Preload, ..hit };
                let at = self.take(hit, name, None, Some(main)).0;
                if !loaded.contains(&at) {
                    loaded.push(at);
                }
            }
        }
        loaded
    }

    /// Opens a file by path as `dlopen(path, RTLD_NOW)` does for Python; `global` with RTLD_GLOBAL.
    pub fn open_path(&mut self, path: &Path, global: bool) -> Opened {
        let before = self.loads.len();
        let requested = path.display().to_string();
        let hit = self.world.file(path.to_owned(), &Found::Path, &mut Vec::new());
        match hit {
            Some(hit) => self.open(hit, requested, None, global, before),
            None => Opened::default(),
        }
    }

    /// Opens a library by name for the load `caller`; the places that were looked into when it is not found.
    pub fn open_name(&mut self, name: &str, caller: usize, tried: &mut Vec<Step>) -> Option<Opened> {
        let before = self.loads.len();
        if let Some(at) = self.names.get(name) {
            let opened = self.close(*at, vec![*at]);
            return Some(opened);
        }
        let hit = self.look(name, Some(caller), tried).ok()?;
        Some(self.open(hit, name.to_owned(), Some(caller), false, before))
    }

    fn open(&mut self, hit: Hit, requested: String, by: Option<usize>, global: bool, before: usize) -> Opened {
        if let Some(problem) = unloadable(&hit.library, None) {
            return Opened { problems: vec![problem], ..Opened::default() };
        }
        // What is opened has no loader: RPATHs end here, and its scope begins here.
        let (root, _) = self.take(hit, requested, by, None);
        let mut opened = self.close(root, vec![root]);
        opened.new = (before..self.loads.len()).collect();
        if global {
            for at in &opened.scope {
                if !self.global.contains(at) {
                    self.global.push(*at);
                }
            }
        }
        opened
    }

    /// Loads what `scope` needs, breadth first; `scope` begins with `root`.
    fn close(&mut self, root: usize, mut scope: Vec<usize>) -> Opened {
        let before = self.loads.len();
        let mut problems = Vec::new();
        let mut at = 0;
        while at < scope.len() {
            let requester = scope[at];
            at += 1;
            let library = Arc::clone(&self.loads[requester].library);
            let Ok(object) = &library.object else { continue };
            let is_new = requester >= before || self.missing[requester].is_empty();
            let mut missing = Vec::new();
            for needed in &object.needed {
                let mut tried = Vec::new();
                let dependency = match self.names.get(needed.as_str()) {
                    Some(known) => Some(*known),
                    None => match self.look(needed, Some(requester), &mut tried) {
                        Ok(hit) => match unloadable(&hit.library, Some(&library)) {
                            Some(problem) => {
                                problems.push(problem);
                                missing.push(needed.clone());
                                None
                            }
                            None => Some(self.take(hit, needed.clone(), Some(requester), Some(requester)).0),
                        },
                        Err(()) => {
                            missing.push(needed.clone());
                            if is_new {
                                problems.push(self.unresolved(needed, &library, tried));
                            }
                            None
                        }
                    },
                };
                if let Some(dependency) = dependency.filter(|dependency| !scope.contains(dependency)) {
                    scope.push(dependency);
                }
            }
            if !missing.is_empty() {
                self.missing[requester] = missing.into();
            }
        }
        let new = (before..self.loads.len()).collect();
        Opened { root: Some(root), scope, new, problems }
    }

    /// A library that is not found, with the reason where that is no problem.
    fn unresolved(&self, needed: &str, by: &Arc<Library>, tried: Vec<Step>) -> Problem {
        let file = by.path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let optional = self.world.facts.absent(needed, &file).map(|row| row.reason.clone()).or_else(|| {
            if self.world.is_part() {
                Some("what was given is only a part of an environment, which has to bring it".into())
            } else if self.world.without_system() && self.world.facts.system.libraries.iter().any(|name| name == needed)
            {
                Some("a library of the system, which is not here to be looked at".into())
            } else {
                None
            }
        });
        Problem::Unresolved { needed: needed.into(), by: Arc::clone(by), tried, optional }
    }

    /// Where ld.so finds `name` for `requester`.
    pub fn look(&self, name: &str, requester: Option<usize>, tried: &mut Vec<Step>) -> Result<Hit, ()> {
        let origin = |at: usize| self.loads[at].path.parent().unwrap_or(Path::new("/"));
        if name.contains('/') {
            let path = match requester {
                Some(at) => expand(name, self.world.tokens(origin(at))),
                None => PathBuf::from(name),
            };
            return self.world.file(path, &Found::Path, tried).ok_or(());
        }
        let object = |at: usize| self.loads[at].library.object.as_ref().ok();
        let own = requester.and_then(object);
        // A file with DT_RUNPATH has no DT_RPATH, and gives nothing to inherit from its loaders either.
        if own.is_none_or(|own| own.runpath.is_empty()) {
            let mut at = requester;
            let mut main = false;
            while let Some(loader) = at {
                main |= loader == 0;
                if let Some(hit) = self.in_rpath(loader, name, tried) {
                    return Ok(hit);
                }
                at = self.loaders[loader];
            }
            let program = self.loads.first().is_some_and(|load| load.found == Found::Program);
            if program
                && !main
                && let Some(hit) = self.in_rpath(0, name, tried)
            {
                return Ok(hit);
            }
        }
        if let Some(hit) = self.world.in_library_path(name, tried) {
            return Ok(hit);
        }
        if let Some((own, at)) = own.zip(requester) {
            for text in &own.runpath {
                let dir = expand(text, self.world.tokens(origin(at)));
                let rule = Found::Runpath { of: self.loads[at].library.name.clone(), dir: dir.clone() };
                if let Some(hit) = self.world.in_folder(&dir, name, &rule, tried) {
                    return Ok(hit);
                }
            }
        }
        let no_defaults =
            own.or_else(|| object(0).filter(|_| requester.is_none())).is_some_and(|own| own.no_default_search);
        self.world.in_system(name, no_defaults, tried).ok_or(())
    }

    /// Looks into the DT_RPATH of one file, which counts only without DT_RUNPATH.
    fn in_rpath(&self, at: usize, name: &str, tried: &mut Vec<Step>) -> Option<Hit> {
        let load = &self.loads[at];
        let object = load.library.object.as_ref().ok().filter(|object| object.runpath.is_empty())?;
        let origin = load.path.parent().unwrap_or(Path::new("/"));
        object.rpath.iter().find_map(|text| {
            let dir = expand(text, self.world.tokens(origin));
            let rule = Found::Rpath { of: load.library.name.clone(), dir: dir.clone() };
            self.world.in_folder(&dir, name, &rule, tried)
        })
    }

    /// Loads a file that was found, unless its inode or its name is loaded; gives where it is, and whether it is new.
    fn take(&mut self, hit: Hit, requested: String, by: Option<usize>, loader: Option<usize>) -> (usize, bool) {
        if let Some(known) = self.inodes.get(&hit.library.inode) {
            let known = *known;
            self.names.entry(requested).or_insert(known);
            return (known, false);
        }
        let load = Load { library: hit.library, path: hit.path, requested, by, found: hit.found };
        (self.add(load, loader), true)
    }

    fn add(&mut self, load: Load, loader: Option<usize>) -> usize {
        let at = self.loads.len();
        self.names.entry(load.requested.clone()).or_insert(at);
        self.names.entry(load.path.display().to_string()).or_insert(at);
        if let Some(soname) = load.library.object.as_ref().ok().and_then(|object| object.soname.clone()) {
            self.names.entry(soname).or_insert(at);
        }
        self.inodes.insert(load.library.inode, at);
        self.loads.push(Arc::new(load));
        self.loaders.push(loader);
        self.missing.push(Arc::default());
        at
    }

    /// Where the library that others ask for as `name` is loaded.
    pub fn named(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }
}

/// A file that is found, and at which ld.so stops with an error instead of looking further.
fn unloadable(library: &Arc<Library>, by: Option<&Arc<Library>>) -> Option<Problem> {
    let error = library.object.as_ref().err()?;
    Some(Problem::Unloadable { library: Arc::clone(library), by: by.cloned(), why: error.what.clone() })
}
