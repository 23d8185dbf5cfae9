//! `gpulock verify pid:N`: which processes are meant, and one report on all of them.

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;

use super::environment::{self, Judged, Question};
use crate::diag::{Class, Diagnostic, Evidence, Failure};
use crate::inventory::process::{self, ProcFs, ProcessEntry, with_children};
use crate::matrix::Matrix;

/// Flags that name more processes than one.
#[derive(Debug, ClapArgs)]
pub struct Flags {
    /// With pid:N, also the processes that it started, and those that they started
    #[arg(long, env = "GPULOCK_CHILDREN", conflicts_with = "all")]
    children: bool,
    /// Every process of this machine that has loaded a library of CUDA or torch
    #[arg(long, env = "GPULOCK_ALL", conflicts_with = "subject")]
    all: bool,
}

/// The processes that are meant.
#[derive(Debug)]
pub struct Processes {
    chosen: Vec<ProcessEntry>,
    /// How many others could not be looked at.
    unread: usize,
}

/// What is judged: the subject as it is called, and the processes where it is about processes.
///
/// # Errors
/// A number that is none of a process, `--children` without a process.
pub fn choose(given: Option<&Path>, flags: &Flags, matrix: &Matrix) -> Result<(PathBuf, Option<Processes>), Failure> {
    let processes = ProcFs::default();
    let all = || processes.all().map_err(|error| unanswerable("/proc", &error.to_string()));
    if flags.all {
        return Ok((PathBuf::from("all processes"), Some(of_gpus(&processes, all()?, matrix)?)));
    }
    let subject = given.unwrap_or(Path::new(".venv")).to_owned();
    let Some(pid) = process::pid(&subject)? else {
        let fact = format!("SUBJECT is {}", subject.display());
        return if flags.children { Err(unanswerable("command line", &fact)) } else { Ok((subject, None)) };
    };
    let alone = ProcessEntry { pid, parent: 0, name: String::new(), started: 0 };
    if !flags.children {
        return Ok((subject, Some(Processes { chosen: vec![alone], unread: 0 })));
    }
    let all = all()?;
    let entry = |pid: u32| all.iter().find(|entry| entry.pid == pid).cloned();
    let mut chosen = vec![entry(pid).unwrap_or(alone)];
    chosen.extend(with_children(pid, &all).into_iter().skip(1).filter_map(entry));
    Ok((PathBuf::from(format!("pid:{pid} and its children")), Some(Processes { chosen, unread: 0 })))
}

/// Those that have loaded a library of CUDA or torch.
fn of_gpus(processes: &ProcFs, all: Vec<ProcessEntry>, matrix: &Matrix) -> Result<Processes, Failure> {
    let packages = matrix.package()?;
    let is_gpu = |name: &String| packages.is_gpu_library(name) || name.starts_with("libtorch");
    let mut found = Processes { chosen: Vec::new(), unread: 0 };
    for entry in all {
        match processes.mapped_names(entry.pid) {
            Ok(names) if names.iter().any(is_gpu) => found.chosen.push(entry),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => found.unread += 1,
            _ => {}
        }
    }
    Ok(found)
}

/// Judges each process; what several have in common is one finding. Of several, those that end meanwhile or may not be
/// read are left out with a word.
///
/// # Errors
/// When none of them can be read.
pub fn judge(question: &Question<'_>, processes: Processes) -> Result<Judged, Failure> {
    let judged = |entry: &ProcessEntry| {
        let subject = PathBuf::from(format!("pid:{}", entry.pid));
        environment::judge(Question { subject: &subject, ..question.clone() })
    };
    let mut all = match &processes.chosen[..] {
        [one] => judged(one)?,
        _ => merged(processes.chosen.into_iter().map(|entry| (judged(&entry), entry)))?,
    };
    if processes.unread > 0 {
        let count = processes.unread;
        let of = if count == 1 { "1 process of another user" } else { &format!("{count} processes of other users") };
        let message = format!("{of} may not be read: left out");
        let note = Diagnostic::note("cannot-read", message, Evidence::observed("/proc", "permission denied"));
        let is_root = rustix::process::geteuid().is_root();
        all.warnings.push(note.fix(process::with_rights("gpulock verify --all", is_root)));
    }
    Ok(all)
}

/// What was found of several processes, as one.
///
/// # Errors
/// When none of them can be read.
pub fn merged(each: impl Iterator<Item = (Result<Judged, Failure>, ProcessEntry)>) -> Result<Judged, Failure> {
    let mut all: Option<Judged> = None;
    let (mut unread, mut first): (Vec<Diagnostic>, Option<Failure>) = (Vec::new(), None);
    for (judged, entry) in each {
        match judged {
            Ok(mut judged) if all.is_none() => {
                judged.findings.findings.iter_mut().for_each(|finding| finding.evidence.push(of(&entry)));
                all = Some(judged);
            }
            Ok(judged) => all.iter_mut().for_each(|all| add(all, &judged, &entry)),
            Err(failure) if failure.class == Class::Unanswerable && is_about_it(&failure) => {
                unread.extend(failure.diagnostics.iter().map(|one| note(one, &entry)));
                first = first.or(Some(failure));
            }
            Err(failure) => return Err(failure),
        }
    }
    match (all, first) {
        (Some(mut all), _) => {
            all.warnings.extend(unread);
            all.findings.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
            Ok(all)
        }
        (None, Some(failure)) => Err(failure),
        (None, None) => Ok(Judged::nothing()),
    }
}

/// Whether a failure is that of one process, and says nothing of the others.
fn is_about_it(failure: &Failure) -> bool {
    failure.diagnostics.iter().all(|one| matches!(one.code, "process-ended" | "cannot-read"))
}

fn note(failure: &Diagnostic, entry: &ProcessEntry) -> Diagnostic {
    Diagnostic::note(failure.code, format!("{}: left out", failure.message), of(entry))
}

fn of(entry: &ProcessEntry) -> Evidence {
    Evidence::observed(format!("process {}", entry.pid), entry.name.clone())
}

/// Adds what was found of one more process.
fn add(all: &mut Judged, one: &Judged, entry: &ProcessEntry) {
    if !all.is_gpu_stack {
        all.findings.skipped.clone_from(&one.findings.skipped);
    }
    all.is_gpu_stack |= one.is_gpu_stack;
    all.libraries += one.libraries;
    all.bytes += one.bytes;
    for line in one.stack.iter().filter(|line| !all.stack.contains(line)).cloned().collect::<Vec<_>>() {
        all.stack.push(line);
    }
    let own = |text: &str| text.replace(&format!("process {}", entry.pid), "process");
    for finding in &one.findings.findings {
        let same = |known: &&mut Diagnostic| {
            let first = known.evidence.iter().rev().find_map(|evidence| match evidence {
                Evidence::Observed { what, .. } => what.strip_prefix("process "),
                _ => None,
            });
            let known_own =
                first.map_or(known.message.clone(), |pid| known.message.replace(&format!("process {pid}"), "process"));
            known.code == finding.code && known.subject == finding.subject && known_own == own(&finding.message)
        };
        match all.findings.findings.iter_mut().find(same) {
            Some(known) => known.evidence.push(of(entry)),
            None => all.findings.findings.push(finding.clone().and(of(entry))),
        }
    }
}

fn unanswerable(what: &str, fact: &str) -> Failure {
    let message = "`--children` and `--all` are about processes";
    let error = Diagnostic::error("not-a-subject", message, Evidence::observed(what, fact));
    Failure::unanswerable(error.fix("gpulock verify pid:4242 --children"))
}
