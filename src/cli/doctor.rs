//! `gpulock doctor [FILE]`: this machine, a captured tree or a captured file, layer by layer.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;

use super::environment::{self, Question, blank, of_lock};
use super::fail_on::FailOn;
use super::input::{self, Place};
use super::subject::{ImageArgs, Reader, platform};
use super::{Answer, Form, Globals, asking, here, output, write};
use crate::check::machine::{self, Context, Layer, Line, SeenGpu, State};
use crate::diag::{Diagnostic, Evidence, Failure};
use crate::inventory::machine::{Facts, Files, Here, capture};
use crate::inventory::{Root, shown};
use crate::lock::{self, Lock};
use crate::manifest::{self, Target};
use crate::matrix::Matrix;
use crate::render;
use crate::report::doctor::{Report, human, json};

/// Flags of `gpulock doctor`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Captured machine to look at instead of this one (made by --capture)
    #[arg(value_name = "FILE", conflicts_with_all = ["sysroot", "capture"])]
    file: Option<PathBuf>,
    /// Folder to look at instead of this machine: a root filesystem with its /proc, /sys and /dev as files
    #[arg(long, value_name = "DIR", env = "GPULOCK_SYSROOT")]
    sysroot: Option<PathBuf>,
    /// Write what is looked at to this tar file, to be looked at elsewhere; says what is in it
    #[arg(long, value_name = "FILE", env = "GPULOCK_CAPTURE")]
    capture: Option<PathBuf>,
    /// Python environment to judge on this machine [default: the active one]
    #[arg(long = "env", value_name = "PATH", env = "GPULOCK_ENV")]
    environment: Option<PathBuf>,
    /// Target of the lock that this machine is to be [default: any]
    #[arg(long, env = "GPULOCK_TARGET")]
    target: Option<String>,
    #[command(flatten)]
    place: Place,
    /// The least severity that fails
    #[arg(long, value_enum, default_value = "error", env = "GPULOCK_FAIL_ON")]
    fail_on: FailOn,
    #[command(flatten)]
    images: ImageArgs,
}

/// Runs it.
///
/// # Errors
/// A tree, file or lock that cannot be read, a capture that cannot be written.
pub fn run(args: &Args, globals: &Globals) -> Result<Answer, Failure> {
    let matrix = globals.matrix()?;
    let (root, kind, path) = root(args)?;
    let files = Files::of(&root);
    let here = Here { ask: &asking::ask, variables: environment::own(), processor: std::env::consts::ARCH };
    let facts = Facts::read(&files, (kind == "machine").then_some(&here));
    if let Some(to) = &args.capture {
        written(to, &files)?;
    }
    let lock = read_lock(args)?;
    let targets = targets(args, lock.as_ref())?;
    let manifest = input::manifest_if_there(&args.place)?;
    let checks = manifest.map(|manifest| manifest.checks).unwrap_or_default();
    let gpus = machine::gpus(&facts, &matrix)?;
    let environment = environment_of(args, &facts, kind);
    let context = Context {
        facts: &facts,
        gpus: &gpus,
        matrix: &matrix,
        targets: &targets,
        with_environment: environment.is_ok(),
    };
    let mut lines = machine::judge(&context)?;
    let mut skipped = Vec::new();
    lines.push(match environment {
        Ok(path) => {
            let judging = Judging { args, globals, matrix: &matrix, lock: lock.as_ref() };
            let target = match context.target() {
                Some(target) => of_lock(target)?,
                None => this_machine(&facts, &gpus),
            };
            let (line, more) = judging.environment(&path, &target, &facts)?;
            skipped = more;
            line
        }
        Err(why) => Line::not_checked(Layer::Framework, "Python environment", why, "VIRTUAL_ENV, CONDA_PREFIX"),
    });
    let lines: Vec<Line> = lines.into_iter().map(|line| line.leveled(&checks)).collect();
    let report = Report { kind, path, lines: &lines, skipped: &skipped, is_empty: !context.is_gpu_machine() };
    let text = match globals.findings(&report.results(args.fail_on.least(), globals.least())) {
        Some(text) => text,
        None if globals.form() == Form::Json => json::report(&report),
        None => human::report(&report, globals.least(), globals.result_style()),
    };
    output::write(globals, &text)?;
    let fails = |finding: &Diagnostic| args.fail_on.fails(finding.severity);
    Ok(match () {
        () if lines.iter().flat_map(|line| &line.findings).any(fails) => Answer::No,
        () if report.is_empty => Answer::Nothing,
        () => Answer::Yes,
    })
}

/// What is looked at, what kind of thing that is, and how reports name it.
fn root(args: &Args) -> Result<(Root, &'static str, String), Failure> {
    if let Some(file) = &args.file {
        let name = shown(file);
        return Ok((capture::read(&name, file)?, "capture", name));
    }
    let Some(folder) = &args.sysroot else { return Ok((Root::new("/"), "machine", "this machine".to_owned())) };
    let name = shown(folder);
    let unread = |error: std::io::Error| {
        let seen = Evidence::observed(name.clone(), error.to_string());
        let problem = Diagnostic::error("cannot-read", format!("{name} cannot be read as a folder"), seen);
        Failure::unanswerable(problem.fix("name a folder that is laid out as / is"))
    };
    let path = fs::canonicalize(folder).map_err(unread)?;
    fs::read_dir(&path).map_err(unread)?;
    Ok((Root::new(path), "tree", name))
}

