//! The form of a file: TOML, known keys, values of the right kind, nothing missing; every problem of it at once.
//!
//! The reader of a file stops at its first problem. To go on, what is wrong is blanked out, or what is missing is put
//! in, and the file is read again; places stay true all along.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml_edit::{Document, Item, Table};

use super::Findings;
use super::place::Source;
use crate::diag::{SourceText, did_you_mean};

/// So many problems of one file are enough.
const ENOUGH: usize = 200;

/// A file that was read, with what it takes to point into it.
#[derive(Debug)]
pub(super) struct Sheet<'a, T> {
    /// Path below `compat-matrix/`.
    pub(super) path: &'a str,
    pub(super) value: T,
    pub(super) source: Source<'a>,
    /// False when something had to be left out of `value`.
    pub(super) whole: bool,
}

/// Reads a file; `None` when not even a part of it can be used.
pub(super) fn read<'a, T: DeserializeOwned>(
    path: &'a str,
    mut source: Source<'a>,
    findings: &mut Findings,
) -> Option<Sheet<'a, T>> {
    provenance(&source, findings);
    let mut removed = Removed::default();
    let mut whole = true;
    for _ in 0..ENOUGH {
        let error = match toml_edit::de::from_str(source.read()) {
            Ok(value) => return Some(Sheet { path, value, source, whole }),
            Err(error) => error,
        };
        let span = error.span().unwrap_or_default();
        let problem = Problem::of(error.message());
        let document = Document::parse(source.read()).ok();
        if !matches!(&problem, Problem::Missing(key) if removed.explains(&source, &span, key)) {
            let entry = document.as_ref().and_then(|document| entry(document.as_table(), &span, error.message()));
            problem.report(source.span(entry.or(error.span())), findings);
        }
        match &problem {
            Problem::Missing(key) if matches!(key.as_str(), "source" | "retrieved") => {
                let line = if span.is_empty() { format!("{key} = \"-\"\n") } else { format!("\n{key} = \"-\"") };
                source.insert(span.end, &line);
                continue;
            }
            Problem::Missing(_) if span.is_empty() => return None,
            _ => {}
        }
        whole = false;
        let document = document?;
        let (table, key, parts) = parts(document.as_table(), &span)?;
        let table = source.original(start(table));
        // A mistyped key stands for the one that was meant.
        let meant = problem.near().filter(|_| parts.len() == 1).map(str::to_owned);
        removed.keys.extend([Some(key.to_owned()), meant].into_iter().flatten().map(|key| (table, key)));
        source.blank(&parts);
    }
    None
}

/// Keys that were taken out, with the start of their table: they are not missing besides.
#[derive(Default)]
struct Removed {
    keys: Vec<(usize, String)>,
}

impl Removed {
    fn explains(&self, source: &Source<'_>, table: &Range<usize>, key: &str) -> bool {
        let table = source.original(table.start);
        self.keys.iter().any(|(at, removed)| *at == table && removed == key)
    }
}

fn start(table: &Table) -> usize {
    table.span().unwrap_or_default().start
}

/// What a reader's message says.
enum Problem {
    Unknown(String, Vec<String>),
    Missing(String),
    Other(String),
}

impl Problem {
    fn of(message: &str) -> Self {
        let mut quoted = message.split('`').skip(1).step_by(2).map(str::to_owned);
        if message.starts_with("unknown field") {
            let key = quoted.next().unwrap_or_default();
            Self::Unknown(key, quoted.collect())
        } else if message.starts_with("missing field") {
            Self::Missing(quoted.next().unwrap_or_default())
        } else {
            Self::Other(message.trim_end().replace('\n', "; "))
        }
    }

    /// The key that was meant by an unknown one.
    fn near(&self) -> Option<&str> {
        match self {
            Self::Unknown(key, known) => did_you_mean(key, known.iter().map(String::as_str)),
            _ => None,
        }
    }

    fn report(&self, place: crate::diag::Evidence, findings: &mut Findings) {
        match self {
            Self::Unknown(key, known) => {
                let fix = match self.near() {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("known keys here: {}", known.join(", ")),
                };
                findings.fixable("matrix-invalid", format!("unknown key `{key}`"), place, fix);
            }
            Self::Missing(key) => {
                let message = format!("`{key}` is missing");
                match key.as_str() {
                    "source" => findings.fixable("matrix-invalid", message, place, "say where the fact is from"),
                    "retrieved" => {
                        findings.fixable("matrix-invalid", message, place, "say when that was read: \"2026-11-29\"");
                    }
                    _ => findings.add("matrix-invalid", message, place),
                }
            }
            Self::Other(message) => findings.add("matrix-invalid", message.clone(), place),
        }
    }
}

/// What is at `span`: the table and key that it belongs to, and all parts of the text that go with it: a key with its
/// value, or tables with all below them.
fn parts<'t>(table: &'t Table, span: &Range<usize>) -> Option<(&'t Table, &'t str, Vec<Range<usize>>)> {
    for (key, item) in table.iter() {
        let key_span = table.key(key).and_then(toml_edit::Key::span);
        let tables: Vec<&Table> = match item {
            Item::Table(inner) => vec![inner],
            Item::ArrayOfTables(rows) => rows.iter().collect(),
            Item::Value(value) => {
                if inside(span, key_span.clone()) || inside(span, value.span()) {
                    let whole = key_span.zip(value.span()).map(|(key, value)| key.start..value.end);
                    return Some((table, key, whole.into_iter().collect()));
                }
                continue;
            }
            Item::None => continue,
        };
        if inside(span, key_span) {
            return Some((table, key, tables.into_iter().filter_map(extent).collect()));
        }
        for inner in tables {
            if inside(span, inner.span()) {
                return Some((table, key, extent(inner).into_iter().collect()));
            }
            if let Some(found) = parts(inner, span) {
                return Some(found);
            }
        }
    }
    None
}

