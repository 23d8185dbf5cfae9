//! The instructions of a Dockerfile, with continued lines, comments between them, and here-documents.

use std::ops::Range;

use super::{Instruction, escape};

/// The instructions, in order.
pub fn instructions(text: &str) -> Vec<Instruction> {
    let escape = escape(text);
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
        if passes(&text[first.clone()]) {
            continue;
        }
        let mut last = first.clone();
        let mut own = vec![first.clone()];
        // Comments and empty lines inside a continued instruction do not end it.
        let mut open = goes_on(&text[first.clone()], escape);
        while let Some(line) = lines.get(next).filter(|_| open) {
            last = line.clone();
            if !passes(&text[line.clone()]) {
                own.push(line.clone());
                open = goes_on(&text[line.clone()], escape);
            }
            next += 1;
        }
        let mut instruction = instruction(text, first.start..last.end, escape);
        if ["RUN", "COPY", "ADD"].contains(&instruction.keyword.as_str()) {
            for document in here_documents(own.iter().map(|line| &text[line.clone()]), escape) {
                while let Some(line) = lines.get(next) {
                    instruction.body.end = line.end;
                    next += 1;
                    if document.ends_at(&text[line.clone()]) {
                        break;
                    }
                }
            }
        }
        found.push(instruction);
    }
    found
}

/// Whether a line is empty or a comment.
fn passes(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

/// Whether a line is continued in the next one.
fn goes_on(line: &str, escape: char) -> bool {
    line.trim_end().strip_suffix(escape).is_some_and(|before| !before.ends_with(escape))
}

/// The instruction that stands there. What ONBUILD holds is one for the images that are built on this one.
fn instruction(text: &str, all: Range<usize>, escape: char) -> Instruction {
    let keyword = |from: usize| {
        let rest = &text[from..all.end];
        let start = from + (rest.len() - rest.trim_start().len());
        let length = text[start..all.end].bytes().take_while(u8::is_ascii_alphabetic).count();
        (text[start..start + length].to_uppercase(), start + length)
    };
    let (name, end) = keyword(all.start);
    let (name, end) = if name == "ONBUILD" { keyword(end) } else { (name, end) };
    Instruction { keyword: name, body: end..all.end, escape }
}

/// A here-document that a line opens.
struct HereDocument {
    /// The word that ends it: `EOF` of `<<EOF`, `<<-EOF` and `<<'EOF'`.
    name: String,
    /// Whether tabs before it are left out.
    tabs: bool,
}

impl HereDocument {
    fn ends_at(&self, line: &str) -> bool {
        let line = line.trim_end_matches(['\n', '\r']);
        let line = if self.tabs { line.trim_start_matches('\t') } else { line };
        line == self.name
    }
}

/// The here-documents of an instruction's lines, in order. Each is opened by a word of its own, outside of quotes: `1<<3`,
/// `<<<word` and `'<<word'` open none.
fn here_documents<'t>(lines: impl Iterator<Item = &'t str>, escape: char) -> Vec<HereDocument> {
    let mut found = Vec::new();
    let mut quote = None;
    let mut word = String::new();
    for line in lines {
        let line = line.trim_end_matches(['\n', '\r']);
        let mut chars = if goes_on(line, escape) { &line[..line.trim_end().len() - 1] } else { line }.chars();
        while let Some(c) = chars.next() {
            match c {
                c if quote.is_none() && c.is_whitespace() => found.extend(opened(&std::mem::take(&mut word))),
                '\\' if quote != Some('\'') => word.extend([Some('\\'), chars.next()].into_iter().flatten()),
                c => {
                    match quote {
                        Some(open) if open == c => quote = None,
                        None if matches!(c, '"' | '\'') => quote = Some(c),
                        _ => {}
                    }
                    word.push(c);
                }
            }
        }
    }
    found.extend(opened(&word));
    found
}

/// The here-document that a word opens, with its quotes.
fn opened(word: &str) -> Option<HereDocument> {
    let rest = word.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix("<<")?;
    let (tabs, rest) = rest.strip_prefix('-').map_or((false, rest), |rest| (true, rest));
    let name: String = rest.chars().filter(|c| !matches!(c, '"' | '\'' | '\\')).collect();
    (!name.is_empty() && !name.contains('<')).then_some(HereDocument { name, tabs })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keyword and first word of each instruction.
    fn read(text: &str) -> Vec<String> {
        let shown = |one: &Instruction| {
            format!("{} {}", one.keyword, text[one.body.clone()].split_whitespace().next().unwrap_or_default())
        };
        instructions(text).iter().map(shown).collect()
    }

    #[test]
    fn lines_go_on_as_the_directive_says() {
        let text = "# syntax=docker/dockerfile:1\n# Escape = `\n# other\nRUN a\\\nRUN b `\n c `  \n# no `\n\n d\nENV e";
        assert_eq!(read(text), ["RUN a\\", "RUN b", "ENV e"]);
        // After a comment or an instruction it is a comment, and what is no directive ends them.
        for text in ["# a comment\n# escape=`\nRUN a `\nENV b", "\n# escape=`\nRUN a `\nENV b"] {
            assert_eq!(read(text), ["RUN a", "ENV b"], "{text}");
        }
        assert_eq!(read("RUN a \\\r\n b\r\nRUN c \\\\\nENV d"), ["RUN a", "RUN c", "ENV d"]);
    }

    #[test]
    fn documents_are_passed_over() {
        let text = "RUN <<EOF\nFROM x\n EOF\nEOF\nCOPY <<\"A\" <<-B /x/\nFROM a\nB\nA\nFROM b\n\tB\nENV c";
        assert_eq!(read(text), ["RUN <<EOF", "COPY <<\"A\"", "ENV c"]);
        assert_eq!(read("RUN cat \\\n  # it's\n  3<<EOF \\\n  > x\nFROM x\nEOF\r\nENV a"), ["RUN cat", "ENV a"]);
        for none in ["RUN echo $((1<<3))", "RUN cat <<<word", "RUN echo '<<word'", "ENV A=<<word", "RUN a << b"] {
            assert_eq!(read(&format!("{none}\nENV a")).len(), 2, "{none}");
        }
    }

    #[test]
    fn onbuild_holds_an_instruction() {
        assert_eq!(read("ONBUILD RUN a\nonbuild  env b\nONBUILD"), ["RUN a", "ENV b", " "]);
    }
}
