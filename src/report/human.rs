//! Diagnostics as text for people: what is wrong, the place or the facts that it rests on, and what to do.

use std::fmt::Write;

use crate::diag::{Diagnostic, Evidence, Failure, Severity};

/// How the text is printed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Style {
    /// With terminal colours.
    pub color: bool,
    /// With the facts behind notes and warnings; those behind errors are always shown.
    pub facts: bool,
}

const BOLD: &str = "1";
const RED: &str = "1;31";
const YELLOW: &str = "1;33";
const GREEN: &str = "1;32";
const BLUE: &str = "1;34";
const CYAN: &str = "1;36";

/// A line longer than this is shown around its span only.
const WIDEST: usize = 120;

impl Style {
    fn paint(self, color: &str, text: &str) -> String {
        if self.color { format!("\x1b[{color}m{text}\x1b[0m") } else { text.into() }
    }
}

impl Style {
    /// The headline of an error.
    pub fn error(self, text: &str) -> String {
        self.paint(RED, &printable(text))
    }

    /// The headline of an answer that is good.
    pub fn good(self, text: &str) -> String {
        self.paint(GREEN, text)
    }

    /// The headline of what to do.
    pub fn fix(self, text: &str) -> String {
        self.paint(CYAN, &printable(text))
    }
}

/// All diagnostics of a failure, a blank line between them; ends with a line feed.
pub fn failure(failure: &Failure, style: Style) -> String {
    diagnostics(&failure.diagnostics, style)
}

/// Diagnostics, a blank line between them; ends with a line feed.
pub fn diagnostics<'a>(all: impl IntoIterator<Item = &'a Diagnostic>, style: Style) -> String {
    let blocks: Vec<String> = all.into_iter().map(|one| diagnostic(one, style)).collect();
    blocks.join("\n")
}

/// Diagnostics, one a line with their first place: for many small notes.
pub fn brief<'a>(all: impl IntoIterator<Item = &'a Diagnostic>, style: Style) -> String {
    let mut out = String::new();
    for one in all {
        let (word, color) = heading(one.severity);
        let place = match one.evidence.first() {
            Some(Evidence::Span { file, line, .. }) => format!("{file}:{line}: "),
            Some(Evidence::Observed { what, .. } | Evidence::Elf { path: what, .. }) => format!("{what}: "),
            Some(Evidence::Fact { .. }) | None => String::new(),
        };
        let fix = one.fix.as_ref().map(|fix| format!(" ({fix})")).unwrap_or_default();
        let text = printable(&format!("{place}{}{fix}", one.message)).replace('\n', " ");
        let _ = writeln!(out, "{}: {text}", style.paint(color, word));
    }
    out
}

fn heading(severity: Severity) -> (&'static str, &'static str) {
    match severity {
        Severity::Error => ("error", RED),
        Severity::Warning => ("warning", YELLOW),
        Severity::Note => ("note", GREEN),
    }
}

/// One diagnostic; ends with a line feed.
pub fn diagnostic(diagnostic: &Diagnostic, style: Style) -> String {
    let (word, color) = heading(diagnostic.severity);
    let mut lines = printable(&diagnostic.message);
    let first = lines.split_once('\n').map_or(lines.len(), |(first, _)| first.len());
    let rest = lines.split_off(first);
    let head = style.paint(color, &format!("{word}[{}]", diagnostic.code));
    let mut out = format!("{head}{}{rest}\n", style.paint(BOLD, &format!(": {lines}")));
    let gutter = gutter(&diagnostic.evidence);
    for evidence in &diagnostic.evidence {
        match evidence {
            Evidence::Fact { .. } if !style.facts && diagnostic.severity < Severity::Error => {}
            Evidence::Span { file, line, column, width, text } => {
                let place = format!("{}:{line}:{column}", printable(file));
                let (text, before, width) = window(text, *column, *width);
                let bar = style.paint(BLUE, "|");
                let _ = writeln!(out, "{:gutter$}{} {place}", "", style.paint(BLUE, "-->"));
                let _ = writeln!(out, "{:gutter$} {bar}", "");
                let _ = writeln!(out, "{} {bar} {text}", style.paint(BLUE, &format!("{line:>gutter$}")));
                let carets = style.paint(color, &"^".repeat(width));
                let _ = writeln!(out, "{:gutter$} {bar} {:before$}{carets}", "", "");
            }
            Evidence::Fact { claim, source } => {
                item(&mut out, gutter, style, BLUE, "fact", &format!("{claim} ({source})"));
            }
            Evidence::Observed { what, fact } | Evidence::Elf { path: what, fact } => {
                item(&mut out, gutter, style, BLUE, "seen", &format!("{what}: {fact}"));
            }
        }
    }
    if let Some(fix) = &diagnostic.fix {
        item(&mut out, gutter, style, CYAN, "help", fix);
    }
    out
}

