//! A Dockerfile for one target of the lock, by a template: the one in `templates/`, or one of the user's own.
//!
//! Takes the lock alone. The header names the lock and the template by their hashes, so that later a change of either,
//! and an edit by hand, can be told from each other.

pub use super::template::Template;

use super::context::context;
use super::generated::{STALE, edited, other_ends};
use super::options::Options;
use super::{all_known, lock_name, quote, refused_variables};
use crate::diag::{Diagnostic, Evidence, Failure, SourceText};
use crate::lock::{Image, Lock, SLIM, Target, Tier};

/// The template that is used unless another is given; others extend it by the name [`TEMPLATE_NAME`].
pub const TEMPLATE: &str = include_str!("../../templates/Dockerfile.j2");
/// What a template calls it: `{% extends "Dockerfile" %}`.
pub const TEMPLATE_NAME: &str = "Dockerfile";
pub(super) const EMBEDDED: Template<'static> = Template { name: TEMPLATE_NAME, text: TEMPLATE };
/// How every such file begins.
const MARK: &str = "# Written by `gpulock dockerfile`";
const LOCK_LINE: &str = "# Lock: ";
const TEMPLATE_LINE: &str = "# Template: ";

impl Default for Template<'_> {
    fn default() -> Self {
        EMBEDDED
    }
}

/// Renders the Dockerfile of a target; `lock_file` is the lock's name in the folder that is built.
///
/// # Errors
/// A target without image, artefacts that are not known, a variable that no Dockerfile can hold, a template that is
/// wrong.
pub fn render(lock: &Lock, target: &Target, lock_file: &str, template: Template<'_>) -> Result<String, Failure> {
    all_known(target, "a Dockerfile")?;
    image(target)?;
    let no_instruction =
        |_: &str, value: &str| (!quote::fits(value)).then_some("it has a line feed or another control character");
    refused_variables(target, "a Dockerfile", no_instruction)?;
    let values = context(lock, target, lock_file, &Options::default());
    let body = template.render(EMBEDDED, values, "gpulock dockerfile");
    let body = body.map_err(|fault| Failure::unanswerable(lock_name(true, lock_file, fault)))?;
    let (directives, body) = directives(body, template)?;
    let header = format!(
        "{MARK}; change gpulock.toml, resolve, and write it anew.\n{LOCK_LINE}{}\n{TEMPLATE_LINE}{}\n",
        lock.digest(),
        template.hash(EMBEDDED),
    );
    Ok(format!("{directives}{header}{}\n", body.trim_end()))
}

/// Why an existing file is not the one that would be written now; `None` when it is. `command` writes it anew. Carriage
/// returns alone are told of, as [`super::generated::judge`] does, and are no difference.
pub fn drift(name: &str, old: &str, new: &str, command: &str) -> Option<Diagnostic> {
    if old == new {
        return None;
    }
    let unix = &*old.replace("\r\n", "\n");
    if unix == new {
        return Some(other_ends(name, old, "dockerfile"));
    }
    let old = unix;
    let line = |text: &str, prefix: &str| text.lines().find_map(|line| line.strip_prefix(prefix)).map(str::to_owned);
    let differs = |prefix: &str| line(old, prefix) != line(new, prefix);
    let fix = format!("write it anew: `{command}`");
    let say = |message: String, fact: String| {
        Some(Diagnostic::error(STALE, message, Evidence::observed(name, fact)).fix(fix.clone()))
    };
    let said = |prefix: &str| line(old, prefix).unwrap_or_else(|| "nothing".into());
    if line(old, MARK).is_none() {
        return say(format!("{name} was not written by gpulock"), "it has no header of `gpulock dockerfile`".into());
    }
    if differs(LOCK_LINE) {
        return say(format!("{name} was written for another lock"), format!("its header says {}", said(LOCK_LINE)));
    }
    if differs(TEMPLATE_LINE) {
        return say(
            format!("{name} was written by another template"),
            format!("its header says {}", said(TEMPLATE_LINE)),
        );
    }
    Some(edited(SourceText::new(name, old), new).fix(fix))
}

/// What is said of a file that is the one of the target `other`, where `target` is asked for.
pub fn of_another(name: &str, other: &str, target: &str, command: &str) -> Diagnostic {
    let seen = Evidence::observed(name, format!("it is what the lock gives for target {other}"));
    let message = format!("{name} is the Dockerfile of target `{other}`, and `{target}` is asked for");
    let other = quote::word(other);
    Diagnostic::error(STALE, message, seen)
        .fix(format!("ask for that one: --target {other}; or write it anew: `{command}`"))
}

/// The target's image, with a base and what its tier needs.
pub(super) fn image(target: &Target) -> Result<&Image, Failure> {
    let refuse = |code, message: String, fact: String, fix: &str| {
        let seen = Evidence::observed("gpulock.lock", fact);
        Err(Failure::no(Diagnostic::error(code, message, seen).fix(fix)))
    };
    let name = &target.name;
    let Some(image) = &target.image else {
        return refuse(
            "image-missing",
            format!("the lock names no image for target `{name}`"),
            format!("target {name} has no `image`"),
            "add [image] to gpulock.toml and run `gpulock resolve`",
        );
    };
    if image.base.is_none() {
        return refuse(
            "image-missing",
            format!("no image of flavor {} on {} was known when target `{name}` was locked", image.flavor, image.os),
            format!("`image` of target {name} has no `ref`"),
            "change [image] in gpulock.toml; `gpulock resolve` says what is known",
        );
    }
    if target.driver.tier == Some(Tier::Forward) && image.flavor == SLIM {
        return refuse(
            "image-without-compat",
            format!("target `{name}` needs cuda-compat, which a slim image does not have"),
            format!("the driver of target {name} has the tier `forward`"),
            "set `flavor = \"base\"` in [image] and run `gpulock resolve`: nvidia/cuda has cuda-compat",
        );
    }
    Ok(image)
}

/// Parser directives, which only count as first lines of a Dockerfile, and the rest.
fn directives(body: String, template: Template<'_>) -> Result<(String, String), Failure> {
    let name = |line: &str| {
        let (name, _) = line.strip_prefix('#')?.split_once('=')?;
        Some(name.trim().to_ascii_lowercase())
    };
    let mut rest = body.trim_start_matches('\n');
    let mut kept = String::new();
    while let Some(line) = rest.lines().next() {
        match name(line).as_deref() {
            Some("syntax" | "check") => {
                kept.push_str(&format!("{line}\n"));
                rest = rest[line.len()..].strip_prefix('\n').unwrap_or_default();
            }
            Some("escape") => {
                let seen = Evidence::observed(template.name, line);
                let message = "a template may not change the escape character: values are quoted for the usual one";
                return Err(Failure::unanswerable(
                    Diagnostic::error("template-invalid", message, seen).fix("remove the line `# escape=..`"),
                ));
            }
            _ => break,
        }
    }
    Ok((kept, rest.to_owned()))
}
