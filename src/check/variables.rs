//! Who may read a job's variables: takes a case, gives the files of its environment that have names as text, and the
//! releases that decide which names are read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{Case, stack};
use crate::inventory::words::{Form, Searched, Wanted, Words, python_files, search};
use crate::inventory::{Root, shown};
use crate::matrix::EnvVarFacts;
use crate::matrix::schema::{VariableFamilyRow, VariableReader};
use crate::version::Pep440;

/// The files of an environment that may read variables.
#[derive(Debug)]
pub struct Readers<'a> {
    /// Where they lie.
    pub root: &'a Root,
    /// Libraries and programs, each with its package.
    pub libraries: BTreeMap<PathBuf, Option<String>>,
    /// Packages, with the folders that they are installed in.
    pub packages: Vec<(String, PathBuf)>,
    /// The folders of all Python packages.
    pub site_packages: Vec<PathBuf>,
    /// The releases that are installed.
    pub releases: Releases,
}

/// The releases that decide which names are read.
#[derive(Debug, Default)]
pub struct Releases {
    /// torch, without local versions; more than one where several are installed.
    pub torch: BTreeSet<Pep440>,
    /// NCCL, as its libraries say it.
    pub nccl: BTreeSet<Pep440>,
}

impl Releases {
    /// Those of a reader.
    pub fn of(&self, reader: VariableReader) -> &BTreeSet<Pep440> {
        match reader {
            VariableReader::Torch => &self.torch,
            VariableReader::Nccl => &self.nccl,
        }
    }

    /// A reader with its releases, in words: `torch 2.8.0`.
    pub fn words(&self, reader: VariableReader) -> String {
        let releases: Vec<String> = self.of(reader).iter().map(Pep440::to_string).collect();
        format!("{} {}", reader.name(), releases.join(" and "))
    }
}

impl<'a> Readers<'a> {
    /// Those of a case: its own files, and those elsewhere that its processes load.
    pub fn of(case: &Case<'a>) -> Self {
        let loads = case.links.contexts.iter().flat_map(|context| &context.loads).map(|load| &load.library);
        let libraries = || case.inventory.libraries().iter().chain(loads.clone());
        let package = |library| Some(stack::package(case.inventory, library)?.name.to_string());
        let packages = &case.inventory.packages;
        let torch = packages.iter().filter(|package| package.name.as_str() == "torch");
        Self {
            root: &case.inventory.root,
            // What is no ELF file is another rule's finding, and reads nothing.
            libraries: libraries()
                .filter(|library| library.object.is_ok())
                .map(|library| (library.path.clone(), package(library)))
                .collect(),
            packages: packages.iter().map(|package| (package.name.to_string(), package.site.clone())).collect(),
            site_packages: case.inventory.pythons.iter().flat_map(|python| python.site_packages.clone()).collect(),
            releases: Releases {
                torch: torch.filter_map(|package| Some(package.pep440()?.only_release())).collect(),
                nccl: libraries().filter_map(|library| stack::version_of(library, "nccl")?.parse().ok()).collect(),
            },
        }
    }

    /// The files that a family belongs to; none where its owner is not here, or is here only in part.
    pub fn owners(&self, family: &VariableFamilyRow, facts: &EnvVarFacts) -> BTreeSet<Searched> {
        let owns = |path: &PathBuf, own: &Option<String>| match &family.package {
            Some(package) => own.as_deref() == Some(package.as_str()),
            None => path.file_name().and_then(|name| name.to_str()).is_some_and(|name| family.owns(name)),
        };
        let libraries = self.libraries.iter().filter(|(path, own)| owns(path, own));
        let mut files: BTreeSet<Searched> = libraries.map(|(path, _)| library(path)).collect();
        if let Some(package) = family.package.as_ref().filter(|_| !files.is_empty()) {
            let sites = self.packages.iter().filter(|(name, _)| name == package.as_str());
            let folders: Vec<PathBuf> = sites.map(|(_, site)| site.join(package.as_str())).collect();
            // A package without its Python files (compiled ones, an editable install) says nothing of what it reads.
            match self.python(&folders, facts) {
                Ok(python) if !python.is_empty() => files.extend(python),
                _ => return BTreeSet::new(),
            }
        }
        files
    }

    /// All files but those of `but`.
    ///
    /// # Errors
    /// Why not all of them are known, as the end of a sentence.
    pub fn others(&self, but: &BTreeSet<Searched>, facts: &EnvVarFacts) -> Result<BTreeSet<Searched>, String> {
        let mut files = self.python(&self.site_packages, facts)?;
        files.extend(self.libraries.keys().map(|path| library(path)));
        files.retain(|file| !but.contains(file));
        Ok(files)
    }

    /// Looks into files.
    pub fn search(&self, files: &BTreeSet<Searched>, wanted: &Wanted) -> Words {
        let files: Vec<Searched> = files.iter().cloned().collect();
        search(self.root, &files, wanted)
    }

    fn python(&self, folders: &[PathBuf], facts: &EnvVarFacts) -> Result<BTreeSet<Searched>, String> {
        let mut all = BTreeSet::new();
        for folder in folders {
            let files = python_files(self.root, folder).map_err(|why| format!("{}: {why}", shown(folder)))?;
            let read = files.into_iter().filter(|path| !facts.is_listing(path));
            all.extend(read.map(|path| Searched { path, form: Form::Source }));
        }
        Ok(all)
    }
}

fn library(path: &Path) -> Searched {
    Searched { path: path.to_owned(), form: Form::Library }
}
