//! What is asked: the manifest that is here, or one made of flags.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::diag::{Diagnostic, Evidence, Failure};
use crate::file;
use crate::lock::{ANEW, Lock, Seal};
use crate::manifest::{self, Ask, Manifest, Platform, PythonAsk, Target};
use crate::render;
use crate::version::{Constraint, Cuda, Cudnn, Driver, Glibc, Specifiers};

/// The manifest's name.
pub const MANIFEST: &str = "gpulock.toml";
/// The lock's name.
pub const LOCK: &str = "gpulock.lock";

/// Where the manifest and the lock are.
#[derive(Debug, Args)]
pub struct Place {
    /// Manifest to read [default: gpulock.toml or pyproject.toml here or in a folder above]
    #[arg(long, value_name = "FILE", env = "GPULOCK_MANIFEST")]
    pub manifest: Option<PathBuf>,
    /// Lock to write or read [default: gpulock.lock beside the manifest]
    #[arg(long, value_name = "FILE", env = "GPULOCK_LOCK")]
    pub lock: Option<PathBuf>,
}

impl Place {
    /// As flags of a command line, with a space before each.
    pub fn flags(&self) -> String {
        let flag = |name: &str, path: &Option<PathBuf>| {
            path.as_ref().map(|path| format!(" {name} {}", render::word(&path.display().to_string())))
        };
        [flag("--manifest", &self.manifest), flag("--lock", &self.lock)].into_iter().flatten().collect()
    }
}

/// A one-off question, without a manifest.
#[derive(Debug, Clone, Args, Default)]
#[command(next_help_heading = "Stack and machines, without a manifest")]
pub struct Flags {
    /// GPU of the machines: "RTX 5090", "H100", "sm_90"; may be repeated
    #[arg(long = "gpu", value_name = "GPU", env = "GPULOCK_GPU", value_delimiter = ',', value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub gpus: Vec<String>,
    /// Oldest driver of the machines (570.124.06), a branch (570), or bounds where you control it (">=570")
    #[arg(long, value_parser = manifest::parse_driver, env = "GPULOCK_DRIVER")]
    pub driver: Option<Constraint<Driver>>,
    /// torch versions that will do: ">=2.7,<2.9", "2.8"
    #[arg(long, value_parser = manifest::parse_specifiers, env = "GPULOCK_TORCH")]
    pub torch: Option<Specifiers>,
    /// torchvision versions that will do ("*" for any)
    #[arg(long, value_parser = manifest::parse_specifiers, env = "GPULOCK_TORCHVISION")]
    pub torchvision: Option<Specifiers>,
    /// torchaudio versions that will do ("*" for any)
    #[arg(long, value_parser = manifest::parse_specifiers, env = "GPULOCK_TORCHAUDIO")]
    pub torchaudio: Option<Specifiers>,
    /// Python: "3.11", ">=3.10,<3.13"
    #[arg(long, value_parser = manifest::parse_python, env = "GPULOCK_PYTHON")]
    pub python: Option<PythonAsk>,
    /// CUDA: the family "12", "12.8", ">=12.4,<13"
    #[arg(long, value_parser = manifest::parse_cuda, env = "GPULOCK_CUDA")]
    pub cuda: Option<Constraint<Cuda>>,
    /// cuDNN: "9.10", ">=9.1"
    #[arg(long, value_parser = manifest::parse_cudnn, env = "GPULOCK_CUDNN")]
    pub cudnn: Option<Constraint<Cudnn>>,
    /// Wheel label of the torch build: "cu128"
    #[arg(long, value_parser = manifest::parse_variant, env = "GPULOCK_VARIANT")]
    pub variant: Option<String>,
    /// linux-x86_64 or linux-aarch64
    #[arg(long, value_parser = manifest::parse_platform, env = "GPULOCK_PLATFORM")]
    pub platform: Option<Platform>,
    /// Oldest glibc of the machines
    #[arg(long, value_parser = manifest::parse_glibc, env = "GPULOCK_GLIBC")]
    pub glibc: Option<Glibc>,
    /// The cuda-compat package may be used (data-centre GPUs)
    #[arg(long, env = "GPULOCK_FORWARD_COMPAT")]
    pub forward_compat: bool,
    /// A further package: "numpy<3"; may be repeated
    #[arg(long = "package", value_name = "REQUIREMENT", value_parser = manifest::parse_package, env = "GPULOCK_PACKAGE", value_delimiter = '\n')]
    pub packages: Vec<Ask>,
}

