//! An environment against what is declared: takes a path, a lock's target or machines, gives what the rules came to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::ending::Ending;
use super::fail_on::FailOn;
use super::subject::Reader;
use super::{Form, Globals, output};
use crate::check::rule::library_modified::expected;
use crate::check::{self, Case, Findings, Locked, stack};
use crate::diag::{Diagnostic, Evidence, Failure};
use crate::inventory::image::Image;
use crate::inventory::integrity::{self, Expected, Verdict};
use crate::inventory::{Inventory, Library, Options, Role, Root, SubjectKind};
use crate::link::LinkModel;
use crate::lock::Lock;
use crate::manifest::{self, Check, Target};
use crate::matrix::Matrix;
use crate::report::verify::{Machines, Report, human, json};
use crate::resolve::{Machine, Request};

/// What is asked of an environment.
#[derive(Clone)]
pub struct Question<'a> {
    /// Where it is.
    pub subject: &'a Path,
    /// The lock to hold it against.
    pub lock: Option<&'a Lock>,
    /// The machines; with a lock, its target of that name is meant.
    pub target: Option<&'a Target>,
    /// What the job is started with.
    pub variables: BTreeMap<String, String>,
    /// Whether to read all libraries.
    pub integrity: bool,
    /// Facts.
    pub matrix: &'a Matrix,
    /// Levels of the rules.
    pub checks: &'a BTreeMap<String, Check>,
    /// How it is read.
    pub reader: Reader<'a>,
}

/// What it came to.
pub struct Judged {
    /// What the rules found.
    pub findings: Findings,
    /// What is to be said of the machines themselves.
    pub warnings: Vec<Diagnostic>,
    /// Whether there is any library that has to do with GPUs.
    pub is_gpu_stack: bool,
    pub(super) kind: &'static str,
    pub(super) stack: Vec<String>,
    pub(super) target: Option<Machines>,
    pub(super) libraries: usize,
    pub(super) bytes: u64,
}

impl Judged {
    /// Of no process at all.
    pub fn nothing() -> Self {
        Self {
            findings: Findings::default(),
            warnings: Vec::new(),
            is_gpu_stack: false,
            kind: SubjectKind::Process.name(),
            stack: Vec::new(),
            target: None,
            libraries: 0,
            bytes: 0,
        }
    }

    /// As a report on it is printed.
    pub fn report(&self, subject: &Path) -> Report<'_> {
        Report {
            run: None,
            kind: self.kind,
            path: subject.display().to_string(),
            stack: self.stack.clone(),
            target: self.target.clone(),
            files: None,
            is_empty: !self.is_gpu_stack,
            libraries: self.libraries,
            bytes: self.bytes,
            findings: &self.findings,
        }
    }
}

/// Reads the environment and runs the rules.
///
/// # Errors
/// A subject that cannot be read, a GPU or driver that is unknown.
pub fn judge(question: Question<'_>) -> Result<Judged, Failure> {
    let options = Options { variables: question.variables.clone(), ..Options::default() };
    let inventory = question.reader.read(question.subject, &options)?;
    let (subject, matrix) = (question.subject, question.matrix);
    let mut judged = judge_of(&inventory, question)?;
    let process = inventory.process.as_ref();
    if let Some(ending) = process.and_then(|process| Ending::of_core(process, &subject.display().to_string())) {
        let note = ending.explained(&judged.findings.findings, matrix)?;
        judged.findings.findings.push(note);
    }
    Ok(judged)
}

/// Runs the rules on what was read.
///
/// # Errors
/// A GPU or driver that is unknown.
pub fn judge_of(inventory: &Inventory, question: Question<'_>) -> Result<Judged, Failure> {
    let Question { lock, target, integrity, matrix, checks, .. } = question;
    let machine = target.map(|target| machine(target, matrix)).transpose()?;
    let links = LinkModel::new(inventory, matrix.dlopen()?);
    let locked = match (lock, target) {
        (Some(lock), Some(target)) => lock.target(&target.name).map(|target| Locked { lock, target }),
        _ => None,
    };
    let digests = integrity.then(|| digests(inventory, locked));
    let case = Case {
        offers: Default::default(),
        inventory,
        links: &links,
        matrix,
        machine: machine.as_ref(),
        glibc: target.and_then(|target| target.glibc.as_ref()),
        digests: digests.as_ref(),
        locked,
    };
    let is_gpu_stack = stack::is_gpu_stack(inventory, matrix)?;
    // Of a process that has nothing to do with GPUs, nobody asked what else it has.
    let is_judged = is_gpu_stack || inventory.process.is_none();
    let mut findings = if is_judged { check::run(&case, checks)? } else { Findings::default() };
    if let Some(image) = &inventory.image {
        findings.findings.iter_mut().for_each(|finding| name_layers(finding, image, &inventory.root));
    }
    let is_library = |library: &&Arc<Library>| library.role == Role::Library;
    let libraries: Vec<_> = inventory.libraries().iter().filter(is_library).collect();
    Ok(Judged {
        findings,
        is_gpu_stack,
        kind: inventory.subject.kind.name(),
        stack: stack::words(inventory, &links),
        target: machine.as_ref().map(|machine| machines(machine, &case)),
        libraries: libraries.len(),
        bytes: libraries.iter().map(|library| library.size).sum(),
        warnings: machine.map(|machine| machine.warnings).unwrap_or_default(),
    })
}

