//! Walks a TOML document and gathers every problem with its place: the manifest and the lock are read through it.

use std::ops::Range;

use toml_edit::{Document, Item, Table, TableLike, TomlError, Value};

use super::value::Invalid;
use crate::diag::{Diagnostic, Evidence, Failure, Lines, SourceText, did_you_mean};

/// A text that is being read, and what is wrong with it so far.
pub(crate) struct Reader<'s> {
    lines: Lines<'s>,
    problems: Vec<Diagnostic>,
    /// Problems beyond [`MOST`].
    more: usize,
}

/// More problems than these are counted, not told one by one.
const MOST: usize = 100;
/// Longer lines are refused, in bytes: no person and no program writes such.
const LONGEST_LINE: usize = 256 << 10;

/// A table of the document.
#[derive(Clone)]
pub(crate) struct Section<'d> {
    /// As people find it in the file: `[target.cluster]`.
    pub(crate) name: String,
    table: &'d dyn TableLike,
    span: Option<Range<usize>>,
}

/// A string of the document.
#[derive(Clone)]
pub(crate) struct Text<'d> {
    pub(crate) value: &'d str,
    pub(crate) span: Option<Range<usize>>,
}

/// Parses TOML.
///
/// # Errors
/// Markers of an unfinished merge, a line without end, the first place that is not TOML, or a key that stands twice.
pub(crate) fn parse_toml<'s>(source: SourceText<'s>) -> Result<Document<&'s str>, Failure> {
    if let Some(problem) = merge_conflict(source) {
        return Err(Failure::unanswerable(problem));
    }
    if let Some((number, line)) = source.text.lines().enumerate().find(|(_, line)| line.len() > LONGEST_LINE) {
        let message = format!("line {} of {} is too long to be read", number + 1, source.name);
        let fact = format!("line {} has {} KiB; {} are read", number + 1, line.len() >> 10, LONGEST_LINE >> 10);
        let problem = Diagnostic::error("line-too-long", message, Evidence::observed(source.name, fact));
        return Err(Failure::unanswerable(problem.fix("write it on several lines, or name another file")));
    }
    Document::parse(source.text).map_err(|error| Failure::unanswerable(syntax_problem(source, &error)))
}

/// The markers that a version control system leaves where both sides of a merge changed the same lines.
fn merge_conflict(source: SourceText<'_>) -> Option<Diagnostic> {
    let mut at = 0;
    let mut markers = Vec::new();
    let mut conflicts = Vec::new();
    let places = Lines::new(source);
    for (number, line) in source.text.split_inclusive('\n').enumerate() {
        let is = |marker: &str| {
            line.strip_prefix(marker).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\r', '\n']))
        };
        if is("<<<<<<<") || is(">>>>>>>") {
            markers.push(places.span(Some(at..at + line.trim_end().len())));
        }
        if is("<<<<<<<") {
            conflicts.push((number + 1, None));
        } else if let (true, Some(last)) = (is(">>>>>>>"), conflicts.last_mut()) {
            last.1 = Some(number + 1);
        }
        at += line.len();
    }
    let lines: Vec<String> = conflicts
        .iter()
        .map(|(from, to)| to.map_or_else(|| format!("from {from}"), |to: usize| format!("{from} to {to}")))
        .collect();
    let mut markers = markers.into_iter();
    let message = format!("{} has unresolved merge conflicts: lines {}", source.name, lines.join(", "));
    let first = markers.next().filter(|_| !lines.is_empty())?;
    let problem = Diagnostic::error("merge-conflict", message, first);
    Some(markers.fold(problem, Diagnostic::and).fix("keep one side of each and remove the marker lines"))
}

fn syntax_problem(source: SourceText<'_>, error: &TomlError) -> Diagnostic {
    let span = error.span();
    let at = span.as_ref().and_then(|span| source.text.get(span.clone())).unwrap_or_default();
    let place = source.span(span.clone());
    let name = source.name;
    if error.message().starts_with("duplicate key") {
        let message = format!("`{at}` is defined twice in {name}");
        return Diagnostic::error("duplicate-key", message, place).fix("remove one of the two, or rename it");
    }
    let message = format!("{name} is not valid TOML: {}", error.message());
    let problem = Diagnostic::error("broken-toml", message, place.clone());
    match &place {
        Evidence::Span { text, .. } => match unquoted(text) {
            Some(quoted) => problem.fix(format!("text stands in quotes: write `{quoted}`")),
            None => problem.fix("correct it here or just before"),
        },
        _ => problem.fix("correct it"),
    }
}

/// A line with a bare version or word as its value, written with quotes.
fn unquoted(line: &str) -> Option<String> {
    let (key, value) = line.split_once('=')?;
    let value = value.split('#').next()?.trim();
    let bare = |c: char| c.is_ascii_alphanumeric() || ".,<>=~!*+-_ ".contains(c);
    (!value.is_empty() && value.chars().all(bare)).then(|| format!("{} = \"{value}\"", key.trim()))
}