impl Flags {
    /// Names of the flags that are set, except `--gpu`.
    fn others(&self) -> Vec<&'static str> {
        let set = [
            ("--driver", self.driver.is_some()),
            ("--torch", self.torch.is_some()),
            ("--torchvision", self.torchvision.is_some()),
            ("--torchaudio", self.torchaudio.is_some()),
            ("--python", self.python.is_some()),
            ("--cuda", self.cuda.is_some()),
            ("--cudnn", self.cudnn.is_some()),
            ("--variant", self.variant.is_some()),
            ("--platform", self.platform.is_some()),
            ("--glibc", self.glibc.is_some()),
            ("--forward-compat", self.forward_compat),
            ("--package", !self.packages.is_empty()),
        ];
        set.into_iter().filter(|(_, set)| *set).map(|(name, _)| name).collect()
    }

    /// The manifest that these flags mean.
    fn manifest(&self) -> Manifest {
        let mut manifest = Manifest::default();
        manifest.stack.python = self.python.clone();
        manifest.stack.torch = self.torch.clone();
        manifest.stack.torchvision = self.torchvision.clone();
        manifest.stack.torchaudio = self.torchaudio.clone();
        manifest.stack.cuda = self.cuda.clone();
        manifest.stack.cudnn = self.cudnn.clone();
        manifest.stack.variant = self.variant.clone();
        manifest.packages = self.packages.clone();
        manifest.targets.push(Target {
            name: "default".into(),
            platform: self.platform.unwrap_or_default(),
            glibc: self.glibc.clone(),
            gpus: self.gpus.clone(),
            driver: self.driver.clone(),
            forward_compat: self.forward_compat,
        });
        manifest
    }
}

/// A manifest and where its lock belongs.
pub struct Input {
    /// What is asked.
    pub manifest: Manifest,
    /// Where the lock is or goes.
    pub lock: PathBuf,
    /// The manifest is made of flags: a lock that is there answers another question.
    pub one_off: bool,
}

/// Reads the manifest, or takes the flags for one.
///
/// # Errors
/// No manifest, one that cannot be read or is wrong, flags that do not go together.
pub fn read(place: &Place, flags: &Flags) -> Result<Input, Failure> {
    let others = flags.others();
    if flags.gpus.is_empty() && !others.is_empty() {
        let message = format!("{} without --gpu", others.join(", "));
        let evidence = Evidence::observed("command line", message.clone());
        let error = Diagnostic::error("usage", format!("{message}: which machines is this for?"), evidence);
        return Err(Failure::unanswerable(
            error.fix("add --gpu \"RTX 5090\" for a one-off answer, or write these into gpulock.toml (`gpulock init`)"),
        ));
    }
    if !flags.gpus.is_empty() {
        if let Some(manifest) = &place.manifest {
            return Err(both("--manifest", &manifest.display().to_string()));
        }
        if place.lock.is_none() && Path::new(MANIFEST).exists() {
            return Err(both("a manifest", MANIFEST));
        }
        let lock = place.lock.clone().unwrap_or_else(|| LOCK.into());
        return Ok(Input { manifest: flags.manifest(), lock, one_off: true });
    }
    let (path, manifest) = match &place.manifest {
        Some(path) => (path.clone(), read_file(path)?.ok_or_else(|| no_table(path))?),
        None => find()?,
    };
    let beside = path.parent().map_or_else(|| PathBuf::from(LOCK), |folder| folder.join(LOCK));
    Ok(Input { manifest, lock: place.lock.clone().unwrap_or(beside), one_off: false })
}

/// The name of a lock's file, as generated files call it.
pub fn lock_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Where the lock is, for commands that need nothing else.
pub fn lock_path(place: &Place) -> PathBuf {
    if let Some(lock) = &place.lock {
        return lock.clone();
    }
    if let Some(folder) = place.manifest.as_ref().and_then(|path| path.parent()) {
        return folder.join(LOCK);
    }
    folders().into_iter().map(|folder| folder.join(LOCK)).find(|path| path.exists()).unwrap_or_else(|| LOCK.into())
}

