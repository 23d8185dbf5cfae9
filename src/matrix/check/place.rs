//! Places in a file of the matrix: a path of keys and rows becomes the line that it is written in.

use std::borrow::Cow;
use std::ops::Range;

use toml_edit::{Document, Item, Table};

use crate::diag::{Evidence, SourceText};

/// One step from the root of a file.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step<'a> {
    /// Into the value of a key.
    Key(&'a str),
    /// Into a row of an array.
    Row(usize),
}

impl<'a> From<&'a str> for Step<'a> {
    fn from(key: &'a str) -> Self {
        Self::Key(key)
    }
}

impl From<usize> for Step<'_> {
    fn from(row: usize) -> Self {
        Self::Row(row)
    }
}

/// Steps as one writes them: `steps!["release", row, "version"]`.
macro_rules! steps {
    ($($step:expr),* $(,)?) => { (&[$(Step::from($step)),*] as &[Step<'_>]) };
}
pub(super) use steps;

/// A file's text, and the text that its value was read from: the same, save for what had to be taken out or put in
/// to go on after a problem.
#[derive(Debug)]
pub(super) struct Source<'a> {
    /// Name for messages.
    pub(super) name: Cow<'a, str>,
    /// The text as it is.
    pub(super) text: &'a str,
    read: Option<String>,
    /// Where text was put in, in bytes of `text`, and how much; ascending.
    inserts: Vec<(usize, usize)>,
}

impl<'a> Source<'a> {
    pub(super) fn new(name: Cow<'a, str>, text: &'a str) -> Self {
        Self { name, text, read: None, inserts: Vec::new() }
    }

    /// The text that its value is read from.
    pub(super) fn read(&self) -> &str {
        self.read.as_deref().unwrap_or(self.text)
    }

    /// Replaces parts of the text to read by blanks; lines and places stay as they are.
    pub(super) fn blank(&mut self, parts: &[Range<usize>]) {
        let old = self.read();
        let blanked = |at: usize, c: char| parts.iter().any(|part| part.contains(&at)) && !matches!(c, '\n' | '\r');
        let mut new = String::with_capacity(old.len());
        for (at, c) in old.char_indices() {
            if blanked(at, c) {
                new.extend(std::iter::repeat_n(' ', c.len_utf8()));
            } else {
                new.push(c);
            }
        }
        self.read = Some(new);
    }

    /// Puts a line into the text to read, after the byte `at` of it.
    pub(super) fn insert(&mut self, at: usize, line: &str) {
        let original = self.original(at);
        let mut new = self.read().to_owned();
        new.insert_str(at, line);
        self.read = Some(new);
        let place = self.inserts.partition_point(|(known, _)| *known <= original);
        self.inserts.insert(place, (original, line.len()));
    }

    /// Where a byte of the text to read is in the text as it is.
    pub(super) fn original(&self, at: usize) -> usize {
        let mut shift = 0;
        for (place, length) in &self.inserts {
            if at >= place + shift + length {
                shift += length;
            } else {
                return if at > place + shift { *place } else { at - shift };
            }
        }
        at - shift
    }

    /// The place of a range of the text to read.
    pub(super) fn span(&self, range: Option<Range<usize>>) -> Evidence {
        let range = range.map(|range| self.original(range.start)..self.original(range.end));
        SourceText::new(&self.name, self.text).span(range)
    }

    /// The place of what is at `path`, or of the nearest thing around it.
    pub(super) fn at(&self, path: &[Step<'_>]) -> Evidence {
        let document = Document::parse(self.read()).ok();
        self.span(document.and_then(|document| locate(document.as_table(), path)))
    }
}

/// The range of what is at `path`; a table's is that of its header.
fn locate(root: &Table, path: &[Step<'_>]) -> Option<Range<usize>> {
    let mut table = root;
    let mut found = root.span();
    let mut steps = path.iter().copied();
    while let Some(step) = steps.next() {
        let Step::Key(key) = step else { break };
        let Some(item) = table.get(key) else { break };
        match item {
            Item::Table(inner) => {
                found = inner.span().or(found);
                table = inner;
            }
            Item::ArrayOfTables(rows) => {
                let Some(Step::Row(row)) = steps.next() else { break };
                let Some(inner) = rows.get(row) else { break };
                found = inner.span().or(found);
                table = inner;
            }
            Item::Value(value) => {
                let entry = match steps.next() {
                    Some(Step::Row(row)) => value.as_array().and_then(|array| array.get(row)),
                    _ => None,
                };
                return entry.unwrap_or(value).span().or(found);
            }
            Item::None => break,
        }
    }
    found
}
