//! What a template that extends another one loses without a word: blocks that the other one does not have, and text outside
//! of blocks. Takes both texts, gives the first such place.

use std::collections::BTreeSet;

use super::apart::Fault;
use crate::diag::did_you_mean;

/// Statements that others end: `{% if .. %} .. {% endif %}`.
const OPENING: [&str; 8] = ["autoescape", "block", "call", "filter", "for", "if", "macro", "with"];

/// A part of a template.
enum Piece<'t> {
    /// What is printed as it is.
    Text,
    /// A statement: its words.
    Statement(&'t str),
}

/// The first part of `text` that is lost, where it extends the template `base`.
pub(super) fn lost(text: &str, base: &str, base_text: &str) -> Option<Fault> {
    let known: BTreeSet<&str> = pieces(base_text).filter_map(|(_, piece)| block(&piece)).collect();
    let mut open = Vec::new();
    let mut extends = false;
    for (at, piece) in pieces(text) {
        let message = match &piece {
            Piece::Text if extends && open.is_empty() => {
                format!(
                    "it extends `{base}`, and text outside of its blocks is in no file: put it into a block, of which there are {}",
                    list(&known)
                )
            }
            Piece::Statement(words) => {
                let first = words.split_whitespace().next().unwrap_or_default();
                extends |= first == "extends" && open.is_empty();
                let unknown = block(&piece).filter(|name| {
                    extends
                        && !open.contains(&"block")
                        && !known.contains(name)
                        && !text.contains(&format!("self.{name}"))
                });
                // `{% set name %}` ends; `{% set name = value %}` does not.
                if OPENING.contains(&first) || first == "set" && !words.contains('=') {
                    open.push(first);
                } else if first.starts_with("end") {
                    open.pop();
                }
                let Some(name) = unknown else { continue };
                let near = did_you_mean(name, known.iter().copied());
                let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                format!(
                    "`{base}` has no block `{name}`, so nothing of it is in the file: its blocks are {}{near}",
                    list(&known)
                )
            }
            Piece::Text => continue,
        };
        let line = text[..at].bytes().filter(|byte| *byte == b'\n').count() + 1;
        return Some(Fault { in_base: false, line: Some(line), message });
    }
    None
}

fn list(known: &BTreeSet<&str>) -> String {
    known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// The name of a block that begins here.
fn block<'t>(piece: &Piece<'t>) -> Option<&'t str> {
    let Piece::Statement(words) = piece else { return None };
    let mut words = words.split_whitespace();
    words.next().filter(|first| *first == "block").and(words.next())
}

/// Statements, and text that is more than blanks, each with where it stands; no comments and no expressions.
fn pieces(text: &str) -> impl Iterator<Item = (usize, Piece<'_>)> {
    let mut pieces = Vec::new();
    let mut at = 0;
    let said = |from: usize, to: usize| {
        let bare = text[from..to].trim_start();
        (!bare.is_empty()).then(|| (to - bare.len(), Piece::Text))
    };
    while let Some(start) = text[at..].match_indices('{').find_map(|(found, _)| begins(text, at + found)) {
        pieces.extend(said(at, start));
        let inside = start + 2;
        match &text[start..inside] {
            "{#" => at = text[inside..].find("#}").map_or(text.len(), |end| inside + end + 2),
            "{{" => at = end(text, inside, "}}").1,
            _ => {
                let (stop, after) = end(text, inside, "%}");
                let words = text[inside..stop].trim_matches(['-', '+']).trim();
                at = after;
                match words {
                    "raw" => {
                        let stop = end_of_raw(text, after);
                        pieces.extend(said(after, stop));
                        at = end(text, stop, "%}").1;
                    }
                    _ => pieces.push((start, Piece::Statement(words))),
                }
            }
        }
    }
    pieces.extend(said(at, text.len()));
    pieces.into_iter()
}

/// `at`, where a tag or a comment begins there.
fn begins(text: &str, at: usize) -> Option<usize> {
    ["{{", "{%", "{#"].iter().any(|mark| text[at..].starts_with(mark)).then_some(at)
}

/// Where a tag ends, and what comes after its `mark`; a mark in a string is none.
fn end(text: &str, from: usize, mark: &str) -> (usize, usize) {
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in text[from..].char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(one) if c == one => quote = None,
            Some(_) => {}
            None if text[from + at..].starts_with(mark) => return (from + at, from + at + mark.len()),
            None if c == '"' || c == '\'' => quote = Some(c),
            None => {}
        }
    }
    (text.len(), text.len())
}

/// Where `{% endraw %}` begins.
fn end_of_raw(text: &str, from: usize) -> usize {
    let ends = |at: &usize| text[at + 2..].trim_start_matches(['-', '+']).trim_start().starts_with("endraw");
    text[from..].match_indices("{%").map(|(at, _)| from + at).find(ends).unwrap_or(text.len())
}