/// The lock at a path, if there is a file.
///
/// # Errors
/// When it cannot be read.
pub fn lock_if_there(path: &Path) -> Result<Option<Lock>, Failure> {
    let text = file::text_if_there(path).map_err(|mut failure| {
        for problem in failure.diagnostics.iter_mut().filter(|problem| problem.code == file::NOT_TEXT) {
            problem.fix = Some(ANEW.into());
        }
        failure
    })?;
    text.map(|text| Lock::parse(&text, &path.display().to_string())).transpose()
}

/// The lock at a path, for commands that need one.
///
/// # Errors
/// When there is none, or it cannot be read.
pub fn read_lock(path: &Path) -> Result<Lock, Failure> {
    match lock_if_there(path)? {
        Some(lock) => Ok(lock),
        None => {
            let evidence = Evidence::observed(path.display().to_string(), "no such file");
            Err(Failure::unanswerable(
                Diagnostic::error("lock-missing", "there is no lock here", evidence).fix("run `gpulock resolve`"),
            ))
        }
    }
}

/// The same, for commands that write files from it: what such a file says has to be what was resolved.
///
/// # Errors
/// As [`read_lock`], and a lock that was edited since.
pub fn read_whole_lock(path: &Path) -> Result<Lock, Failure> {
    let lock = read_lock(path)?;
    match edited(&lock, &path.display().to_string()) {
        Some(edited) => Err(Failure::no(edited)),
        None => Ok(lock),
    }
}

/// There is a manifest, and no lock.
pub fn missing(path: &Path) -> Diagnostic {
    let evidence = Evidence::observed(path.display().to_string(), "no such file");
    Diagnostic::error("lock-missing", "there is no lock", evidence).fix("run `gpulock resolve`")
}

/// There is a lock, and nothing that says what it was made for: nobody can tell whether it still is what is asked.
pub fn alone(path: &Path) -> Diagnostic {
    let name = path.display().to_string();
    let message = format!("{name} is here without the manifest that it was made for: not known whether it still fits");
    let seen = Evidence::observed(&*name, format!("no {MANIFEST}, no pyproject.toml with [tool.gpulock]"));
    let problem = Diagnostic::warning("lock-stale", message, seen).about(&name);
    problem.fix("restore the manifest from version control, name it (`--manifest FILE`), or write one: `gpulock init`")
}

/// The lock was made for another manifest than the one that is here: as far as the lock tells, in what.
pub fn stale(path: &Path, lock: &Lock, manifest: &Manifest) -> Diagnostic {
    let name = path.display().to_string();
    let evidence = Evidence::observed(&*name, "was made for another manifest (hash of the inputs)");
    let message = format!("{name} is not that of this manifest");
    let differences = lock.differences(manifest);
    // Where somebody edited: the line of the manifest, where that is known.
    let mut problem = match differences.iter().find_map(|(path, _)| manifest.place(path)) {
        Some(place) => Diagnostic::error("lock-stale", message, place.clone()).and(evidence),
        None => Diagnostic::error("lock-stale", message, evidence),
    };
    if differences.is_empty() {
        let fact = "in what a lock does not hold, such as bounds that its versions still meet";
        problem = problem.and(Evidence::observed("the manifest differs", fact));
    }
    for (path, fact) in differences {
        let place = match manifest.place(&path) {
            Some(Evidence::Span { file, line, .. }) => format!("{file}:{line}"),
            _ => "the manifest differs".into(),
        };
        problem = problem.and(Evidence::observed(place, fact));
    }
    problem.fix("run `gpulock resolve` and commit the lock")
}

