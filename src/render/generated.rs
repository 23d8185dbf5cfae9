//! Files that were written from a lock, held against one: takes a file's text, says whether it is what the lock gives.
//!
//! A file says in its header from which lock it is. One that is of this lock is rendered once more: where the two differ,
//! somebody edited it. Version control may have changed the ends of its lines; that is said, and is no edit.

use std::collections::{BTreeMap, BTreeSet};

pub use super::header::{Header, header};

use super::options::Options;
use super::template::Template;
use super::{Beside, Format, dockerfile, quote};
use crate::diag::{Diagnostic, Evidence, Failure, Severity, SourceText};
use crate::lock::{Lock, Target};

/// What is found about such files.
pub const STALE: &str = "file-stale";
/// A file that could not be compared.
pub const UNCHECKED: &str = "file-unchecked";

/// A lock and what else such files are made of.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// The lock.
    pub lock: &'a Lock,
    /// The same, where targets without an image have the one that Dockerfiles are made of.
    pub with_images: &'a Lock,
    /// The lock's name in the folder of the files.
    pub lock_name: &'a str,
    /// Templates that are at hand besides the embedded ones: name and text.
    pub templates: &'a [(String, String)],
    /// What a command that writes such a file needs besides, such as ` --lock other.lock`.
    pub place: &'a str,
}

/// The folder of its repository that a file was written for, as its header says it.
pub fn folder(text: &str) -> Option<String> {
    options(header(text)?).folder
}

/// What is said of a file that could not be read: `failure` says why.
pub fn unread(name: &str, failure: &Failure, severity: Severity) -> Diagnostic {
    let why = failure.diagnostics.first();
    let message = why.map_or_else(|| format!("{name} cannot be read"), |why| why.message.clone());
    let seen = why.and_then(|why| why.evidence.first().cloned());
    let seen = seen.unwrap_or_else(|| Evidence::observed(name, "not read"));
    let finding = Diagnostic::error(UNCHECKED, format!("{message}, so it is not judged"), seen).about(name);
    let fix = "make it a text that can be read, or pass it over: --exclude FILE";
    Diagnostic { severity, ..finding.fix(fix) }
}

/// What is said of a file that was written from a lock which is not here.
pub fn without_lock(name: &str, text: &str) -> Diagnostic {
    let message = format!("gpulock wrote {name}, and the lock that it was written from is not here: it is not judged");
    let line = text.lines().next().map(|line| 0..line.len());
    let finding = Diagnostic::error(UNCHECKED, message, SourceText::new(name, text).span(line)).about(name);
    finding.fix("commit the lock with it, or name it: --lock FILE")
}

/// What is wrong with a file, named `name`; `None` when it is what the lock gives.
pub fn judge(name: &str, text: &str, origin: &Origin<'_>) -> Option<Diagnostic> {
    let unix = text.replace("\r\n", "\n");
    let header = header(&unix)?;
    let source = SourceText::new(name, &unix);
    let place = |words: &str| source.span(unix.find(words).map(|at| at..at + words.len()));
    let stale = |message: String, words: &str| Diagnostic::error(STALE, message, place(words)).about(name);
    let rendered = rendered(name, &unix, header, origin);
    let texts = rendered.as_deref().unwrap_or_default();
    if texts.iter().any(|(_, one)| one == text) {
        return None;
    }
    // A value may have a carriage return of its own.
    let texts: Vec<(&str, String)> =
        texts.iter().map(|(target, one)| (target.as_str(), one.replace("\r\n", "\n"))).collect();
    // For a target that it does not name: the one that it is nearest to.
    let nearest = texts.iter().max_by_key(|(_, one)| (alike(&unix, one), shared(&unix, one)));
    let fix = || anew(name, header, nearest.map(|(target, _)| *target), origin);
    let problem = match (header.lock, &rendered) {
        (None, _) => {
            stale(format!("the header of {name} names no lock: a line of it was changed or is gone"), header.line)
        }
        _ if header.command.is_empty() => {
            let message =
                format!("the header of {name} does not say what wrote it: a line of it was changed or is gone");
            stale(message, header.line)
        }
        (Some(lock), _) if lock != origin.lock.digest() => stale(format!("{name} was written for another lock"), lock),
        (_, Ok(_)) if texts.iter().any(|(_, one)| *one == unix) => return Some(other_ends(name, text, header.command)),
        (_, Ok(_)) => edited(source, &nearest?.1).about(name),
        (_, Err(Refused::Command)) => {
            let message =
                format!("{name} cannot be held against the lock: this release has no `gpulock {}`", header.command);
            let finding = Diagnostic::error(UNCHECKED, message, place(header.line)).about(name);
            return Some(finding.fix("use the release of gpulock that wrote it, or remove the file"));
        }
        (_, Err(Refused::Template)) => {
            let message = format!("{name} was written by a template that is neither this release's own nor here");
            let sought = header.template.unwrap_or("gone from its header");
            let fix = format!("{}; to compare by the template that wrote it: `gpulock check --template FILE`", fix());
            let seen = Evidence::observed(name, format!("hash of its template: {sought}"));
            return Some(stale(message, header.template.unwrap_or(header.line)).and(seen).fix(fix));
        }
        (_, Err(Refused::Failed(failure))) => {
            stale(format!("{name} is not what this lock gives: {failure}"), header.line)
        }
    };
    Some(problem.fix(fix()))
}

