//! A text with a name: turns byte ranges, as parsers report them, into places that people find.

use std::ops::Range;

use super::Evidence;

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

    /// The place of a byte range; an unknown range is the first line.
    pub fn span(&self, range: Option<Range<usize>>) -> Evidence {
        let range = range.unwrap_or(0..0);
        let start = floor_boundary(self.text, range.start);
        let end = floor_boundary(self.text, range.end.max(start));
        let line_start = self.text[..start].rfind('\n').map_or(0, |i| i + 1);
        let line_end = self.text[start..].find('\n').map_or(self.text.len(), |i| start + i);
        Evidence::Span {
            file: self.name.into(),
            line: self.text[..start].matches('\n').count() + 1,
            column: self.text[line_start..start].chars().count() + 1,
            width: self.text[start..end.clamp(start, line_end)].chars().count().max(1),
            text: hide_credentials(self.text[line_start..line_end].trim_end_matches('\r')),
        }
    }
}

/// The character boundary at or before `at`.
fn floor_boundary(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0)
}

/// The line with user names and passwords of URLs as stars, one for each character so that columns stay.
fn hide_credentials(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let authority = after.find(|c: char| "/?#'\"".contains(c) || c.is_whitespace()).unwrap_or(after.len());
        let secret = after[..authority].rfind('@').unwrap_or(0);
        out.extend(after[..secret].chars().map(|_| '*'));
        rest = &after[secret..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        let text = "a = 'https://me:secret@x.invalid/y@z' # http://q";
        let Evidence::Span { text, .. } = SourceText::new("x", text).span(None) else { panic!() };
        assert_eq!(text, "a = 'https://*********@x.invalid/y@z' # http://q");
    }
}
