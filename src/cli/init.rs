//! `gpulock init`: the first manifest, from what is here.

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;

use super::input::{Flags, MANIFEST};
use super::{Answer, Globals, here, output, write};
use crate::diag::{Diagnostic, Evidence, Failure, SourceText};
use crate::file;
use crate::inventory::host::Host;
use crate::manifest::init::{self, Machines, Source, SystemPythons};
use crate::manifest::{self, PythonAsk};
use crate::matrix::Matrix;

/// Flags of `gpulock init`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Files to read [default: pyproject.toml, requirements*.txt and Dockerfile of this folder]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Take GPUs, driver and platform from this machine
    #[arg(long, env = "GPULOCK_FROM_HOST")]
    from_host: bool,
    /// Write over a gpulock.toml that is here
    #[arg(long, env = "GPULOCK_FORCE")]
    force: bool,
    // Last: its heading holds for what follows.
    #[command(flatten)]
    flags: Flags,
}

/// More than any file that people keep such things in, in bytes.
const LARGEST: usize = 256 << 10;

/// Runs it.
///
/// # Errors
/// A manifest that is here already, files that cannot be read.
pub fn run(args: &Args, globals: &Globals) -> Result<Answer, Failure> {
    let path = Path::new(MANIFEST);
    if path.exists() && !args.force {
        let evidence = Evidence::observed(MANIFEST, "is here");
        let error = Diagnostic::error("manifest-exists", format!("{MANIFEST} is here already"), evidence);
        return Err(Failure::no(error.fix("edit it, or write over it with --force")));
    }
    if let Some(place) = manifest_of_pyproject()?.filter(|_| !args.force) {
        let message = "pyproject.toml has [tool.gpulock] already, and gpulock.toml beside it would win";
        let error = Diagnostic::error("manifest-exists", message, place);
        return Err(Failure::no(
            error.fix("edit [tool.gpulock], or remove it first; --force writes gpulock.toml all the same"),
        ));
    }
    let mut texts: Vec<(String, String)> = Vec::new();
    let files = if args.files.is_empty() { found()? } else { args.files.clone() };
    for file in files {
        read_with_includes(&file, &mut texts)?;
    }
    let sources: Vec<Source<'_>> = texts.iter().map(|(name, text)| source(name, text)).collect();
    let matrix = globals.matrix()?;
    let mut machines = Machines::default();
    let mut notes = Vec::new();
    if args.from_host {
        notes.extend(from_host(&mut machines, &here::host(&matrix)?));
    }
    let flags = &args.flags;
    if !flags.gpus.is_empty() {
        machines.gpus.clone_from(&flags.gpus);
    }
    machines.driver = flags.driver.clone().or(machines.driver);
    machines.platform = flags.platform.or(machines.platform);
    machines.glibc = flags.glibc.clone().or(machines.glibc);
    let mut proposal = init::propose(&sources, &machines, &system_pythons(&matrix)?)?;
    let stack = &mut proposal.manifest.stack;
    stack.python = flags.python.clone().or(stack.python.take());
    stack.torch = flags.torch.clone().or(stack.torch.take());
    stack.torchvision = flags.torchvision.clone().or(stack.torchvision.take());
    stack.torchaudio = flags.torchaudio.clone().or(stack.torchaudio.take());
    stack.cuda = flags.cuda.clone().or(stack.cuda.take());
    stack.cudnn = flags.cudnn.clone().or(stack.cudnn.take());
    stack.variant = flags.variant.clone().or(stack.variant.take());
    for ask in &flags.packages {
        // A table holds a name once; what is said last is meant.
        proposal.manifest.packages.retain(|other| other.package != ask.package);
        proposal.manifest.packages.push(ask.clone());
    }
    proposal.manifest.targets.iter_mut().for_each(|target| target.forward_compat |= flags.forward_compat);
    let stack = &mut proposal.manifest.stack;
    if matches!((&stack.python, machines.python), (None, Some(_))) {
        stack.python = machines.python.map(PythonAsk::Exact);
    }
    globals.tell_briefly(notes.iter().chain(&proposal.notes));
    write::atomically(path, &manifest::render(&proposal.manifest))?;
    let mut files = vec![MANIFEST.to_owned()];
    let attributes = Path::new(".gitattributes");
    let old = file::text_if_there(attributes)?.unwrap_or_default();
    if let Some(new) = init::gitattributes(&old) {
        write::atomically(attributes, &new)?;
        files.push(attributes.display().to_string());
    }
    let ready = proposal.manifest.targets.iter().all(|target| !target.gpus.is_empty());
    let next = match ready && !proposal.manifest.targets.is_empty() {
        true => "next: gpulock resolve\n",
        false => "next: name the GPUs and the driver in gpulock.toml, then gpulock resolve\n",
    };
    output::written(globals, &files, next)?;
    Ok(Answer::Yes)
}