impl<'s> Reader<'s> {
    pub(crate) fn new(source: SourceText<'s>) -> Self {
        Self { lines: Lines::new(source), problems: Vec::new(), more: 0 }
    }

    /// The place of a range, as evidence.
    pub(crate) fn place(&self, span: &Option<Range<usize>>) -> Evidence {
        self.lines.span(span.clone())
    }

    /// Notes a problem.
    pub(crate) fn problem(
        &mut self,
        code: &'static str,
        span: &Option<Range<usize>>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.note(code, span, message, Some(fix.into()));
    }

    fn note(
        &mut self,
        code: &'static str,
        span: &Option<Range<usize>>,
        message: impl Into<String>,
        fix: Option<String>,
    ) {
        if self.problems.len() == MOST {
            self.more += 1;
            return;
        }
        let problem = Diagnostic::error(code, message, self.place(span));
        self.problems.push(match fix {
            Some(fix) => problem.fix(fix),
            None => problem,
        });
    }

    /// Gives `value`, unless something was wrong.
    pub(crate) fn finish<T>(self, value: T) -> Result<T, Failure> {
        if self.problems.is_empty() {
            return Ok(value);
        }
        let mut problems = in_order(self.problems);
        if self.more > 0 {
            let seen = Evidence::observed(self.lines.source.name, format!("{} problems", MOST + self.more));
            let message = format!("{} more problems in {}", self.more, self.lines.source.name);
            problems.push(Diagnostic::error("more-problems", message, seen).fix("correct those above first"));
        }
        Err(Failure::all(problems))
    }

    /// Notes every key of `section` that is not among `known`; `hint` says what to do about one that is known elsewhere.
    /// Gives the keys that were meant by those, so that they need not be said to be missing too.
    pub(crate) fn only<'k>(
        &mut self,
        section: &Section<'_>,
        known: &[&'k str],
        hint: impl Fn(&str) -> Option<String>,
    ) -> Vec<&'k str> {
        let mut meant = Vec::new();
        for key in section.keys() {
            if known.contains(&key) {
                continue;
            }
            let near = did_you_mean(key, known.iter().copied());
            meant.extend(near);
            let fix = hint(key).unwrap_or_else(|| match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known keys: {}", known.join(", ")),
            });
            let message = format!("unknown key `{key}` in {}", section.name);
            self.problem("unknown-key", &section.key_span(key), message, fix);
        }
        meant
    }

    /// The table at `key`, shown as `name`.
    pub(crate) fn section<'d>(&mut self, parent: &Section<'d>, key: &str, name: String) -> Option<Section<'d>> {
        let item = parent.get(key)?;
        match item.as_table_like() {
            Some(table) => {
                let span = item.span().filter(|span| !span.is_empty()).or_else(|| parent.key_span(key));
                Some(Section { name, table, span })
            }
            None => {
                let message = format!("`{key}` in {} must be a table, not {}", parent.name, kind(item));
                self.problem("wrong-type", &item.span(), message, format!("write it as the table {name}"));
                None
            }
        }
    }

    /// The tables of the array `[[key]]`, shown as `name`.
    pub(crate) fn sections<'d>(&mut self, parent: &Section<'d>, key: &str, name: &str) -> Vec<Section<'d>> {
        let Some(item) = parent.get(key) else { return Vec::new() };
        if let Some(tables) = item.as_array_of_tables() {
            let section = |table: &'d Table| Section { name: name.into(), table, span: table.span() };
            return tables.iter().map(section).collect();
        }
        let inline = |value: &'d Value| {
            value.as_inline_table().map(|table| Section { name: name.into(), table, span: table.span() })
        };
        match item.as_array().map(|values| values.iter().map(inline).collect::<Option<Vec<_>>>()) {
            Some(Some(sections)) => sections,
            _ => {
                let message = format!("`{key}` in {} must be an array of tables, not {}", parent.name, kind(item));
                self.problem("wrong-type", &item.span(), message, format!("write each as {name} with its keys below"));
                Vec::new()
            }
        }
    }

    /// The string at `key`.
    pub(crate) fn text<'d>(&mut self, section: &Section<'d>, key: &str) -> Option<Text<'d>> {
        let item = section.get(key)?;
        match item.as_value().and_then(Value::as_str) {
            Some(value) => Some(Text { value, span: item.span() }),
            None => {
                let what = format!("`{key}` in {}", section.name);
                self.not_a_string(&what, key, item);
                None
            }
        }
    }

    /// The string at `key`, read by `parse`.
    pub(crate) fn value<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        parse: impl FnOnce(&str) -> Result<T, Invalid>,
    ) -> Option<T> {
        let text = self.text(section, key)?;
        self.parsed(&text, &format!("`{key}` in {}", section.name), parse)
    }

    /// `text` read by `parse`; `what` names it in a message.
    pub(crate) fn parsed<T>(
        &mut self,
        text: &Text<'_>,
        what: &str,
        parse: impl FnOnce(&str) -> Result<T, Invalid>,
    ) -> Option<T> {
        match parse(text.value) {
            Ok(value) => Some(value),
            Err(Invalid { code, message, fix }) => {
                self.note(code, &text.span, format!("{what}: {message}"), fix);
                None
            }
        }
    }

    /// The strings of the array at `key`; a lone string is refused with the array that is meant.
    pub(crate) fn texts<'d>(&mut self, section: &Section<'d>, key: &str) -> Option<Vec<Text<'d>>> {
        let item = section.get(key)?;
        let Some(values) = item.as_array() else {
            let message = format!("`{key}` in {} must be an array of strings, not {}", section.name, kind(item));
            let fix = match item.as_value().and_then(Value::as_str) {
                Some(one) => format!("write `{key} = [{one:?}]`"),
                None => format!("write `{key} = [\"..\", \"..\"]`"),
            };
            self.problem("wrong-type", &item.span(), message, fix);
            return None;
        };
        let mut texts = Vec::new();
        for value in values {
            match value.as_str() {
                Some(text) => texts.push(Text { value: text, span: value.span() }),
                None => {
                    let raw = self.raw(&value.span());
                    let message = format!("every entry of `{key}` in {} must be a string", section.name);
                    self.problem("wrong-type", &value.span(), message, format!("write `\"{raw}\"`"));
                }
            }
        }
        Some(texts)
    }

    /// The boolean at `key`.
    pub(crate) fn flag(&mut self, section: &Section<'_>, key: &str) -> Option<bool> {
        let item = section.get(key)?;
        let value = item.as_value().and_then(Value::as_bool);
        if value.is_none() {
            let message = format!("`{key}` in {} must be true or false, not {}", section.name, kind(item));
            self.problem("wrong-type", &item.span(), message, format!("write `{key} = true` or `{key} = false`"));
        }
        value
    }

    /// The number at `key`, zero or more.
    pub(crate) fn number(&mut self, section: &Section<'_>, key: &str) -> Option<u64> {
        let item = section.get(key)?;
        let value = item.as_value().and_then(Value::as_integer).and_then(|number| u64::try_from(number).ok());
        if value.is_none() {
            let message = format!("`{key}` in {} must be a whole number, not {}", section.name, kind(item));
            self.problem("wrong-type", &item.span(), message, format!("write `{key} = 0`, or another whole number"));
        }
        value
    }

    fn not_a_string(&mut self, what: &str, key: &str, item: &Item) {
        let message = format!("{what} must be a string, not {}", kind(item));
        let scalar = item.as_value().is_some_and(|value| !value.is_array() && !value.is_inline_table());
        let fix = match scalar {
            true => format!("write `{key} = \"{}\"`", self.raw(&item.span())),
            false => format!("write `{key} = \"..\"`"),
        };
        self.problem("wrong-type", &item.span(), message, fix);
    }

    fn raw(&self, span: &Option<Range<usize>>) -> &'s str {
        span.clone().and_then(|span| self.lines.source.text.get(span)).unwrap_or_default()
    }
}