/// What a lock says of itself against what it holds; `None` where the two agree. `name` is what messages call it.
pub fn seal(lock: &Lock, name: &str) -> Option<Diagnostic> {
    let seen = |fact: &str| Evidence::observed(name, fact);
    match lock.seal {
        Seal::Whole | Seal::Unknown => None,
        Seal::Broken => {
            let message = format!("{name} was edited since `gpulock resolve` wrote it, or merged line by line");
            let seen = seen("`content` is another hash than that of what the lock holds");
            Some(Diagnostic::error(EDITED, message, seen).about(name).fix(
                "restore it from version control; after a merge, run `gpulock resolve`: it keeps the versions that fit and \
                 writes all else anew",
            ))
        }
        Seal::Absent => {
            let message = format!("{name} has no hash of what it holds: an edit by hand would not be seen");
            let seen = seen("no `content`; an earlier release wrote it");
            Some(
                Diagnostic::warning(EDITED, message, seen).about(name).fix("run `gpulock resolve` once, which adds it"),
            )
        }
    }
}

/// What is said of a lock that is not as it was written; `None` for one that is, or that does not tell.
pub fn edited(lock: &Lock, name: &str) -> Option<Diagnostic> {
    Some(lock).filter(|lock| lock.seal == Seal::Broken).and_then(|lock| seal(lock, name))
}

/// The code of a lock that somebody edited.
pub const EDITED: &str = "lock-edited";

/// This folder and those above it, as relative paths: ``, `..`, `../..`.
fn folders() -> Vec<PathBuf> {
    let depth = std::env::current_dir().map_or(1, |here| here.ancestors().count());
    (0..depth).map(|steps| std::iter::repeat_n("..", steps).collect()).collect()
}

/// The manifest that is named or found here, for commands that do without one.
///
/// # Errors
/// One that cannot be read.
pub fn manifest_if_there(place: &Place) -> Result<Option<Manifest>, Failure> {
    Ok(manifest_with_path(place)?.map(|(_, manifest)| manifest))
}

/// The same, with where it is.
///
/// # Errors
/// As [`manifest_if_there`].
pub fn manifest_with_path(place: &Place) -> Result<Option<(PathBuf, Manifest)>, Failure> {
    match &place.manifest {
        Some(path) => Ok(Some((path.clone(), read_file(path)?.ok_or_else(|| no_table(path))?))),
        None => search(),
    }
}

/// The manifest here or in a folder above.
fn search() -> Result<Option<(PathBuf, Manifest)>, Failure> {
    for folder in folders() {
        for name in [MANIFEST, "pyproject.toml"] {
            let path = folder.join(name);
            // A pipe or device of that name is looked at too, and refused.
            if path.exists()
                && !path.is_dir()
                && let Some(manifest) = read_file(&path)?
            {
                return Ok(Some((path, manifest)));
            }
        }
    }
    Ok(None)
}

fn find() -> Result<(PathBuf, Manifest), Failure> {
    if let Some(found) = search()? {
        return Ok(found);
    }
    let evidence =
        Evidence::observed("this folder and those above", "no gpulock.toml, no pyproject.toml with [tool.gpulock]");
    Err(Failure::unanswerable(Diagnostic::error("manifest-missing", "there is no manifest here", evidence).fix(
        "`gpulock init` writes one; for a one-off answer: gpulock resolve --gpu \"RTX 5090\" --driver 570.124.06",
    )))
}

/// Reads one file; `None` for a `pyproject.toml` without `[tool.gpulock]`.
fn read_file(path: &Path) -> Result<Option<Manifest>, Failure> {
    let name = path.display().to_string();
    let text = file::text(path)?;
    if path.file_name().is_some_and(|file| file == "pyproject.toml") {
        manifest::parse_pyproject(&text, &name)
    } else {
        manifest::parse(&text, &name).map(Some)
    }
}

fn no_table(path: &Path) -> Failure {
    let evidence = Evidence::observed(path.display().to_string(), "no table [tool.gpulock]");
    let message = format!("{} has no [tool.gpulock]", path.display());
    Failure::unanswerable(
        Diagnostic::error("manifest-missing", message, evidence).fix("`gpulock init` writes gpulock.toml"),
    )
}

fn both(what: &str, name: &str) -> Failure {
    let evidence = Evidence::observed(name, "is here");
    let message = format!("--gpu asks a one-off question, but there is {what} too ({name})");
    Failure::unanswerable(
        Diagnostic::error("usage", message, evidence)
            .fix("drop --gpu to resolve the manifest, or name another file for the lock: --lock FILE"),
    )
}
