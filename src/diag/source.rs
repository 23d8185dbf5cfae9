//! A text with a name: turns byte ranges, as parsers report them, into places that people find.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use super::{Evidence, secret};

/// A named text.
#[derive(Debug, Clone, Copy)]
pub struct SourceText<'a> {
    /// Name as the user knows it.
    pub name: &'a str,
    /// The text.
    pub text: &'a str,
}

impl<'a> SourceText<'a> {
    /// `text` under `name`.
    pub fn new(name: &'a str, text: &'a str) -> Self {
        Self { name, text }
    }

    /// The place of a byte range; an unknown range is the first line. For many places, [`Lines`] is faster.
    pub fn span(&self, range: Option<Range<usize>>) -> Evidence {
        Lines::new(*self).span(range)
    }
}

/// A named text that knows where its lines begin, so that a place is found without reading all before it.
pub struct Lines<'a> {
    /// The text.
    pub source: SourceText<'a>,
    starts: Vec<usize>,
    /// The line that was shown last: one line may be the place of many problems.
    last: RefCell<Option<(usize, Arc<str>)>>,
}

impl<'a> Lines<'a> {
    /// Reads the text once.
    pub fn new(source: SourceText<'a>) -> Self {
        let after = source.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { source, starts: std::iter::once(0).chain(after).collect(), last: RefCell::default() }
    }

    /// The place of a byte range; an unknown range is the first line.
    pub fn span(&self, range: Option<Range<usize>>) -> Evidence {
        let text = self.source.text;
        let range = range.unwrap_or(0..0);
        let start = floor_boundary(text, range.start);
        let end = floor_boundary(text, range.end.max(start));
        let line = self.starts.partition_point(|&begin| begin <= start);
        let line_start = self.starts[line - 1];
        let line_end = self.starts.get(line).map_or(text.len(), |next| next - 1);
        Evidence::Span {
            file: self.source.name.into(),
            line,
            column: text[line_start..start].chars().count() + 1,
            width: text[start..end.clamp(start, line_end.max(start))].chars().count().max(1),
            text: self.shown(line, &text[line_start..line_end]),
        }
    }

    fn shown(&self, line: usize, text: &str) -> Arc<str> {
        let mut last = self.last.borrow_mut();
        match &*last {
            Some((known, shown)) if *known == line => Arc::clone(shown),
            _ => {
                let shown: Arc<str> = secret::hide(text.trim_end_matches('\r')).into();
                *last = Some((line, Arc::clone(&shown)));
                shown
            }
        }
    }
}

/// The character boundary at or before `at`.
fn floor_boundary(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_its_place() {
        let text = "é = 1\r\n\nb = 'https://me:secret@x'\n";
        let lines = Lines::new(SourceText::new("x", text));
        let (mut line, mut column) = (1, 1);
        for (at, c) in text.char_indices() {
            let Evidence::Span { line: found, column: at_column, text, .. } = lines.span(Some(at..at + 1)) else {
                panic!()
            };
            assert_eq!((found, at_column), (line, column), "byte {at}");
            assert!(!text.contains("secret") && !text.contains('\r'));
            (line, column) = if c == '\n' { (line + 1, 1) } else { (line, column + 1) };
        }
        let place = |range| SourceText::new("x", text).span(range);
        assert_eq!(place(Some(99..200)), lines.span(Some(text.len()..text.len())));
        assert_eq!(place(None), lines.span(Some(0..0)));
    }
}