/// `= label: text`, further lines indented below it.
fn item(out: &mut String, gutter: usize, style: Style, color: &str, label: &str, text: &str) {
    let indent = gutter + label.len() + 5;
    let text = printable(text).replace('\n', &format!("\n{:indent$}", ""));
    let _ = writeln!(out, "{:gutter$} {} {}: {text}", "", style.paint(BLUE, "="), style.paint(color, label));
}

/// How wide the widest line number is.
fn gutter(evidence: &[Evidence]) -> usize {
    let widths = evidence.iter().filter_map(|evidence| match evidence {
        Evidence::Span { line, .. } => Some(line.to_string().len()),
        _ => None,
    });
    widths.max().unwrap_or(1)
}

/// The part of a line to show, how many characters stand before its span there, and how many of the span are shown.
fn window(text: &str, column: usize, width: usize) -> (String, usize, usize) {
    const TAB: &str = "    ";
    let chars: Vec<char> = text.chars().collect();
    let start = column.saturating_sub(1).min(chars.len());
    let width = width.clamp(1, WIDEST / 2);
    let from = match chars.len() > WIDEST {
        true => start.saturating_sub(WIDEST / 4),
        false => 0,
    };
    let to = (from + WIDEST).min(chars.len());
    let shown = |part: &[char]| printable(&part.iter().collect::<String>()).replace('\t', TAB);
    let (left, right) = (if from > 0 { "..." } else { "" }, if to < chars.len() { "..." } else { "" });
    let before = shown(&chars[from..start]);
    let marked = shown(&chars[start..(start + width).min(chars.len())]).chars().count().max(1);
    let line = format!("{left}{before}{}{right}", shown(&chars[start..to]));
    (line, left.len() + before.chars().count(), marked)
}

/// `text` as it may be printed for people: without what would steer a terminal or change the order in which its letters
/// are read. A file or an index must not be able to do either. Lines and tabs stay.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if steers(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// The same as part of a line, which no name may end.
pub fn one_line(text: &str) -> String {
    printable(text).replace(['\n', '\t'], " ")
}

/// Control characters (C0, DEL, C1), marks and overrides of writing direction (Unicode, UAX 9), and the line and
/// paragraph separators, at which some terminals break a line.
fn steers(c: char) -> bool {
    let direction =
        matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    direction || matches!(c, '\u{2028}' | '\u{2029}') || (c.is_control() && c != '\n' && c != '\t')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::SourceText;

    #[test]
    fn a_place_is_shown_with_its_line() {
        let text = "[stack]\ntourch = \"2.8\"\n";
        let place = SourceText::new("gpulock.toml", text).span(Some(8..14));
        let problem = Diagnostic::error("unknown-key", "unknown key `tourch` in [stack]", place)
            .and(Evidence::fact("torch 2.8 has a CUDA 12.8 build", "its wheel"))
            .fix("did you mean `torch`?\nsecond line");
        assert_eq!(
            diagnostic(&problem, Style::default()),
            "\
error[unknown-key]: unknown key `tourch` in [stack]
 --> gpulock.toml:2:1
  |
2 | tourch = \"2.8\"
  | ^^^^^^
  = fact: torch 2.8 has a CUDA 12.8 build (its wheel)
  = help: did you mean `torch`?
          second line
"
        );
    }

    #[test]
    fn colour_changes_nothing_but_colour() {
        let problem = Diagnostic::note("a", "b", Evidence::observed("c", "d"));
        let colored = diagnostic(&problem, Style { color: true, facts: true });
        let mut plain = String::new();
        let mut rest = colored.as_str();
        while let Some(start) = rest.find('\x1b') {
            plain.push_str(&rest[..start]);
            rest = &rest[start..];
            rest = &rest[rest.find('m').unwrap() + 1..];
        }
        plain.push_str(rest);
        assert_eq!(plain, diagnostic(&problem, Style::default()));
    }

    #[test]
    fn brief_is_one_line_each() {
        let place = SourceText::new("a", "x").span(None);
        let problem = Diagnostic::warning("x", "b\nc", place).fix("d");
        assert_eq!(brief([&problem, &problem], Style::default()), "warning: a:1: b c (d)\n".repeat(2));
    }

    #[test]
    fn what_steers_a_terminal_is_replaced() {
        let hostile =
            "\x07\x08\r\x1b\x7f\u{85}\u{9b}\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}";
        assert_eq!(printable(hostile), "\u{fffd}".repeat(hostile.chars().count()));
        let honest = "\t\n é 中文 עברית \u{200d}🙂";
        assert_eq!(printable(honest), honest);
    }

    #[test]
    fn hostile_text_does_not_reach_the_terminal() {
        let long = format!("{}\x1b[2J\tkey = 1{}", "é".repeat(300), "x".repeat(300));
        let place = SourceText::new("a\x1bb", &long).span(Some(600..604));
        let shown = diagnostic(&Diagnostic::error("x", "\x07", place), Style::default());
        assert!(!shown.contains(['\x1b', '\x07', '\t']) && shown.lines().all(|line| line.chars().count() < 140));
    }
}
