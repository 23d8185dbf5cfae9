//! Validates the matrix: takes its [`Files`], gives every problem at once, each with its place.
//!
//! A file has its form (known keys, right values, a source for every fact), its rows have their order, and what it
//! refers to is there. A file laid over the embedded ones is checked together with those.

mod cuda;
mod cudnn;
mod dlopen;
mod env_vars;
mod form;
mod gpu;
mod gpu_code;
mod image;
mod index;
mod message;
mod pci;
mod place;
mod snapshot;
mod torch;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Display;

use serde::de::DeserializeOwned;

use self::form::Sheet;
use self::place::{Source, Step};
use super::files::Files;
use super::schema::{
    CudaFile, CudaImageFile, CudnnFile, DlopenFile, DriverFile, EnvVarsFile, GpuCodeFile, GpuFile, IndexFile,
    MessageFile, OsFile, PackageFile, PciFile, PythonImageFile, SnapshotFile, TorchFile,
};
use crate::diag::{Diagnostic, Evidence};

/// How far to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Facts and the references between them; embedded files are taken to have their form. Fast.
    Facts,
    /// The form of every file too, every line of the snapshot, and what facts say about it.
    Everything,
}

/// Every problem of the matrix, by file and line.
pub fn check(files: &Files, depth: Depth) -> Vec<Diagnostic> {
    let mut findings = Findings::default();
    index::files(files, &mut findings);
    let book = Book::read(files, depth, &mut findings);
    cuda::check(&book, &mut findings);
    gpu::check(&book, &mut findings);
    gpu_code::check(&book, &mut findings);
    env_vars::check(&book, &mut findings);
    cudnn::check(&book, &mut findings);
    torch::check(&book, &mut findings);
    dlopen::check(&book, &mut findings);
    image::check(&book, &mut findings);
    index::check(&book, &mut findings);
    message::check(&book, &mut findings);
    pci::check(&book, &mut findings);
    if depth == Depth::Everything {
        snapshot::check(&book, files, &mut findings);
    }
    findings.list.sort_by_cached_key(|diagnostic| match &diagnostic.evidence[0] {
        Evidence::Span { file, line, column, .. } => (file.clone(), *line, *column),
        Evidence::Observed { what, .. } | Evidence::Elf { path: what, .. } => (what.clone(), 0, 0),
        Evidence::Fact { source, .. } => (source.clone(), 0, 0),
    });
    findings.list
}

/// What was found so far.
#[derive(Debug, Default)]
struct Findings {
    list: Vec<Diagnostic>,
}

impl Findings {
    fn add(&mut self, code: &'static str, message: impl Into<String>, place: Evidence) {
        self.list.push(Diagnostic::error(code, message, place));
    }

    fn fixable(&mut self, code: &'static str, message: impl Into<String>, place: Evidence, fix: impl Into<String>) {
        self.list.push(Diagnostic::error(code, message, place).fix(fix));
    }

    /// `self` refers to what is not there.
    fn dangling(&mut self, message: impl Into<String>, place: Evidence, missing: &str) {
        self.fixable("matrix-reference", message, place, format!("add it to {missing}, or correct the reference"));
    }

    /// Rows that must ascend, none twice; `show` names one.
    fn ascending<T: Ord>(&mut self, rows: &[T], show: impl Fn(&T) -> String, place: impl Fn(usize) -> Evidence) {
        for (i, pair) in rows.windows(2).enumerate() {
            let [before, after] = pair else { continue };
            if after < before {
                let message = format!("{} stands after {}; oldest first", show(after), show(before));
                self.add("matrix-order", message, place(i + 1));
            }
        }
        for (i, row) in rows.iter().enumerate() {
            if let Some(first) = rows[..i].iter().position(|other| other == row) {
                self.twice(show(row), place(i), place(first));
            }
        }
    }

    /// What stands in two places; `what` is its name in messages.
    fn twice(&mut self, what: impl Display, place: Evidence, first: Evidence) {
        let problem = Diagnostic::error("matrix-duplicate", format!("{what} is there twice"), place).and(first);
        self.list.push(problem.fix("remove one of the two"));
    }
}

/// Where each key stood first.
struct Seen<K> {
    places: BTreeMap<K, Evidence>,
}

impl<K: Ord> Seen<K> {
    fn new() -> Self {
        Self { places: BTreeMap::new() }
    }

