//! `gpulock verify [SUBJECT]`: reads an environment and says what will break, before anything runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;

use super::environment::{self, Question, blank, of_lock};
use super::fail_on::FailOn;
use super::input::{self, Place};
use super::probe::{self, Probe};
use super::run::Stdout;
use super::subject::{ImageArgs, Reader, platform};
use super::{Answer, Globals, here, run, running, watched};
use crate::check;
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::lock::Lock;
use crate::manifest::{self, Manifest, Target};
use crate::matrix::Matrix;
use crate::render;
use crate::report::verify::Report;
use crate::version::{Constraint, ConstraintOperator, Driver, Glibc};

/// Flags of `gpulock verify`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Virtual environment, site-packages, root filesystem, shared library, wheel, process (pid:4242), core file (core:FILE), image:FILE, oci:DIR, sif:FILE, registry:NAME [default: .venv]
    #[arg(value_name = "SUBJECT")]
    subject: Option<PathBuf>,
    /// Command to run and listen to, behind `--`; it keeps its streams, and the report goes to standard error or -o FILE
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["subject", "children", "all"])]
    command: Vec<std::ffi::OsString>,
    /// Run the environment's Python too, on a small program that loads what is loaded late, and listen to it
    #[arg(long, value_enum, env = "GPULOCK_PROBE", conflicts_with_all = ["command", "children", "all"])]
    probe: Option<Probe>,
    #[command(flatten)]
    processes: running::Flags,
    #[command(flatten)]
    place: Place,
    /// Target of the lock to judge for; `auto` for this machine
    #[arg(long, value_name = "TARGET", env = "GPULOCK_TARGET")]
    target: Option<String>,
    /// GPU of the machines: "RTX 5090", "H100", "sm_90"; may be repeated; instead of a lock's target
    #[arg(long = "gpu", value_name = "GPU", env = "GPULOCK_GPU", value_delimiter = ',', value_parser = clap::builder::NonEmptyStringValueParser::new())]
    gpus: Vec<String>,
    /// Oldest driver of the machines (570.124.06), or a branch (570)
    #[arg(long, value_parser = manifest::parse_driver, env = "GPULOCK_DRIVER")]
    driver: Option<Constraint<Driver>>,
    /// Oldest glibc of the machines
    #[arg(long, value_parser = manifest::parse_glibc, env = "GPULOCK_GLIBC")]
    glibc: Option<Glibc>,
    /// The cuda-compat package may be used (data-centre GPUs)
    #[arg(long, env = "GPULOCK_FORWARD_COMPAT")]
    forward_compat: bool,
    /// Variable that the job is started with (LD_LIBRARY_PATH=/opt/lib), besides [env] of the manifest; may be repeated
    #[arg(long = "set-env", value_name = "NAME=VALUE", env = "GPULOCK_SET_ENV", value_delimiter = '\n', value_parser = variable)]
    variables: Vec<(String, String)>,
    /// Read all libraries and compare their SHA-256 with the lock's, else with what their packages recorded
    #[arg(long, env = "GPULOCK_INTEGRITY")]
    integrity: bool,
    /// The least severity that fails
    #[arg(long, value_enum, default_value = "error", env = "GPULOCK_FAIL_ON")]
    fail_on: FailOn,
    #[command(flatten)]
    images: ImageArgs,
}

/// Runs it.
///
/// # Errors
/// A subject, lock or manifest that cannot be read, a GPU or driver that is unknown.
pub fn run(args: &Args, globals: &Globals) -> Result<Answer, Failure> {
    let matrix = globals.matrix()?;
    let lock = lock(args, globals)?;
    let target = target(args, lock.as_ref(), &matrix)?;
    let manifest = input::manifest_if_there(&args.place)?;
    let flags: BTreeMap<String, String> = args.variables.iter().cloned().collect();
    let run = if args.command.is_empty() { None } else { Some(run::run(&args.command, &flags, Stdout::Commands)?) };
    let (subject, processes) = match &run {
        Some(run) => (PathBuf::from(run.shown()), None),
        None => running::choose(args.subject.as_deref(), &args.processes, &matrix)?,
    };
    let variables = match processes {
        _ if run.is_some() => environment::own().into_iter().chain(flags).collect(),
        // They are what the process was started with.
        Some(_) => flags,
        None => variables(args, manifest.as_ref()),
    };
    let ignored = ignored_variables(&variables).filter(|_| run.is_none() && processes.is_none());
    let mut checks = manifest.map(|manifest| manifest.checks).unwrap_or_default();
    // Levels of what `gpulock check` alone looks at are no exceptions that meet nothing.
    checks.retain(|code, _| check::is_of_environments(code));
    let question = Question {
        subject: &subject,
        lock: lock.as_ref(),
        target: target.as_ref(),
        variables,
        integrity: args.integrity,
        matrix: &matrix,
        checks: &checks,
        reader: Reader { globals, images: &args.images, platform: platform(target.as_ref()) },
    };
    let (judged, run) = match (run, processes, args.probe) {
        (Some(run), ..) => (watched::judge(&question, &run)?, Some(run)),
        // A process is no environment that a probe could run in, which it says.
        (None, _, Some(probe)) => probe::judge(probe, &question).map(|(judged, run)| (judged, Some(run)))?,
        (None, Some(processes), None) => (running::judge(&question, processes)?, None),
        (None, None, None) => (environment::judge(question)?, None),
    };
    globals.tell(judged.warnings.iter().chain(&ignored));
    let anchors = anchors(args, lock.is_some(), &subject);
    let report = Report { run: run.as_ref(), ..judged.report(&subject) };
    environment::print(&report, "gpulock verify", anchors, args.fail_on, globals)?;
    if let Some(run) = run.filter(|run| run.status != 0) {
        return Ok(if args.probe.is_some() { Answer::No } else { Answer::Command(run.status) });
    }
    if judged.findings.findings.iter().any(|finding| args.fail_on.fails(finding.severity)) {
        return Ok(Answer::No);
    }
    Ok(if judged.is_gpu_stack { Answer::Yes } else { Answer::Nothing })
}

