//! One file in one process: what `ctypes.CDLL(path)` would do, alone or after `import torch`.

use std::path::{Path, PathBuf};

use super::contexts;
use super::files::Files;
use super::import;
use super::model::{LinkModel, Problem};
use super::process::Process;
use super::unit::units;
use super::world::World;
use crate::inventory::Inventory;
use crate::matrix::schema::DlopenFile;

/// A process that is ready to open files.
pub struct Opening<'a> {
    inventory: &'a Inventory,
    facts: &'a DlopenFile,
    after_torch: bool,
}

impl<'a> Opening<'a> {
    /// The interpreter's process, after `import torch` where that is asked and torch is there.
    pub fn after(inventory: &'a Inventory, facts: &'a DlopenFile, torch: bool) -> Self {
        Self { inventory, facts, after_torch: torch }
    }

    /// The files that are loaded before, without links.
    pub fn mapped(&self) -> Vec<PathBuf> {
        self.with(|process| process.loads.iter().map(|load| load.library.path.clone()).collect())
    }

    /// What fails when a file is opened, and the files that are loaded after that, without links.
    pub fn open(&self, path: &Path) -> (Vec<Problem>, Vec<PathBuf>) {
        self.with(|mut process| {
            let problems = import::open_at(&mut process, path, false).1;
            (problems, process.loads.iter().map(|load| load.library.path.clone()).collect())
        })
    }

    fn with<T>(&self, then: impl FnOnce(Process<'_>) -> T) -> T {
        let world = World::new(self.inventory, self.facts);
        let program = self.inventory.pythons.first().and_then(|python| python.interpreter.as_deref());
        let (base, _) = Process::start(&world, program);
        if !self.after_torch {
            return then(base);
        }
        let files = Files::new(self.inventory);
        let all = units(self.inventory, self.facts, &files);
        let torch = contexts::import_torch(&base, &files, &all, &mut LinkModel::default());
        then(torch.unwrap_or(base))
    }
}