/// Writes the capture, and says on standard error what is in it.
fn written(to: &Path, files: &Files<'_>) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    let list = capture::write(files, &mut bytes).map_err(|error| {
        let seen = Evidence::observed(shown(to), error.to_string());
        Failure::unanswerable(Diagnostic::error("cannot-write", "the capture cannot be written", seen))
    })?;
    write::bytes_atomically(to, &bytes)?;
    let lines: String = list.iter().map(|line| format!("  {line}\n")).collect();
    output::stderr(&format!("wrote {}, which holds this and nothing else:\n{lines}", shown(to)));
    Ok(())
}

/// The lock that is named, else the one that is here.
fn read_lock(args: &Args) -> Result<Option<Lock>, Failure> {
    match &args.place.lock {
        Some(path) => input::read_lock(path).map(Some),
        None => input::lock_if_there(&input::lock_path(&args.place)),
    }
}

/// The targets of which this machine is to be one: the named one, else all.
fn targets<'l>(args: &Args, lock: Option<&'l Lock>) -> Result<Vec<&'l lock::Target>, Failure> {
    // This machine is what `auto` means, and what all of this is about.
    match (lock, args.target.as_ref().filter(|name| *name != here::AUTO)) {
        (Some(lock), Some(name)) => Ok(vec![render::choose(lock, Some(name))?]),
        (Some(lock), None) => Ok(lock.targets.iter().collect()),
        (None, Some(name)) => {
            let seen = Evidence::observed("command line", format!("--target {name}, and no lock here"));
            let problem = Diagnostic::error("lock-missing", "a target is one of a lock, and there is none", seen);
            Err(Failure::unanswerable(problem.fix("run `gpulock resolve`, or name the lock: --lock FILE")))
        }
        (None, None) => Ok(Vec::new()),
    }
}

/// The environment to judge, or why there is none.
fn environment_of(args: &Args, facts: &Facts, kind: &str) -> Result<PathBuf, String> {
    if let Some(path) = &args.environment {
        return Ok(path.clone());
    }
    if kind != "machine" {
        return Err("that of another machine is not here".to_owned());
    }
    let variables = facts.variables.value();
    let active = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().find_map(|name| variables?.get(name));
    active
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
        .ok_or_else(|| "none is active; name one: --env PATH".to_owned())
}

/// The machine as a target; GPUs that the matrix does not know are left out.
fn this_machine(facts: &Facts, gpus: &[SeenGpu]) -> Target {
    let driver = facts.module.version.value().and_then(|version| manifest::parse_driver(&version.to_string()).ok());
    let mut names: Vec<String> =
        gpus.iter().filter(|gpu| !gpu.is_elsewhere()).filter_map(|gpu| Some(gpu.capability?.sm())).collect();
    names.sort();
    names.dedup();
    Target { name: "this machine".into(), gpus: names, driver, ..blank() }
}

/// Rules that were skipped, and why.
type Skipped = Vec<(&'static str, String)>;

/// What the environment is judged with.
struct Judging<'a> {
    args: &'a Args,
    globals: &'a Globals,
    matrix: &'a Matrix,
    lock: Option<&'a Lock>,
}

impl Judging<'_> {
    /// One line for the environment, with what its rules found, and what they skipped.
    ///
    /// # Errors
    /// One that was named and cannot be read; of the active one the line says so.
    fn environment(&self, path: &Path, target: &Target, facts: &Facts) -> Result<(Line, Skipped), Failure> {
        const TOPIC: &str = "Python environment";
        let name = shown(path);
        let judged = environment::judge(Question {
            subject: path,
            lock: self.lock,
            target: Some(target),
            variables: facts.variables.value().cloned().unwrap_or_default(),
            integrity: false,
            matrix: self.matrix,
            // Their levels are given with those of all lines.
            checks: &BTreeMap::new(),
            reader: Reader { globals: self.globals, images: &self.args.images, platform: platform(Some(target)) },
        });
        let judged = match judged {
            Ok(judged) => judged,
            Err(failure) if self.args.environment.is_some() => return Err(failure),
            Err(failure) => {
                let why = failure.diagnostics.first().map_or_else(String::new, |problem| problem.message.clone());
                return Ok((Line::not_checked(Layer::Framework, TOPIC, why, name), Vec::new()));
            }
        };
        let stack = match judged.stack.is_empty() {
            true => "nothing in it has to do with GPUs".to_owned(),
            false => judged.stack.join(", "),
        };
        let mut line = Line::judged(Layer::Framework, TOPIC, stack, name, judged.findings.findings);
        if !judged.is_gpu_stack {
            line.state = State::NotChecked;
        }
        Ok((line, judged.findings.skipped))
    }
}