/// Says which layers of an image the files of a finding are from, and what made those.
fn name_layers(finding: &mut Diagnostic, image: &Image, root: &Root) {
    let files = finding.evidence.iter().map(|evidence| match evidence {
        Evidence::Elf { path, .. } => path,
        Evidence::Observed { what, .. } => what,
        Evidence::Span { file, .. } => file,
        Evidence::Fact { claim, .. } => claim,
    });
    let files = finding.subject.iter().chain(files).filter(|path| path.starts_with('/'));
    let origins = files.filter_map(|path| image.origin(&root.resolve(Path::new(path)).ok()?));
    let layers: BTreeMap<usize, Option<&str>> = origins.collect();
    let count = image.layers.len();
    let words = |(layer, made_by): (usize, Option<&str>)| {
        let by = made_by.unwrap_or(image.layers[layer - 1].as_str());
        Evidence::observed(format!("layer {layer} of {count}"), by)
    };
    finding.evidence.extend(layers.into_iter().map(words));
}

/// Prints a report in the format that is asked for; `anchors` are files of the project that stand for a finding without a
/// place of its own.
///
/// # Errors
/// Output that cannot be written.
pub fn print(
    report: &Report<'_>,
    command: &str,
    anchors: Vec<String>,
    fail_on: FailOn,
    globals: &Globals,
) -> Result<(), Failure> {
    let text = match globals.findings(&report.results(command, anchors, fail_on.least(), globals.least())) {
        Some(text) => text,
        None if globals.form() == Form::Json => json::report(report),
        None => human::report(report, globals.least(), globals.result_style()),
    };
    if report.run.is_some_and(|run| run.has_stdout) && globals.output.is_none() {
        output::stderr(&text);
        return Ok(());
    }
    output::write(globals, &text)
}

/// The variables of this process, without those that are no UTF-8.
pub fn own() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// A target that says nothing.
pub fn blank() -> Target {
    Target {
        name: String::new(),
        platform: manifest::Platform::default(),
        glibc: None,
        gpus: Vec::new(),
        driver: None,
        forward_compat: false,
    }
}

/// The target of a lock as the manifest would have it. Its glibc is the least that its wheels need, not the machines'.
///
/// # Errors
/// A driver in the lock that is none.
pub fn of_lock(target: &crate::lock::Target) -> Result<Target, Failure> {
    let driver = target.driver.given.as_deref().map(manifest::parse_driver).transpose();
    let driver = driver.map_err(|error| {
        let evidence = Evidence::observed("gpulock.lock", error.to_string());
        Failure::unanswerable(Diagnostic::error("lock-broken", "the lock's driver cannot be read", evidence))
    })?;
    Ok(Target {
        name: target.name.clone(),
        platform: target.platform,
        gpus: target.gpus.iter().map(|gpu| gpu.name.clone()).collect(),
        driver,
        forward_compat: target.driver.tier == Some(crate::lock::Tier::Forward),
        ..blank()
    })
}

fn machine(target: &Target, matrix: &Matrix) -> Result<Machine, Failure> {
    let request = Request {
        target: target.clone(),
        stack: manifest::Stack::default(),
        packages: Vec::new(),
        indexes: Vec::new(),
    };
    Machine::of(&request, matrix)
}

fn machines(machine: &Machine, case: &Case<'_>) -> Machines {
    Machines {
        name: case.locked.map(|locked| locked.target.name.clone()),
        gpus: machine.gpus.iter().map(|gpu| (gpu.name.clone(), gpu.capability.sm())).collect(),
        driver: machine.driver.as_ref().map(|driver| driver.given.clone()),
    }
}

/// SHA-256 of the libraries that something says the SHA-256 of.
fn digests(inventory: &Inventory, locked: Option<Locked<'_>>) -> BTreeMap<PathBuf, [u8; 32]> {
    let expected = expected(inventory, locked).into_iter();
    let files: Vec<Expected> =
        expected.filter_map(|(path, file)| Some(Expected { path, size: file.size, sha256: file.sha256? })).collect();
    let verdicts = integrity::verify(&inventory.root, &files, None);
    let digest = |(file, verdict): (Expected, Verdict)| match verdict {
        Verdict::Same => Some((file.path, file.sha256)),
        Verdict::Content(digest) => Some((file.path, digest)),
        Verdict::Missing | Verdict::Size(_) | Verdict::Unreadable(_) => None,
    };
    files.into_iter().zip(verdicts).filter_map(digest).collect()
}