    /// Notes `key`, which messages call `what`; twice is a finding.
    fn add(&mut self, key: K, what: impl Display, place: Evidence, findings: &mut Findings) {
        match self.places.entry(key) {
            Entry::Occupied(first) => findings.twice(what, place, first.get().clone()),
            Entry::Vacant(free) => drop(free.insert(place)),
        }
    }
}

/// All files as data.
struct Book<'a> {
    cudas: Vec<Sheet<'a, CudaFile>>,
    driver: Option<Sheet<'a, DriverFile>>,
    gpu: Option<Sheet<'a, GpuFile>>,
    gpu_code: Option<Sheet<'a, GpuCodeFile>>,
    env_vars: Option<Sheet<'a, EnvVarsFile>>,
    cudnns: Vec<Sheet<'a, CudnnFile>>,
    torches: Vec<Sheet<'a, TorchFile>>,
    dlopen: Option<Sheet<'a, DlopenFile>>,
    os: Option<Sheet<'a, OsFile>>,
    cuda_image: Option<Sheet<'a, CudaImageFile>>,
    python_image: Option<Sheet<'a, PythonImageFile>>,
    index: Option<Sheet<'a, IndexFile>>,
    message: Option<Sheet<'a, MessageFile>>,
    package: Option<Sheet<'a, PackageFile>>,
    pci: Option<Sheet<'a, PciFile>>,
    snapshot: Option<Sheet<'a, SnapshotFile>>,
    /// Folders (`cuda/`) with a file of which nothing could be read.
    lost: Vec<&'static str>,
}

impl<'a> Book<'a> {
    fn read(files: &'a Files, depth: Depth, findings: &mut Findings) -> Self {
        let mut lost = Vec::new();
        Self {
            cudas: folder(files, "cuda/", depth, &mut lost, findings),
            driver: file(files, "driver.toml", depth, findings),
            gpu: file(files, "gpu.toml", depth, findings),
            gpu_code: file(files, "gpu-code.toml", depth, findings),
            env_vars: file(files, "env-vars.toml", depth, findings),
            cudnns: folder(files, "cudnn/", depth, &mut lost, findings),
            torches: folder(files, "torch/", depth, &mut lost, findings),
            dlopen: file(files, "dlopen.toml", depth, findings),
            os: file(files, "image/os.toml", depth, findings),
            cuda_image: file(files, "image/nvidia-cuda.toml", depth, findings),
            python_image: file(files, "image/python.toml", depth, findings),
            index: file(files, "index.toml", depth, findings),
            message: file(files, "message.toml", depth, findings),
            package: file(files, "package.toml", depth, findings),
            pci: file(files, "pci.toml", depth, findings),
            snapshot: file(files, "snapshot/INDEX.toml", depth, findings),
            lost,
        }
    }

    /// Whether all files of a folder could be read as a whole, so that what is not in them is not there.
    fn whole<T>(&self, folder: &str, sheets: &[Sheet<'_, T>]) -> bool {
        !self.lost.contains(&folder) && sheets.iter().all(|sheet| sheet.whole)
    }
}

impl<T> Sheet<'_, T> {
    /// The place of what is at `path` in the file.
    fn at(&self, path: &[Step<'_>]) -> Evidence {
        self.source.at(path)
    }

    /// `12.8` of `cuda/12.8.toml`.
    fn stem(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or(self.path);
        name.strip_suffix(".toml").unwrap_or(name)
    }
}

fn folder<'a, T: DeserializeOwned>(
    files: &'a Files,
    folder: &'static str,
    depth: Depth,
    lost: &mut Vec<&'static str>,
    findings: &mut Findings,
) -> Vec<Sheet<'a, T>> {
    let mut sheets = Vec::new();
    for path in files.paths(folder, ".toml") {
        match file(files, path, depth, findings) {
            Some(sheet) => sheets.push(sheet),
            None => lost.push(folder),
        }
    }
    sheets
}

fn file<'a, T: DeserializeOwned>(
    files: &'a Files,
    path: &'a str,
    depth: Depth,
    findings: &mut Findings,
) -> Option<Sheet<'a, T>> {
    let name = files.name(path);
    let Some(text) = files.text(path) else {
        findings.add("matrix-invalid", format!("{name} is missing"), Evidence::observed(name, "no such file"));
        return None;
    };
    let source = Source::new(name, text);
    if depth == Depth::Facts
        && !files.is_overlaid(path)
        && let Ok(value) = files.read(path)
    {
        return Some(Sheet { path, value, source, whole: true });
    }
    form::read(path, source, findings)
}
