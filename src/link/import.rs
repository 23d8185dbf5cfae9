//! Importing a package step by step, as its own code does: preloading by path, a second try after a failure.
//!
//! Takes the package's row of `dlopen.toml` and a process; gives the process after it and what failed.

use std::path::Path;

use super::files::{File, Files};
use super::model::Problem;
use super::process::{Opened, Process};
use super::symbols;
use crate::matrix::schema::{ImportRow, OnFailure, OnMissing, StepRow};

/// What the steps led to: each file that was opened, with what failed.
pub(super) struct Imported<'f> {
    pub opened: Vec<(&'f File, Vec<Problem>)>,
    /// Files that are not there and end the import.
    pub absent: Vec<Problem>,
}

/// Opens a file and looks up its symbols.
pub(super) fn open(process: &mut Process<'_>, file: &File, global: bool) -> (Opened, Vec<Problem>) {
    open_at(process, &file.path, global)
}

/// The same by path.
pub(super) fn open_at(process: &mut Process<'_>, path: &Path, global: bool) -> (Opened, Vec<Problem>) {
    let mut opened = process.open_path(path, global);
    let mut problems = std::mem::take(&mut opened.problems);
    problems.extend(symbols::check(process, &opened));
    (opened, problems)
}

/// Whether ld.so gives up.
pub(super) fn fails(problems: &[Problem]) -> bool {
    problems.iter().any(|problem| problem.optional().is_none())
}

pub(super) fn run<'f>(
    process: &mut Process<'_>,
    row: &ImportRow,
    files: &'f Files,
    cuda: Option<&str>,
) -> Imported<'f> {
    let mut imported = Imported { opened: Vec::new(), absent: Vec::new() };
    for step in &row.steps {
        if step.when_loaded.as_ref().is_some_and(|text| !is_loaded(process, text)) {
            continue;
        }
        for name in &step.open {
            let Some(file) = files.find(name, &step.places, cuda) else {
                if step.missing == OnMissing::Skip {
                    continue;
                }
                if step.failure == OnFailure::Stop {
                    break;
                }
                let other_python = files.of_other_python(name).map(|file| file.library.name.clone());
                let (file, package) = (name.clone(), row.package.to_string());
                imported.absent.push(Problem::Absent { file, package, other_python });
                continue;
            };
            let before = process.clone();
            let (_, mut problems) = open(process, file, step.global);
            if fails(&problems) && rescue(process, &before, step, &problems, files, cuda) {
                problems = open(process, file, step.global).1;
            }
            if fails(&problems) && step.failure == OnFailure::Stop {
                *process = before;
                break;
            }
            imported.opened.push((file, problems));
        }
    }
    imported
}

/// Whether a path that holds `text` is loaded.
fn is_loaded(process: &Process<'_>, text: &str) -> bool {
    process.loads.iter().any(|load| load.library.path.to_string_lossy().contains(text))
}

/// Opens the libraries of `rescue`, as torch does when one of them is what was missing; false when that cannot help, and
/// then the process is as it was after the failure.
fn rescue<'w>(
    process: &mut Process<'w>,
    before: &Process<'w>,
    step: &StepRow,
    problems: &[Problem],
    files: &Files,
    cuda: Option<&str>,
) -> bool {
    let stem = |name: &str| name.rsplit('/').next().and_then(|name| name.split('.').next()).map(str::to_owned);
    let stems: Vec<String> = step.rescue.iter().filter_map(|name| stem(name)).collect();
    let named = |problem: &Problem| match problem {
        Problem::Unresolved { needed, optional: None, .. } => stems.iter().any(|stem| needed.contains(stem.as_str())),
        _ => false,
    };
    if !problems.iter().any(named) {
        return false;
    }
    let mut retried = before.clone();
    for name in &step.rescue {
        let Some(file) = files.find(name, &step.rescue_places, cuda) else { return false };
        if fails(&open(&mut retried, file, false).1) {
            return false;
        }
    }
    *process = retried;
    true
}