fn inside(span: &Range<usize>, outer: Option<Range<usize>>) -> bool {
    outer.is_some_and(|outer| outer.start <= span.start && span.end <= outer.end)
}

/// The entry of the array at `span` that a message quotes.
fn entry(table: &Table, span: &Range<usize>, message: &str) -> Option<Range<usize>> {
    let (table, key, _) = parts(table, span)?;
    let quoted = message.split('`').nth(1)?;
    table.get(key)?.as_array()?.iter().find(|value| value.as_str() == Some(quoted))?.span()
}

/// A table from its header to the end of what is below it.
fn extent(table: &Table) -> Option<Range<usize>> {
    let mut all = table.span();
    let mut add = |span: Option<Range<usize>>| {
        all = match (all.take(), span) {
            (Some(a), Some(b)) => Some(a.start.min(b.start)..a.end.max(b.end)),
            (a, b) => a.or(b),
        };
    };
    for (key, item) in table.iter() {
        match item {
            Item::Table(inner) => add(extent(inner)),
            Item::ArrayOfTables(rows) => rows.iter().for_each(|row| add(extent(row))),
            Item::Value(value) => {
                add(table.key(key).and_then(toml_edit::Key::span));
                add(value.span());
            }
            Item::None => {}
        }
    }
    all
}

/// Every `source` says something, and every `retrieved` is a day.
fn provenance(source: &Source<'_>, findings: &mut Findings) {
    fn walk(table: &Table, source: &Source<'_>, findings: &mut Findings) {
        for (key, item) in table.iter() {
            match item {
                Item::Table(inner) => walk(inner, source, findings),
                Item::ArrayOfTables(rows) => rows.iter().for_each(|row| walk(row, source, findings)),
                Item::Value(value) => {
                    let Some(text) = value.as_str() else { continue };
                    let place = || SourceText::new(&source.name, source.text).span(value.span());
                    if key == "source" && text.trim().is_empty() {
                        findings.fixable("matrix-invalid", "`source` is empty", place(), "say where the fact is from");
                    }
                    if key == "retrieved" && !is_day(text) {
                        let message = format!("`{text}` is not a day such as 2026-11-29");
                        findings.add("matrix-invalid", message, place());
                    }
                }
                Item::None => {}
            }
        }
    }
    if let Ok(document) = Document::parse(source.text) {
        walk(document.as_table(), source, findings);
    }
}

/// `2026-11-29`, a day that there is.
pub(super) fn is_day(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let number = |part: &str, digits: usize| {
        (part.len() == digits && part.bytes().all(|b| b.is_ascii_digit())).then(|| part.parse::<u32>().ok()).flatten()
    };
    let [year, month, day] = parts[..] else { return false };
    let (Some(year), Some(month), Some(day)) = (number(year, 4), number(month, 2), number(day, 2)) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Evidence;
    use crate::matrix::schema::TorchFile;

    fn problems(text: &str) -> Vec<(usize, String)> {
        let mut findings = Findings::default();
        read::<TorchFile>("torch/2.8.toml", Source::new("t".into(), text), &mut findings);
        let line = |evidence: &Evidence| match evidence {
            Evidence::Span { line, .. } => *line,
            _ => 0,
        };
        findings.list.iter().map(|d| (line(&d.evidence[0]), d.message.clone())).collect()
    }

    #[test]
    fn every_problem_of_a_file_at_its_line() {
        let text = "torch = \"2.8\"\nsource = \"\"\nretrieved = \"2026-02-30\"\n\
            [[release]]\nversion = \"2.8.0\"\nrelesed = \"x\"\nsource = \"x\"\n\
            [[release.build]]\nvariant = \"cu128\"\nindex = 5\nplatform = \"linux-x86\"\n\
            python = [\n  \"cp39\",\n  310,\n]\n\
            [[release.build]]\nvariant = \"cu126\"\nindex = \"x\"\nplatform = \"linux-x86_64\"\nsource = \"x\"\n\
            [[relase]]\nversion = \"x\"\n[[relase.build]]\nx = 1\n";
        assert_eq!(
            problems(text),
            [
                (2, "`source` is empty".to_owned()),
                (3, "`2026-02-30` is not a day such as 2026-11-29".to_owned()),
                (6, "unknown key `relesed`".to_owned()),
                (10, "invalid type: integer `5`, expected a string".to_owned()),
                (11, "`linux-x86` is not a platform: linux-x86_64 or linux-aarch64".to_owned()),
                (14, "invalid type: integer `310`, expected a string".to_owned()),
                (16, "`retrieved` is missing".to_owned()),
                (4, "`retrieved` is missing".to_owned()),
                (21, "unknown key `relase`".to_owned()),
            ]
        );
    }

    #[test]
    fn what_is_not_toml_is_one_problem() {
        assert_eq!(problems("torch = \"2.8\"\n[[release\n").len(), 1);
        assert_eq!(problems("torch = \"2.8\"\ntorch = \"2.8\"\n")[0].0, 2);
        assert!(!problems("").is_empty());
    }

    #[test]
    fn days() {
        assert!(is_day("2026-11-29") && is_day("2024-02-29"));
        for text in ["", "2026-11", "2026-13-01", "2023-02-29", "26-11-29", "2026-11-2x", "2026-11-29T00:00:00Z"] {
            assert!(!is_day(text), "{text}");
        }
    }
}
