//! What other tools read, made from the lock alone: what is not in the lock cannot reach it.

mod apart;
mod blocks;
mod constraints;
mod context;
pub mod dockerfile;
mod file;
mod format;
pub mod generated;
mod header;
mod options;
pub mod pinned;
mod pylock;
mod quote;
mod requirements;
mod template;
mod uv;

use std::collections::BTreeMap;
use std::fmt;

pub use apart::{Fault, Task, render_apart};
pub use format::{FILES, FileFormat, Format};
pub use options::{Opt, Options};
pub use template::Template;

use crate::diag::{Class, Diagnostic, Evidence, Failure, did_you_mean};
use crate::lock::{Lock, Target};

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
    /// For formats that a template makes: what shapes them besides the lock.
    pub options: Options,
    /// For these: a template of the user's own.
    pub template: Option<Template<'a>>,
    /// For these: the lock's name in the folder of the file.
    pub lock_name: &'a str,
}

/// Renders one target of the lock; `target` may be left out when there is only one.
///
/// # Errors
/// An unknown target, or none where there are several; an artefact that is not known, where the format needs its hash;
/// a `pyproject.toml` that cannot be edited; for `pylock`, wheels without address; a variable that the format cannot hold, a
/// template that is wrong.
pub fn render(format: Format, lock: &Lock, target: Option<&str>, beside: &Beside<'_>) -> Result<String, Failure> {
    render_for(format, lock, choose(lock, target)?, beside)
}

/// The same for a target of the lock, which may have an image that the lock does not name.
///
/// # Errors
/// As [`render`].
pub fn render_for(format: Format, lock: &Lock, target: &Target, beside: &Beside<'_>) -> Result<String, Failure> {
    match format {
        Format::Requirements => requirements::render(lock, target),
        Format::Constraints => Ok(constraints::render(lock, target)),
        Format::Pylock => pylock::render(lock, target, beside),
        Format::Uv => uv::render(lock, target, beside),
        Format::File(format) => file::render(format, lock, target, beside),
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

/// Refuses variables of `[env]` that a format cannot hold; `refuses` says why.
fn refused_variables(
    target: &Target,
    format: &str,
    refuses: impl Fn(&str, &str) -> Option<&'static str>,
) -> Result<(), Failure> {
    let refused: Vec<Diagnostic> = target
        .env
        .iter()
        .filter_map(|(name, value)| Some((name, value, quote::nul_refuses(value).or_else(|| refuses(name, value))?)))
        .map(|(name, value, why)| {
            let message = format!("{format} cannot hold {name} of [env]: {why}");
            let seen = Evidence::observed("gpulock.lock", format!("{name} = {value:?}"));
            Diagnostic::error("env-value", message, seen).fix(
                "write it otherwise in [env] of gpulock.toml, or leave it out there and set it when the job starts",
            )
        })
        .collect();
    match refused.is_empty() {
        true => Ok(()),
        false => Err(Failure { class: Class::No, diagnostics: refused }),
    }
}

/// Why a template fails: where it copies the lock into an image, whose files take no quotes, by a name that needs some, the
/// name is what is to be changed. Else the fault of the template.
fn lock_name(copies: bool, name: &str, fault: Diagnostic) -> Diagnostic {
    if !copies || quote::is_word(name) || !fault.message.contains(&quote::not_word(name)) {
        return fault;
    }
    let message = format!("the lock is named {name:?}, which cannot be copied into an image by that name");
    let seen = Evidence::observed(name, "a name of letters, digits and `. _ + ; -` alone needs no quotes");
    Diagnostic::error("usage", message, seen).fix("rename the lock, such as to gpulock.lock")
}

/// A word of a command line of the shell, in quotes where it needs them.
pub fn word(text: &str) -> String {
    quote::word(text)
}

/// The comment that each rendered file begins with: from what it was made and for what.
fn header(lock: &Lock, target: &Target, format: Format) -> String {
    let comment = match format {
        Format::File(file) => file.comment,
        _ => "# ",
    };
    format!(
        "{comment}Written by `gpulock export {format}`; change gpulock.toml and export again.\n\
         {comment}Lock: {}\n\
         {comment}Target: {} ({}, Python {}, torch {}, {})\n",
        lock.digest(),
        quote::comment(&target.name),
        target.platform,
        target.python,
        target.torch,
        quote::comment(&target.variant),
    )
}