/// The format that a command exports.
fn exported(command: &str) -> Option<Format> {
    command.strip_prefix("export ")?.parse().ok()
}

/// A file that is what the lock gives but for the ends of its lines.
pub(super) fn other_ends(name: &str, text: &str, command: &str) -> Diagnostic {
    let counts = matches!(exported(command), Some(Format::File(format)) if format.carriage_returns);
    let follows =
        if counts { ": each becomes part of what its line says" } else { ", and is otherwise what the lock gives" };
    let message = format!("{name} has carriage returns at the ends of its lines{follows}");
    let line = text.lines().next().map(|line| 0..line.len());
    let finding = Diagnostic::warning(STALE, message, SourceText::new(name, text).span(line)).about(name);
    let fix = format!("add `{name} text eol=lf` to .gitattributes and check it out anew");
    Diagnostic { severity: if counts { Severity::Error } else { Severity::Note }, ..finding.fix(fix) }
}

/// Why a file could not be rendered once more.
#[derive(Debug)]
enum Refused {
    /// This release has no such command.
    Command,
    /// The template that it was written by is not here.
    Template,
    /// The lock gives no such file.
    Failed(Failure),
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// What the lock gives now, for each target that the file may be for: the target's name, and the text.
fn rendered(name: &str, text: &str, header: Header<'_>, origin: &Origin<'_>) -> Result<Vec<(String, String)>, Refused> {
    if header.command == "dockerfile" {
        let template = template(header, dockerfile::EMBEDDED, origin)?;
        let targets = origin.with_images.targets.iter();
        let mut failed = None;
        let mut texts = Vec::new();
        for target in targets {
            match dockerfile::render(origin.lock, target, origin.lock_name, template) {
                Ok(text) => texts.push((target.name.clone(), text)),
                Err(failure) => failed = Some(failure),
            }
        }
        return match failed {
            Some(failure) if texts.is_empty() => Err(failure.into()),
            _ => Ok(texts),
        };
    }
    let format = exported(header.command).ok_or(Refused::Command)?;
    let wheels = wheels(text);
    let template = match format {
        Format::File(format) => Some(template(header, format.template(), origin)?),
        _ => None,
    };
    let beside = Beside {
        pyproject: if format == Format::Uv { text } else { "" },
        project: name,
        addresses: wheels.addresses,
        wheel_folder: wheels.folder,
        options: options(header),
        template,
        lock_name: origin.lock_name,
    };
    // As the header shows it.
    let named = |target: &&Target| header.target.is_some_and(|name| quote::comment(&target.name) == name);
    let target = origin.lock.targets.iter().find(named).map(|target| &*target.name).or(header.target);
    let lock = if format.is_on_image() { origin.with_images } else { origin.lock };
    let chosen = super::choose(lock, target)?;
    Ok(vec![(chosen.name.clone(), super::render_for(format, origin.lock, chosen, &beside)?)])
}

/// The template that a file was written by: the embedded one, or another that is at hand.
fn template<'o>(header: Header<'_>, embedded: Template<'static>, origin: &Origin<'o>) -> Result<Template<'o>, Refused> {
    let hash = header.template.unwrap_or_default();
    let others = origin.templates.iter().map(|(name, text)| Template { name, text });
    let found = std::iter::once(embedded).chain(others).find(|template| template.hash(embedded) == hash);
    found.ok_or(Refused::Template)
}

/// What a file was shaped by. A line that cannot be read was changed by hand: what is rendered without differs from it.
fn options(header: Header<'_>) -> Options {
    header.options.and_then(Options::read).unwrap_or_default()
}

/// Where a `pylock.toml` says that its wheels are: no lock holds that, so it is taken from the file itself.
#[derive(Default)]
struct Wheels<'t> {
    addresses: BTreeMap<String, String>,
    folder: Option<&'t str>,
}

