//! What other tools read, made from the lock alone: what is not in the lock cannot reach it.

mod constraints;
pub mod dockerfile;
pub mod generated;
mod pylock;
mod requirements;
mod uv;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::diag::{Class, Diagnostic, Evidence, Failure, did_you_mean};
use crate::lock::{Lock, Target};
use crate::version::ParseError;

/// What can be rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// pip's requirements file, every package with its hash.
    Requirements,
    /// pip's and uv's constraints file: versions without hashes.
    Constraints,
    /// `pylock.toml` (PEP 751).
    Pylock,
    /// A `pyproject.toml` that `uv lock` takes to the same versions.
    Uv,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 4] = [Self::Requirements, Self::Constraints, Self::Pylock, Self::Uv];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Requirements => "requirements",
            Self::Constraints => "constraints",
            Self::Pylock => "pylock",
            Self::Uv => "uv",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let found = Self::ALL.into_iter().find(|format| format.name() == text);
        found.ok_or_else(|| ParseError {
            given: text.into(),
            expected: "a format: requirements, constraints, pylock or uv",
        })
    }
}

/// What a format needs beside the lock.
#[derive(Debug, Clone, Default)]
pub struct Beside<'a> {
    /// For `uv`: the text of `pyproject.toml`; empty to begin one.
    pub pyproject: &'a str,
    /// For `uv`: the name of a project that is begun.
    pub project: &'a str,
    /// For `pylock`: where wheels are, by file name, as their index told. The lock holds no addresses, so that it is
    /// the same behind any mirror.
    pub addresses: BTreeMap<String, String>,
    /// For `pylock`: a folder that holds wheels without an address, as `pylock.toml` is to name it.
    pub wheel_folder: Option<&'a str>,
}

/// Renders one target of the lock; `target` may be left out when there is only one.
///
/// # Errors
/// An unknown target, or none where there are several; an artefact that is not known, where the format needs its hash;
/// a `pyproject.toml` that cannot be edited; for `pylock`, wheels without address.
pub fn render(format: Format, lock: &Lock, target: Option<&str>, beside: &Beside<'_>) -> Result<String, Failure> {
    let target = choose(lock, target)?;
    match format {
        Format::Requirements => requirements::render(lock, target),
        Format::Constraints => Ok(constraints::render(lock, target)),
        Format::Pylock => pylock::render(lock, target, beside),
        Format::Uv => uv::render(lock, target, beside),
    }
}

/// The target of that name, or the only one.
///
/// # Errors
/// Says which targets there are.
pub fn choose<'l>(lock: &'l Lock, name: Option<&str>) -> Result<&'l Target, Failure> {
    let names: Vec<&str> = lock.targets.iter().map(|target| target.name.as_str()).collect();
    let refuse = |code, message: String, fix: String| {
        let seen = Evidence::observed("gpulock.lock", format!("targets: {}", names.join(", ")));
        Err(Failure::unanswerable(Diagnostic::error(code, message, seen).fix(fix)))
    };
    match (name, &lock.targets[..]) {
        (None, [only]) => Ok(only),
        (None, _) => {
            let message = format!("the lock has {} targets, and none is chosen", names.len());
            refuse("target-not-chosen", message, format!("choose one: --target {}", names.join(" | ")))
        }
        (Some(name), _) => match lock.target(name) {
            Some(target) => Ok(target),
            None => {
                let near = did_you_mean(name, names.iter().copied());
                let fix = near
                    .map_or_else(|| format!("name one of: {}", names.join(", ")), |n| format!("did you mean `{n}`?"));
                refuse("target-unknown", format!("the lock has no target `{name}`"), fix)
            }
        },
    }
}

/// Refuses a target with artefacts whose hash is not known.
fn all_known(target: &Target, format: impl fmt::Display) -> Result<(), Failure> {
    let pending: Vec<String> = target
        .pending()
        .map(|name| match target.packages.get(name) {
            Some(package) => format!("{name} {}", package.version),
            None => name.to_string(),
        })
        .collect();
    if pending.is_empty() {
        return Ok(());
    }
    let message = format!(
        "{format} needs the hash of every package, and target `{}` has {} without one",
        target.name,
        pending.len()
    );
    let seen = Evidence::observed("gpulock.lock", format!("pending: {}", pending.join(", ")));
    let problem = Diagnostic::error("pending-artefact", message, seen)
        .fix("run `gpulock resolve` where the indexes can be reached; it fills them in");
    Err(Failure { class: Class::No, diagnostics: vec![problem] })
}

/// The comment that each rendered file begins with: from what it was made and for what.
fn header(lock: &Lock, target: &Target, format: Format) -> String {
    format!(
        "# Written by `gpulock export {format}`; change gpulock.toml and export again.\n\
         # Lock: {}\n\
         # Target: {} ({}, Python {}, torch {}, {})\n",
        lock.digest(),
        target.name,
        target.platform,
        target.python,
        target.torch,
        target.variant,
    )
}
