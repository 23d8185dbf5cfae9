//! A first manifest from what a project has already: texts in, [`Proposal`] out, with a note for each line that was
//! understood and for each that was not. Reads no file itself.

mod dockerfile;
mod pyproject;
mod requirements;

use crate::diag::{Diagnostic, Evidence, Failure, SourceText};
use crate::python::{Extra, MarkerEnv, PackageName, Platform, PythonVersion, Requirement, index_address};
use crate::version::pep440::{self, VersionSpecifier, local_label};
use crate::version::{Constraint, Driver, Glibc, Specifiers};

use super::model::{Ask, Index, Manifest, PythonAsk, Stack, Target};
use super::value::{parse_cuda, parse_cudnn, parse_nccl, parse_variant};
use super::write::specifiers as written;

pub use requirements::includes;

/// A text that says what the project uses.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// `pyproject.toml`, of any tool.
    Pyproject(SourceText<'a>),
    /// A requirements file; those that it includes are sources of their own, see [`includes`].
    Requirements(SourceText<'a>),
    /// A Dockerfile.
    Dockerfile(SourceText<'a>),
}

/// What is known of the machines: from flags, or read from this one.
#[derive(Debug, Clone, Default)]
pub struct Machines {
    /// Product names or compute capabilities; empty when unknown.
    pub gpus: Vec<String>,
    /// The oldest driver.
    pub driver: Option<Constraint<Driver>>,
    /// Platform.
    pub platform: Option<Platform>,
    /// The oldest glibc.
    pub glibc: Option<Glibc>,
    /// Python, for a project that does not say.
    pub python: Option<PythonVersion>,
}

/// The Python that an operating system calls `python3`, by the names of that system in images: `ubuntu22.04`,
/// `ubuntu:22.04`.
pub type SystemPythons = std::collections::BTreeMap<String, PythonVersion>;

/// A manifest, and what it was made from.
#[derive(Debug, Clone, Default)]
pub struct Proposal {
    /// The manifest; its target has no GPUs where nothing said which.
    pub manifest: Manifest,
    /// A note for what was understood, a warning for what was not, in the order of the sources.
    pub notes: Vec<Diagnostic>,
}

/// Makes a manifest from `sources` and `machines`; `pythons` is what is known of the systems in images.
///
/// # Errors
/// A `pyproject.toml` that is not TOML.
pub fn propose(sources: &[Source<'_>], machines: &Machines, pythons: &SystemPythons) -> Result<Proposal, Failure> {
    let mut found = Findings { platform: machines.platform, ..Findings::default() };
    for source in sources {
        match source {
            Source::Pyproject(source) => pyproject::read(*source, &mut found)?,
            Source::Requirements(source) => requirements::read(*source, &mut found),
            Source::Dockerfile(source) => dockerfile::read(*source, pythons, &mut found),
        }
    }
    Ok(found.propose(machines))
}

/// The line of `.gitattributes` for the lock: LF everywhere, folded in reviews.
const ATTRIBUTES: &str = "gpulock.lock text eol=lf linguist-generated";

/// `.gitattributes` with the line for the lock; `None` when it has one.
pub fn gitattributes(old: &str) -> Option<String> {
    if old.lines().any(|line| line.split_whitespace().next() == Some("gpulock.lock")) {
        return None;
    }
    let line_end = if old.contains("\r\n") { "\r\n" } else { "\n" };
    let gap = if old.is_empty() || old.ends_with('\n') { "" } else { line_end };
    Some(format!("{old}{gap}{ATTRIBUTES}{line_end}"))
}

/// What the sources say so far.
#[derive(Debug, Default)]
struct Findings {
    stack: Stack,
    packages: Vec<Ask>,
    indexes: Vec<Index>,
    image: std::collections::BTreeMap<String, String>,
    env: std::collections::BTreeMap<String, String>,
    gpus: Vec<String>,
    platform: Option<Platform>,
    /// Where the CUDA is from, if it is that of a base image.
    cuda_of_base: Option<Evidence>,
    notes: Vec<Diagnostic>,
}

impl Findings {
    fn understood(&mut self, place: Evidence, what: impl Into<String>) {
        self.notes.push(Diagnostic::note("taken-over", what, place));
    }

    fn not_understood(&mut self, place: Evidence, what: impl Into<String>, fix: impl Into<String>) {
        self.notes.push(Diagnostic::warning("not-taken-over", what, place).fix(fix));
    }

    /// One requirement, as pip and PEP 621 write it.
    fn requirement(&mut self, text: &str, place: Evidence) {
        let Ok(requirement) = text.parse::<Requirement>() else {
            let fix = "if it stands on an index, add it to [packages] as `name = \"version\"`";
            return self.not_understood(place, format!("`{text}` names no version on an index"), fix);
        };
        let python = PythonVersion { major: 3, minor: 11, free_threaded: false };
        let env = MarkerEnv::new(python, self.platform.unwrap_or_default());
        if !requirement.applies(&env, &[]) {
            return self.understood(place, format!("`{text}` is not for this platform: left out"));
        }
        self.ask(requirement.package, requirement.extras, requirement.specifiers, place);
    }

    /// One package with versions.
    fn ask(&mut self, package: PackageName, extras: Vec<Extra>, specifiers: Specifiers, place: Evidence) {
        let (specifiers, label) = without_label(&specifiers);
        let name = package.as_str().to_owned();
        let shown = written(&specifiers);
        let slot = match name.as_str() {
            "torch" => Some(&mut self.stack.torch),
            "torchvision" => Some(&mut self.stack.torchvision),
            "torchaudio" => Some(&mut self.stack.torchaudio),
            "triton" => Some(&mut self.stack.triton),
            _ => None,
        };
        if let Some(slot) = slot {
            let both: Specifiers = slot.iter().flat_map(|old| old.iter()).chain(specifiers.iter()).cloned().collect();
            if pep440::to_set(&both).is_empty() {
                let message = format!("`{name}` is asked for as {shown} here, and otherwise before: the first counts");
                return self.not_understood(place, message, "decide for one in [stack]");
            }
            *slot = Some(both);
            self.understood(place.clone(), format!("[stack] {name} = \"{shown}\""));
            return label.into_iter().for_each(|label| self.label(&label, &place));
        }
        if name.starts_with("nvidia-") || name == "pytorch-triton" || name == "cuda-toolkit" {
            return self.nvidia(&name, &specifiers, place);
        }
        if let Some(old) = self.packages.iter_mut().find(|ask| ask.package == package) {
            let both: Specifiers = old.specifiers.iter().chain(specifiers.iter()).cloned().collect();
            if pep440::to_set(&both).is_empty() {
                let message = format!("`{name}` is asked for as {shown} here, and otherwise before: the first counts");
                return self.not_understood(place, message, "decide for one in [packages]");
            }
            old.specifiers = both;
            old.extras.extend(extras);
            old.extras.sort();
            old.extras.dedup();
        } else {
            self.packages.push(Ask { package, extras, specifiers });
        }
        self.understood(place, format!("[packages] {name} = \"{shown}\""));
    }

    /// A library of NVIDIA that torch brings along: cuDNN and NCCL can be asked for, the rest follows from torch.
    fn nvidia(&mut self, name: &str, specifiers: &Specifiers, place: Evidence) {
        let shown = written(specifiers);
        if name.starts_with("nvidia-cudnn-cu")
            && self.stack.cudnn.is_none()
            && let Ok(cudnn) = parse_cudnn(&shown)
        {
            self.stack.cudnn = Some(cudnn);
            return self.understood(place, format!("[stack] cudnn = \"{shown}\""));
        }
        if name.starts_with("nvidia-nccl-cu")
            && self.stack.nccl.is_none()
            && let Ok(nccl) = parse_nccl(&shown)
        {
            self.stack.nccl = Some(nccl);
            return self.understood(place, format!("[stack] nccl = \"{shown}\""));
        }
        self.understood(place, format!("`{name}` comes with torch: left out"));
    }

    /// The label of a build, in a version or at the end of an index's address.
    fn label(&mut self, label: &str, place: &Evidence) {
        match (parse_variant(label), &self.stack.variant) {
            (Ok(variant), None) => {
                self.understood(place.clone(), format!("[stack] variant = \"{variant}\""));
                self.stack.variant = Some(variant);
            }
            (Ok(variant), Some(first)) if *first != variant => {
                let message = format!("variant {variant} here, {first} before: the first counts");
                self.not_understood(place.clone(), message, "decide for one in [stack], or leave it to gpulock");
            }
            (Ok(_), Some(_)) => {}
            (Err(_), _) => {
                let message = format!("`{label}` is no CUDA build: the lock will have one");
                self.not_understood(place.clone(), message, "none needed, if the machines have NVIDIA GPUs");
            }
        }
    }

    /// An index by its address; `packages` that are said to come from it.
    fn index(&mut self, name: Option<&str>, url: &str, packages: &[PackageName], place: Evidence) {
        let url = super::without_credentials(url);
        let last = url.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
        if parse_variant(&last).is_ok() || last == "cpu" || last.starts_with("rocm") {
            return self.label(&last, &place);
        }
        let address = index_address(&url);
        match (name, address) {
            (Some(_), Err(why)) if !packages.is_empty() => {
                let fix = "add an [[index]] with an address that other machines can ask";
                self.not_understood(place, format!("the index {url} is not taken over: {why}"), fix);
            }
            (Some(name), Ok(url)) if !packages.is_empty() => {
                let listed: Vec<&str> = packages.iter().map(PackageName::as_str).collect();
                self.understood(place, format!("[[index]] {name}, for {}", listed.join(", ")));
                self.indexes.push(Index { name: name.into(), url, packages: packages.to_vec() });
            }
            _ => {
                let fix = "if some packages come only from there, add an [[index]] that names them";
                self.not_understood(place, format!("the index {url} is not taken over"), fix);
            }
        }
    }

    fn python(&mut self, ask: PythonAsk, place: Evidence) {
        if let Some(first) = self.stack.python.as_ref().filter(|first| **first != ask) {
            let message = format!("Python {ask} here, {first} before: the first counts");
            return self.not_understood(place, message, "decide for one in [stack]");
        }
        self.understood(place, format!("[stack] python = \"{ask}\""));
        self.stack.python = Some(ask);
    }

    /// Wheels of one CUDA on a base image of another family bring what they need: the label counts.
    fn one_cuda(&mut self) {
        let Some(variant) = &self.stack.variant else { return };
        let labelled = parse_cuda(variant).ok();
        let labelled = labelled.as_ref().and_then(|one| one.exact());
        let contradicted = self.stack.cuda.as_ref().zip(labelled).is_some_and(|(cuda, label)| !cuda.allows(label));
        if let Some(place) = self.cuda_of_base.take().filter(|_| contradicted) {
            let message = format!("`cuda` of the image is left out again: the wheels are {variant}");
            self.stack.cuda = None;
            self.not_understood(
                place,
                message,
                "what is compiled there for torch needs its CUDA: name an image of that",
            );
        }
    }

    fn propose(mut self, machines: &Machines) -> Proposal {
        self.one_cuda();
        let python = machines.python.map(PythonAsk::Exact);
        let stack = Stack { python: self.stack.python.or(python), ..self.stack };
        let target = Target {
            name: "default".into(),
            platform: self.platform.unwrap_or_default(),
            glibc: machines.glibc.clone(),
            gpus: if machines.gpus.is_empty() { self.gpus } else { machines.gpus.clone() },
            driver: machines.driver.clone(),
            forward_compat: false,
        };
        let manifest = Manifest {
            stack,
            packages: self.packages,
            targets: vec![target],
            indexes: self.indexes,
            image: self.image,
            env: self.env,
            ..Manifest::default()
        };
        Proposal { manifest, notes: self.notes }
    }
}

/// Specifiers without the local label of an exact version, and that label.
fn without_label(specifiers: &Specifiers) -> (Specifiers, Option<String>) {
    let mut label = None;
    let plain = specifiers
        .iter()
        .map(|one| match local_label(one.version()) {
            Some(local) => {
                label = Some(local);
                let version = one.version().clone().without_local();
                VersionSpecifier::from_version(*one.operator(), version).unwrap_or_else(|_| one.clone())
            }
            None => one.clone(),
        })
        .collect();
    (plain, label)
}
