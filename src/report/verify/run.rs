//! What was recorded of a command that was run: its programs with what they loaded and what they looked for in vain.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use serde::Serialize;

use crate::inventory::process::trace::is_variant;
use crate::inventory::process::{Program, Request, SearchRule};
use crate::inventory::shown;

/// A command that was run.
#[derive(Debug, Clone)]
pub struct Run {
    /// As it was called.
    pub command: String,
    /// How it ended: `exit status 1`, `signal SIGABRT`.
    pub ended: String,
    /// Its exit status, as a shell has it.
    pub status: u8,
    /// Whether standard output was the command's, so that the report has to go elsewhere.
    pub has_stdout: bool,
    /// The programs that were started, in the order of their starts.
    pub programs: Vec<Program>,
}

impl Run {
    /// The command in one line that is not too long, for people.
    pub fn shown(&self) -> String {
        const LONGEST: usize = 100;
        let line: String = self.command.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        match line.char_indices().nth(LONGEST) {
            Some((at, _)) => format!("{}...", &line[..at]),
            None => line,
        }
    }
}

/// Names of what was looked for in vain are listed up to so many.
const MOST: usize = 12;

/// For people: the counts, and what was looked for in vain.
pub fn human(run: &Run) -> String {
    let loads: usize = run.programs.iter().map(|program| program.loads.len()).sum();
    let count = run.programs.len();
    let word = if count == 1 { "program" } else { "programs" };
    let libraries = if loads == 1 { "library" } else { "libraries" };
    let mut text = format!("{}: {}; {count} {word}, {loads} {libraries} loaded\n", run.shown(), run.ended);
    // A library that is tried under several names has one file.
    let mut failed: BTreeMap<&str, &Request> = BTreeMap::new();
    for failure in run.programs.iter().flat_map(|program| &program.failures) {
        let known = failed.entry(&failure.name).or_insert(failure);
        // To be needed is more than to be tried.
        if known.opened && !failure.opened {
            *known = failure;
        }
    }
    if failed.is_empty() {
        return text;
    }
    let _ = writeln!(text, "looked for in vain: {}", failed.len());
    for (name, failure) in failed.iter().take(MOST) {
        let how = if failure.opened { "opened" } else { "needed" };
        let folders = failure.tried.iter().filter_map(|(_, path)| path.parent());
        let places = match folders.filter(|folder| !is_variant(folder)).count() {
            0 => String::new(),
            1 => ", in 1 place".to_owned(),
            places => format!(", in {places} places"),
        };
        let by = Path::new(&failure.by).file_name().map(|name| shown(Path::new(name))).unwrap_or_default();
        let _ = writeln!(text, "  {name}, {how} by {by}{places}");
    }
    if let Some(more) = failed.len().checked_sub(MOST).filter(|more| *more > 0) {
        let _ = writeln!(text, "  and {more} more; `--format json` has all");
    }
    text
}

/// For programs, whole.
#[derive(Serialize)]
pub struct RunJson<'r> {
    command: &'r str,
    ended: &'r str,
    status: u8,
    programs: Vec<ProgramJson<'r>>,
}

#[derive(Serialize)]
struct ProgramJson<'r> {
    pid: u32,
    program: &'r str,
    loads: Vec<LoadJson<'r>>,
    failures: Vec<FailureJson<'r>>,
    errors: Vec<ErrorJson<'r>>,
}

#[derive(Serialize)]
struct LoadJson<'r> {
    path: String,
    name: &'r str,
    by: &'r str,
    opened: bool,
    found: String,
}

#[derive(Serialize)]
struct FailureJson<'r> {
    name: &'r str,
    by: &'r str,
    opened: bool,
    tried: Vec<TriedJson>,
}

#[derive(Serialize)]
struct TriedJson {
    path: String,
    rule: String,
}

#[derive(Serialize)]
struct ErrorJson<'r> {
    file: &'r str,
    error: &'r str,
}

/// The same as data.
pub fn json(run: &Run) -> RunJson<'_> {
    let programs = run.programs.iter().map(of_program).collect();
    RunJson { command: &run.command, ended: &run.ended, status: run.status, programs }
}

fn of_program(program: &Program) -> ProgramJson<'_> {
    let loads = program.loads.iter().map(|load| LoadJson {
        path: shown(load.path()),
        name: &load.name,
        by: &load.by,
        opened: load.opened,
        found: rule(load.tried.last().map_or(&SearchRule::Path, |(rule, _)| rule)),
    });
    let failures = program.failures.iter().map(|failure| FailureJson {
        name: &failure.name,
        by: &failure.by,
        opened: failure.opened,
        tried: failure.tried.iter().map(|(by, path)| TriedJson { path: shown(path), rule: rule(by) }).collect(),
    });
    let errors = program.errors.iter().map(|(file, error)| ErrorJson { file, error });
    ProgramJson {
        pid: program.pid,
        program: &program.program,
        loads: loads.collect(),
        failures: failures.collect(),
        errors: errors.collect(),
    }
}

fn rule(rule: &SearchRule) -> String {
    match rule {
        SearchRule::Path => "its path".into(),
        SearchRule::Rpath(of) => format!("DT_RPATH of {of}"),
        SearchRule::LibraryPath => "LD_LIBRARY_PATH".into(),
        SearchRule::Runpath(of) => format!("DT_RUNPATH of {of}"),
        SearchRule::Cache => "/etc/ld.so.cache".into(),
        SearchRule::Default => "default folders".into(),
    }
}
