//! Files that were written from a lock, held against one: takes a file's text, says whether it is what the lock gives.
//!
//! A file says in its header from which lock it is. One that is of this lock is rendered once more: where the two differ,
//! somebody edited it.

use std::collections::BTreeMap;

use super::options::Options;
use super::template::Template;
use super::{Beside, Format, dockerfile, quote};
use crate::diag::{Diagnostic, Evidence, Failure, SourceText};
use crate::lock::{Lock, Target};

/// What is found about such files.
pub const STALE: &str = "file-stale";
/// A file that could not be compared.
pub const UNCHECKED: &str = "file-unchecked";

const MARK: &str = "Written by `gpulock ";
const LOCK_LINE: &str = "Lock: ";
const TARGET_LINE: &str = "Target: ";
const TEMPLATE_LINE: &str = "Template: ";
const OPTIONS_LINE: &str = "Options: ";
/// What lines of comment begin with.
const COMMENTS: [&str; 2] = ["# ", "// "];
/// A header stands in the first lines, after directives that only count there.
const HEADER_LINES: usize = 10;

/// A file that gpulock wrote, as its header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'t> {
    /// The command that wrote it: `export requirements`.
    pub command: &'t str,
    /// The lock that it was written for, by its hash.
    pub lock: &'t str,
    target: Option<&'t str>,
    template: Option<&'t str>,
    options: Option<&'t str>,
}

/// The header of a text; `None` where it has none, and was not written by gpulock.
pub fn header(text: &str) -> Option<Header<'_>> {
    let marked = |line: &str| COMMENTS.into_iter().find(|comment| line.strip_prefix(comment).is_some_and(is_mark));
    let mut lines = text.lines().take(HEADER_LINES).skip_while(|line| marked(line).is_none());
    let first = lines.next()?;
    let comment = marked(first)?;
    let command = first.strip_prefix(comment)?.strip_prefix(MARK)?.split('`').next()?;
    let rest: Vec<&str> = lines.map_while(|line| line.strip_prefix(comment)).take(4).collect();
    let line = |prefix: &str| rest.iter().find_map(|line| line.strip_prefix(prefix));
    Some(Header {
        command,
        lock: line(LOCK_LINE)?,
        target: line(TARGET_LINE).and_then(|text| text.rsplit_once(" (")).map(|(name, _)| name),
        template: line(TEMPLATE_LINE),
        options: line(OPTIONS_LINE),
    })
}

fn is_mark(text: &str) -> bool {
    text.starts_with(MARK)
}

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
}

/// What is wrong with a file, named `name`; `None` when it is what the lock gives.
pub fn judge(name: &str, text: &str, header: Header<'_>, origin: &Origin<'_>) -> Option<Diagnostic> {
    let source = SourceText::new(name, text);
    let place = |words: &str| source.span(text.find(words).map(|at| at..at + words.len()));
    if header.lock != origin.lock.digest() {
        let message = format!("{name} was written for another lock");
        return Some(Diagnostic::error(STALE, message, place(header.lock)).about(name).fix(anew(name, header, origin)));
    }
    match rendered(name, text, header, origin) {
        Ok(texts) if texts.iter().any(|one| one == text) => None,
        // For a target that it does not name: the one that it is nearest to.
        Ok(texts) => texts
            .iter()
            .max_by_key(|one| alike(text, one))
            .map(|nearest| edited(source, nearest).about(name).fix(anew(name, header, origin))),
        Err(Refused::Unknown(what)) => {
            let message = format!("{name} cannot be held against the lock: {what}");
            Some(Diagnostic::note(UNCHECKED, message, place(header.command)).about(name))
        }
        Err(Refused::Failed(failure)) => {
            let message = format!("{name} is not what this lock gives: {failure}");
            Some(Diagnostic::error(STALE, message, place(header.command)).about(name).fix(anew(name, header, origin)))
        }
    }
}

/// Why a file could not be rendered once more.
enum Refused {
    /// What it was made of is not known here.
    Unknown(String),
    /// The lock gives no such file.
    Failed(Failure),
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// What the lock gives now; several texts where the file does not say for which target it is.
fn rendered(name: &str, text: &str, header: Header<'_>, origin: &Origin<'_>) -> Result<Vec<String>, Refused> {
    if header.command == "dockerfile" {
        let template = template(header, dockerfile::EMBEDDED, origin)?;
        let targets = origin.with_images.targets.iter();
        let mut failed = None;
        let mut texts = Vec::new();
        for target in targets {
            match dockerfile::render(origin.lock, target, origin.lock_name, template) {
                Ok(text) => texts.push(text),
                Err(failure) => failed = Some(failure),
            }
        }
        return match failed {
            Some(failure) if texts.is_empty() => Err(failure.into()),
            _ => Ok(texts),
        };
    }
    let format: Option<Format> = header.command.strip_prefix("export ").and_then(|format| format.parse().ok());
    let Some(format) = format else {
        return Err(Refused::Unknown(format!("`gpulock {}` is not known to this release", header.command)));
    };
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
    Ok(vec![super::render_for(format, origin.lock, super::choose(lock, target)?, &beside)?])
}

/// The template that a file was written by: the embedded one, or another that is at hand.
fn template<'o>(header: Header<'_>, embedded: Template<'static>, origin: &Origin<'o>) -> Result<Template<'o>, Refused> {
    let hash = header.template.unwrap_or_default();
    let others = origin.templates.iter().map(|(name, text)| Template { name, text });
    let found = std::iter::once(embedded).chain(others).find(|template| template.hash(embedded) == hash);
    found.ok_or_else(|| Refused::Unknown("its template is not here; name it: --template FILE".into()))
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

/// The command that writes the file anew.
fn anew(name: &str, header: Header<'_>, origin: &Origin<'_>) -> String {
    let target = match (header.target, &origin.lock.targets[..]) {
        (_, [] | [_]) => String::new(),
        (Some(target), _) if origin.lock.target(target).is_some() => format!(" --target {target}"),
        (_, [first, ..]) => format!(" --target {}", first.name),
    };
    format!("write it anew: `gpulock {}{target}{}`", header.command, options(header).flags(name))
}