/// The file of the project that stands for a finding about the environment: the lock, else the subject itself.
fn anchors(args: &Args, locked: bool, subject: &Path) -> Vec<String> {
    let file = if locked { input::lock_path(&args.place) } else { subject.to_owned() };
    vec![file.display().to_string()]
}

/// The lock to hold the environment against: the one that is named, else the one that is here, unless the flags ask a
/// question of their own.
fn lock(args: &Args, globals: &Globals) -> Result<Option<Lock>, Failure> {
    if args.place.lock.is_none() && (!args.gpus.is_empty() || args.target.as_deref() == Some(here::AUTO)) {
        return Ok(None);
    }
    let path = input::lock_path(&args.place);
    let lock = match &args.place.lock {
        Some(path) => Some(input::read_lock(path)?),
        None => input::lock_if_there(&path)?,
    };
    // What the environment is held against was not resolved; what is seen of it is so all the same.
    let edited = lock.as_ref().and_then(|lock| input::edited(lock, &path.display().to_string()));
    globals.tell(&edited.map(|edited| Diagnostic { severity: Severity::Warning, ..edited }));
    Ok(lock)
}

/// The machines: those of the flags, of this host, or of the lock's target.
fn target(args: &Args, lock: Option<&Lock>, matrix: &Matrix) -> Result<Option<Target>, Failure> {
    let mut target = match (lock, args.target.as_deref()) {
        (_, Some(here::AUTO)) => Some(this_machine(matrix)?),
        // A lock that is here or named is held against the environment, whatever machines the flags name.
        (Some(lock), name) => Some(of_lock(render::choose(lock, name)?)?),
        (None, Some(name)) => {
            let evidence = Evidence::observed("command line", format!("--target {name}, and no lock here"));
            let error = Diagnostic::error("lock-missing", "a target is one of a lock, and there is none", evidence);
            return Err(Failure::unanswerable(
                error.fix("run `gpulock resolve`, or name the machines: --gpu, --driver"),
            ));
        }
        _ => None,
    };
    if target.is_none() && (!args.gpus.is_empty() || args.driver.is_some() || args.glibc.is_some()) {
        target = Some(blank());
    }
    if let Some(target) = &mut target {
        if !args.gpus.is_empty() {
            target.gpus.clone_from(&args.gpus);
        }
        target.driver = args.driver.as_ref().map(oldest).or(target.driver.take());
        target.glibc = args.glibc.clone().or(target.glibc.take());
        target.forward_compat |= args.forward_compat;
    }
    Ok(target)
}

/// The oldest of the machines' drivers, which has to do: `>=570` is 570.
fn oldest(driver: &Constraint<Driver>) -> Constraint<Driver> {
    let least = driver.bounds().iter().find(|bound| bound.operator == ConstraintOperator::AtLeast);
    least.map_or_else(|| driver.clone(), |bound| Constraint::of(ConstraintOperator::Means, bound.version.clone()))
}

fn this_machine(matrix: &Matrix) -> Result<Target, Failure> {
    let host = here::host(matrix)?;
    if host.gpus.is_empty() && host.driver.is_none() {
        return Err(here::nothing());
    }
    let driver = host.driver.and_then(|fact| manifest::parse_driver(&fact.value.to_string()).ok());
    let gpus = host.gpus.into_iter().map(|fact| fact.value).collect();
    Ok(Target { name: "this machine".into(), gpus, driver, glibc: host.glibc.map(|fact| fact.value), ..blank() })
}

/// The job's variables: those of the manifest, and those of the flags, which win.
fn variables(args: &Args, manifest: Option<&Manifest>) -> BTreeMap<String, String> {
    let mut variables = manifest.map(|manifest| manifest.env.clone()).unwrap_or_default();
    variables.extend(args.variables.iter().cloned());
    variables
}

/// Says that this shell's own library path is not taken for the job's.
fn ignored_variables(variables: &BTreeMap<String, String>) -> Option<Diagnostic> {
    const NAMES: [&str; 2] = ["LD_LIBRARY_PATH", "LD_PRELOAD"];
    let set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let ignored: Vec<&str> = NAMES.into_iter().filter(|name| set(name) && !variables.contains_key(*name)).collect();
    let first = ignored.first()?;
    let message = format!("{} of this shell is not taken for the job's", ignored.join(" and "));
    let evidence = Evidence::observed("environment", format!("{first} is set"));
    let fix = format!("say it if the job has it: --set-env {first}=\"${first}\"");
    Some(Diagnostic::note("environment-ignored", message, evidence).fix(fix))
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".into()),
    }
}