impl<'d> Section<'d> {
    /// The whole document.
    pub(crate) fn root(document: &'d Document<&str>) -> Self {
        Self { name: "the top level".into(), table: document.as_table(), span: None }
    }

    /// An inline table or table at `key`, when that is what stands there.
    pub(crate) fn table_at(&self, key: &str, name: String) -> Option<Self> {
        let item = self.get(key)?;
        item.as_table_like().map(|table| Self { name, table, span: item.span() })
    }

    /// The keys, in the order of the file.
    pub(crate) fn keys(&self) -> Vec<&'d str> {
        self.table.iter().map(|(key, _)| key).collect()
    }

    /// Whether `key` stands here.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Whether an array without entries stands at `key`.
    pub(crate) fn is_empty_array(&self, key: &str) -> bool {
        self.get(key).and_then(Item::as_array).is_some_and(toml_edit::Array::is_empty)
    }

    /// Where `key` stands.
    pub(crate) fn key_span(&self, key: &str) -> Option<Range<usize>> {
        self.table.get_key_value(key).and_then(|(key, _)| key.span())
    }

    /// Where the value of `key` stands; where the key stands, if the value has no place.
    pub(crate) fn value_span(&self, key: &str) -> Option<Range<usize>> {
        self.get(key).and_then(Item::span).or_else(|| self.key_span(key))
    }

    /// Where the table stands.
    pub(crate) fn span(&self) -> Option<Range<usize>> {
        self.span.clone()
    }

    /// The item at `key`.
    fn get(&self, key: &str) -> Option<&'d Item> {
        self.table.get(key).filter(|item| !item.is_none())
    }
}

/// The type of an item with its article.
fn kind(item: &Item) -> String {
    let name = item.type_name();
    let vowel = name.starts_with(['a', 'i', 'o']);
    format!("{} {name}", if vowel { "an" } else { "a" })
}

/// In the order of the text, so that the first is nearest to the cause.
fn in_order(mut problems: Vec<Diagnostic>) -> Vec<Diagnostic> {
    problems.sort_by_key(|problem| match problem.evidence.first() {
        Some(Evidence::Span { line, column, .. }) => (*line, *column),
        _ => (usize::MAX, 0),
    });
    problems
}