fn wheels(text: &str) -> Wheels<'_> {
    let value = |line: &'_ str, key: &str| {
        let (_, rest) = line.split_once(key)?;
        Some(rest.split('"').next().unwrap_or_default().to_owned())
    };
    let mut wheels = Wheels::default();
    for line in text.lines().filter(|line| line.starts_with("wheels = [")) {
        let Some(file) = value(line, "name = \"") else { continue };
        if let Some(url) = value(line, " url = \"") {
            wheels.addresses.insert(file, url);
        } else if let Some((_, rest)) = line.split_once(" path = \"") {
            let path = rest.split('"').next().unwrap_or_default();
            wheels.folder = path.strip_suffix(&file).and_then(|folder| folder.strip_suffix('/'));
        }
    }
    wheels
}

/// How many lines two texts share from the first on.
pub(super) fn alike(one: &str, other: &str) -> usize {
    std::iter::zip(one.lines(), other.lines()).take_while(|(a, b)| a == b).count()
}

/// How many lines of one text stand in another one, wherever.
fn shared(one: &str, other: &str) -> usize {
    let lines: BTreeSet<&str> = other.lines().collect();
    one.lines().filter(|line| lines.contains(line)).count()
}

/// The first line in which a text is not the one that is wanted: its number, itself where there is one, and its place.
pub(super) fn first_difference<'t>(source: SourceText<'t>, wanted: &str) -> (usize, Option<&'t str>, Evidence) {
    let same = alike(source.text, wanted);
    let start: usize = source.text.split_inclusive('\n').take(same).map(str::len).sum();
    let line = source.text[start..].lines().next();
    (same + 1, line, source.span(Some(start..start + line.map_or(0, str::len))))
}

/// A file whose header names this lock, and that has another text: its first line that differs.
pub(super) fn edited(source: SourceText<'_>, wanted: &str) -> Diagnostic {
    let name = source.name;
    let (number, line, place) = first_difference(source, wanted);
    let ends = format!("{name} was changed since it was written: it ends early");
    let message = line.map_or(ends, |_| format!("{name} was changed since it was written, first in line {number}"));
    let shown = |line: Option<&str>| line.map_or("nothing there".into(), |line| format!("`{line}`"));
    let gives = shown(wanted.lines().nth(number - 1));
    let ends_differ = gives == shown(line).as_str();
    let gives = if ends_differ { "the same line, and another end of line or of the file".into() } else { gives };
    Diagnostic::error(STALE, message, place).and(Evidence::observed("the lock gives", gives))
}

/// How the file is written anew: for the target that it names, else for the one that it is nearest to, and by the
/// template that wrote it. What is not known is left to choose.
fn anew(name: &str, header: Header<'_>, nearest: Option<&str>, origin: &Origin<'_>) -> String {
    let targets = &origin.lock.targets;
    // As the header shows it.
    let named = header.target.map(|shown| targets.iter().find(|target| quote::comment(&target.name) == shown));
    let first = || targets.first().map(|target| target.name.as_str());
    let (target, gone) = match (named, header.target) {
        (Some(None), Some(shown)) => (Some("TARGET".to_owned()), Some(shown)),
        (Some(Some(target)), _) => (Some(quote::word(&target.name)), None),
        _ => (nearest.or_else(first).map(quote::word), None),
    };
    let target = target.filter(|_| gone.is_some() || targets.len() > 1);
    let target = target.map_or_else(String::new, |target| format!(" --target {target}"));
    let command = if header.command.is_empty() { "dockerfile` or `gpulock export FORMAT" } else { header.command };
    let flags = options(header).flags(&quote::word(name));
    let by = |template: Option<&str>| {
        let template = template.map_or_else(String::new, |name| format!(" --template {name}"));
        format!("`gpulock {command}{target}{template}{}{flags}`", origin.place)
    };
    let embedded = match exported(header.command) {
        Some(Format::File(format)) => format.template(),
        _ => dockerfile::EMBEDDED,
    };
    let how = match (template(header, embedded, origin), header.template) {
        (Ok(template), _) if template.text == embedded.text => format!("write it anew: {}", by(None)),
        (Ok(template), _) => format!("write it anew: {}", by(Some(&quote::word(template.name)))),
        (Err(_), None) => format!("write it anew: {}", by(None)),
        // Whose it was, nobody can tell from its hash.
        (Err(_), Some(_)) => {
            let here: Vec<String> = origin.templates.iter().map(|(name, _)| quote::word(name)).collect();
            let one = match &*here {
                [one] => one,
                _ => "FILE",
            };
            let which = if here.len() > 1 { format!(" (here are {})", here.join(", ")) } else { String::new() };
            format!(
                "where a template of your own wrote it, write it anew by that as it is now{which}: {}; where an earlier \
                 release's own wrote it: {}",
                by(Some(one)),
                by(None)
            )
        }
    };
    match gone {
        Some(gone) => {
            let known: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
            let known = known.join(", ");
            format!("the lock has no target {gone} any more: remove {name}, or, for one of {known}, {how}")
        }
        None => how,
    }
}
