//! The syntax of a Dockerfile: instructions and the shell words in them, each with its place in the text.

use std::collections::BTreeMap;
use std::ops::Range;

/// One instruction.
#[derive(Debug, Clone)]
pub struct Instruction {
    /// Its keyword, in capitals.
    pub keyword: String,
    /// Where its arguments stand, in bytes.
    pub body: Range<usize>,
}

/// A word of an instruction, variables filled in, and where it stands.
#[derive(Debug, Clone)]
pub struct Word {
    /// The word.
    pub text: String,
    /// Where it stands, in bytes; quotes belong to it.
    pub span: Range<usize>,
}

/// Variables that a Dockerfile sets, as `$NAME` or `${NAME}` stands for them.
pub type Variables = BTreeMap<String, String>;

/// Options of `pip install` with a value that says nothing about what is installed from where.
pub const PIP_VALUED: [&str; 18] = [
    "-t",
    "--target",
    "--prefix",
    "--root",
    "--python",
    "-p",
    "--timeout",
    "--retries",
    "--proxy",
    "--cert",
    "--trusted-host",
    "--cache-dir",
    "--progress-bar",
    "--no-binary",
    "--only-binary",
    "--platform",
    "--upgrade-strategy",
    "--root-user-action",
];

/// The instructions, with continued lines, comments between them, and here-documents.
pub fn instructions(text: &str) -> Vec<Instruction> {
    let mut found = Vec::new();
    let mut lines = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        lines.push(at..at + line.len());
        at += line.len();
    }
    let mut next = 0;
    while let Some(first) = lines.get(next) {
        next += 1;
        let line = text[first.clone()].trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut last = first.clone();
        // Comments and empty lines inside a continued instruction do not end it.
        let goes_on = |line: &str| line.trim_end().ends_with('\\');
        let passes = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
        let mut open = goes_on(&text[first.clone()]);
        while let Some(line) = lines.get(next).filter(|_| open) {
            last = line.clone();
            open = goes_on(&text[line.clone()]) || passes(&text[line.clone()]);
            next += 1;
        }
        if let Some(end) = here_document(&text[first.start..last.end]) {
            while let Some(line) = lines.get(next) {
                last = line.clone();
                next += 1;
                if text[line.clone()].trim() == end {
                    break;
                }
            }
        }
        let start = first.start + (text[first.clone()].len() - text[first.clone()].trim_start().len());
        let keyword: String = text[start..last.end].chars().take_while(char::is_ascii_alphabetic).collect();
        found.push(Instruction { body: start + keyword.len()..last.end, keyword: keyword.to_uppercase() });
    }
    found
}

/// The word that ends a here-document: `EOF` of `<<EOF`, `<<-EOF` and `<<'EOF'`.
fn here_document(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("<<")?;
    let rest = rest.trim_start_matches('-').trim_start_matches(['"', '\'']);
    let word: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    (!word.is_empty()).then_some(word)
}

/// The words of each command: split at `&&`, `;`, `|`, line ends; quotes taken off, variables filled in.
pub fn commands(text: &str, body: Range<usize>, variables: &Variables) -> Vec<Vec<Word>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<(String, usize)> = None;
    let mut quote = None;
    let mut chars = text[body.clone()].char_indices().map(|(i, c)| (body.start + i, c)).peekable();
    let mut line_begins = false;
    // The exec form `["pip", "install"]` reads as words once its brackets and commas are spaces.
    let exec = text[body.clone()].trim_start().starts_with('[');
    let finish = |word: &mut Option<(String, usize)>, end: usize, commands: &mut Vec<Vec<Word>>| {
        if let (Some((text, start)), Some(command)) = (word.take(), commands.last_mut()) {
            command.push(Word { text: filled_in(&text, variables), span: start..end });
        }
    };
    while let Some((at, c)) = chars.next() {
        let ends_word = quote.is_none() && (c.is_whitespace() || ";|&".contains(c) || exec && "[],".contains(c));
        if ends_word {
            finish(&mut word, at, &mut commands);
            if c == '\n' || ";|&".contains(c) {
                commands.push(Vec::new());
            }
            line_begins = c == '\n';
            continue;
        }
        match c {
            '\\' if chars.peek().is_some_and(|(_, next)| *next == '\n' || *next == '\r') => {
                // A continued line: no more than a space, and a comment may follow.
                if quote.is_none() {
                    finish(&mut word, at, &mut commands);
                }
                while chars.next_if(|(_, next)| next.is_whitespace()).is_some() {}
                while chars.next_if(|(_, next)| *next == '#').is_some() {
                    while chars.next_if(|(_, next)| *next != '\n').is_some() {}
                    while chars.next_if(|(_, next)| next.is_whitespace()).is_some() {}
                }
                continue;
            }
            '#' if word.is_none() && line_begins => {
                while chars.next_if(|(_, next)| *next != '\n').is_some() {}
                continue;
            }
            '"' | '\'' if quote == Some(c) => quote = None,
            '"' | '\'' if quote.is_none() => {
                quote = Some(c);
                word.get_or_insert_with(|| (String::new(), at));
            }
            _ => word.get_or_insert_with(|| (String::new(), at)).0.push(c),
        }
        line_begins = false;
    }
    finish(&mut word, body.end, &mut commands);
    commands.retain(|command| !command.is_empty());
    commands
}

/// A word that grows longer than this by its variables is left as written, in bytes: they can double at each step.
const LONGEST: usize = 64 << 10;

/// Fills in `$NAME`, `${NAME}`, `${NAME:-default}` and `${NAME//text/text}`; what is not set stays as written.
fn filled_in(text: &str, variables: &Variables) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let (name, default, length) = match after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            Some((inner, _)) => {
                let (name, default) = inner.split_once(":-").map_or((inner, None), |(name, value)| (name, Some(value)));
                (name, default, inner.len() + 2)
            }
            None => {
                let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
                (&after[..end], None, end)
            }
        };
        let replaced = replaced(name, variables);
        match variables.get(name).map(String::as_str).or(default).or(replaced.as_deref()) {
            Some(value) if out.len() + value.len() > LONGEST => return text.to_owned(),
            Some(value) => out.push_str(value),
            None => {
                out.push('$');
                out.push_str(&after[..length]);
            }
        }
        rest = &after[length..];
    }
    out + rest
}

/// `NAME//text/text` and `NAME/text/text`: the value with all, or the first, of a text replaced. Patterns are not known.
fn replaced(expression: &str, variables: &Variables) -> Option<String> {
    let (name, rest) = expression.split_once('/')?;
    let value = variables.get(name)?;
    let (rest, most) = rest.strip_prefix('/').map_or((rest, 1), |rest| (rest, value.len()));
    let (from, to) = rest.split_once('/').unwrap_or((rest, ""));
    let from = from.strip_prefix('\\').unwrap_or(from);
    (!from.is_empty() && !from.contains(['*', '?', '[', '\\'])).then(|| value.replacen(from, to, most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_in() {
        let variables = Variables::from([("V".to_owned(), "12.1.1".to_owned())]);
        for (text, filled) in [
            ("cu${V//./}", "cu1211"),
            ("cu${V/./}", "cu121.1"),
            ("${V//./-}", "12-1-1"),
            ("${V//\\./}", "1211"),
            ("${V//[.]/}", "${V//[.]/}"),
            ("${W//./}", "${W//./}"),
            ("${W:-a}/$V/$W", "a/12.1.1/$W"),
            ("${V//}", "${V//}"),
        ] {
            assert_eq!(filled_in(text, &variables), filled, "{text}");
        }
    }
}