/// The manifest in the pyproject.toml of this folder, where there is one.
fn manifest_of_pyproject() -> Result<Option<Evidence>, Failure> {
    const NAME: &str = "pyproject.toml";
    let text = if Path::new(NAME).is_file() { file::text_if_there(Path::new(NAME))? } else { None };
    let Some(text) = text else { return Ok(None) };
    // One that is wrong is said by what reads it.
    let has = !matches!(manifest::parse_pyproject(&text, NAME), Ok(None));
    let at = text.find("[tool.gpulock").filter(|_| has);
    Ok(at.map(|at| SourceText::new(NAME, &text).span(Some(at..at + "[tool.gpulock".len()))))
}

/// Refuses a file of conda: its packages are not those of an index of Python.
fn not_conda(name: &str, text: &str) -> Result<(), Failure> {
    let is_yaml = [".yml", ".yaml"].iter().any(|extension| name.ends_with(extension));
    let Some(line) = text.lines().find(|line| line.starts_with("dependencies:")).filter(|_| is_yaml) else {
        return Ok(());
    };
    let at = text.find(line).map(|at| at..at + line.trim_end().len());
    let message = format!("{name} is an environment of conda, which `gpulock init` does not read");
    let error = Diagnostic::error("cannot-read", message, SourceText::new(name, text).span(at));
    let fix = "say what it asks for: `gpulock init --python 3.11 --torch 2.8 --gpu \"RTX 5090\"`, and further packages with --package";
    Err(Failure::unanswerable(error.fix(fix)))
}

/// The Python of each operating system that the matrix knows.
fn system_pythons(matrix: &Matrix) -> Result<SystemPythons, Failure> {
    let mut pythons = SystemPythons::new();
    for row in &matrix.os()?.systems {
        let Ok(python) = row.python.parse() else { continue };
        pythons.extend(row.names.iter().map(|name| (name.clone(), python)));
    }
    Ok(pythons)
}

/// The files of this folder that say something.
fn found() -> Result<Vec<PathBuf>, Failure> {
    let mut files: Vec<PathBuf> =
        ["pyproject.toml", "Dockerfile"].map(PathBuf::from).into_iter().filter(|p| p.is_file()).collect();
    let failed = |error: std::io::Error| {
        let evidence = Evidence::observed("this folder", error.to_string());
        Failure::unanswerable(Diagnostic::error("cannot-read", "this folder cannot be read", evidence))
    };
    let mut requirements = Vec::new();
    for entry in std::fs::read_dir(".").map_err(failed)? {
        let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
        if name.starts_with("requirements") && (name.ends_with(".txt") || name.ends_with(".in")) {
            requirements.push(PathBuf::from(name));
        }
    }
    requirements.sort();
    files.extend(requirements);
    Ok(files)
}

/// Reads a file and, for requirements files, those that it includes; each once.
fn read_with_includes(file: &Path, texts: &mut Vec<(String, String)>) -> Result<(), Failure> {
    let name = file.display().to_string();
    if texts.iter().any(|(known, _)| *known == name) {
        return Ok(());
    }
    let text = file::text(file)?;
    if text.len() > LARGEST {
        let evidence = Evidence::observed(name.clone(), format!("{} KiB", text.len() >> 10));
        let error = Diagnostic::error("cannot-read", format!("{name} is too large to be what is asked for"), evidence);
        return Err(Failure::unanswerable(error.fix("name the file that lists what the project uses")));
    }
    not_conda(&name, &text)?;
    let is_requirements = matches!(source(&name, &text), Source::Requirements(_));
    texts.push((name, text.clone()));
    if is_requirements {
        let folder = file.parent().unwrap_or(Path::new(""));
        for include in init::includes(&text) {
            read_with_includes(&folder.join(include), texts)?;
        }
    }
    Ok(())
}

/// What kind of file a name stands for.
fn source<'a>(name: &'a str, text: &'a str) -> Source<'a> {
    let file = Path::new(name).file_name().map_or_else(String::new, |file| file.to_string_lossy().to_lowercase());
    if file.ends_with(".toml") {
        Source::Pyproject(SourceText::new(name, text))
    } else if file.contains("dockerfile") || file.contains("containerfile") {
        Source::Dockerfile(SourceText::new(name, text))
    } else {
        Source::Requirements(SourceText::new(name, text))
    }
}

/// What this machine says, as machines and as notes.
fn from_host(machines: &mut Machines, host: &Host) -> Vec<Diagnostic> {
    machines.driver = host.driver.as_ref().and_then(|fact| fact.value.to_string().parse().ok());
    machines.gpus.extend(host.gpus.iter().map(|fact| fact.value.clone()));
    machines.platform = host.platform.as_ref().map(|fact| fact.value);
    machines.glibc = host.glibc.as_ref().map(|fact| fact.value.clone());
    machines.python = host.python.as_ref().map(|fact| fact.value);
    let mut notes = here::notes(host);
    if host.gpus.is_empty() {
        let evidence = Evidence::observed("/proc/driver/nvidia, /sys/bus/pci/devices, nvidia-smi", "no GPU");
        notes.push(
            Diagnostic::warning("from-host", "this machine shows no NVIDIA GPU", evidence)
                .fix("name the GPUs in gpulock.toml"),
        );
    }
    notes
}
