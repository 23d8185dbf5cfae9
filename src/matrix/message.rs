//! What a message means: takes `message.toml` and what somebody pasted, gives what is known of it, the surest first.

use super::schema::{AnswerRow, ComponentRow, ExitRow, MessageFile, ToolRow};

/// Something that is known of a message.
#[derive(Debug, Clone, Copy)]
pub enum Meaning<'a> {
    /// A status of a library, with what is known of it.
    Status(&'a ComponentRow, u32, Option<&'a AnswerRow>),
    /// A text that a program prints.
    Text(&'a AnswerRow),
    /// An exit status, or what is printed with one.
    Exit(&'a ExitRow),
    /// A program that is gone.
    Tool(&'a ToolRow),
}

impl MessageFile {
    /// What is known of a text: a number, a name or a whole message.
    pub fn meanings(&self, text: &str) -> Vec<Meaning<'_>> {
        let text = text.trim();
        if let Some(number) = number(text) {
            return self.of_number(number);
        }
        let mut found: Vec<Meaning<'_>> = Vec::new();
        let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').collect();
        let tools = self.tools.iter().filter(|row| words.iter().any(|word| row.names.iter().any(|name| name == word)));
        found.extend(tools.map(Meaning::Tool));
        for row in &self.components {
            found.extend(self.named(row, &words));
        }
        let lower = text.to_lowercase();
        let has = |pattern: &String| contains(&lower, &pattern.to_lowercase());
        let texts = self.answers.iter().filter(|row| row.texts.iter().any(has));
        let mut texts: Vec<&AnswerRow> = texts.collect();
        // Of two that both fit, the one that is about less says more: `GLIBC_*` before any version.
        texts.sort_by_key(|row| std::cmp::Reverse(row.texts.iter().filter(|text| has(text)).map(String::len).max()));
        for row in texts {
            if !found.iter().any(|known| known.answer().is_some_and(|other| std::ptr::eq(other, row))) {
                found.push(Meaning::Text(row));
            }
        }
        for new in self.numbered(&lower) {
            if !found.iter().any(|old| old.is(&new)) {
                found.push(new);
            }
        }
        let exits = self.exits.iter().filter(|row| {
            let signal = row.signal.as_deref().is_some_and(|signal| words.contains(&signal));
            signal || row.texts.iter().any(has) || is_exit(&lower, row.status)
        });
        found.extend(exits.map(Meaning::Exit));
        found
    }

    /// What is known of a status of a component.
    pub fn answer(&self, component: &str, number: u32) -> Option<&AnswerRow> {
        let is_it = |row: &&AnswerRow| row.component.as_deref() == Some(component) && row.numbers.contains(&number);
        self.answers.iter().find(is_it)
    }

    /// Everything of that number.
    fn of_number(&self, number: u32) -> Vec<Meaning<'_>> {
        let statuses = self.components.iter().filter_map(|row| self.status(row, number));
        let exits = self.exits.iter().filter(|row| row.status == number).map(Meaning::Exit);
        let mut found: Vec<Meaning<'_>> = statuses.chain(exits).collect();
        // Those of which something is known come first.
        found.sort_by_key(|meaning| matches!(meaning, Meaning::Status(_, _, None)));
        found
    }

    fn status<'a>(&'a self, row: &'a ComponentRow, number: u32) -> Option<Meaning<'a>> {
        let names = row.statuses.get(&number.to_string())?;
        let is_it =
            |answer: &&AnswerRow| answer.component.as_ref() == Some(&row.name) && answer.numbers.contains(&number);
        // A status of another release has the same name and another number.
        let is_named = |answer: &&AnswerRow| answer.texts.iter().any(|text| names.contains(text));
        let answer = self.answers.iter().find(is_it).or_else(|| self.answers.iter().find(is_named));
        Some(Meaning::Status(row, number, answer))
    }

    /// Statuses that are named.
    fn named<'a>(&'a self, row: &'a ComponentRow, words: &[&str]) -> Vec<Meaning<'a>> {
        let is_named =
            |names: &Vec<String>| names.iter().any(|name| words.iter().any(|word| word.eq_ignore_ascii_case(name)));
        let named = row.statuses.iter().filter(|(_, names)| is_named(names));
        named.filter_map(|(number, _)| self.status(row, number.parse().ok()?)).collect()
    }

    /// Statuses that are numbered beside the name of their library: `CUDA error 209`, `cudaError_t 35`.
    fn numbered<'a>(&'a self, lower: &str) -> Vec<Meaning<'a>> {
        lower.lines().flat_map(|line| self.numbered_in(line)).collect()
    }

    fn numbered_in<'a>(&'a self, line: &str) -> Vec<Meaning<'a>> {
        const MARKS: [&str; 6] = ["error", "status", "code", "failure", "result", "returned"];
        let words: Vec<&str> =
            line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
        let meant: Vec<&ComponentRow> =
            self.components.iter().filter(|row| row.words.iter().any(|word| line.contains(word.as_str()))).collect();
        let is_mark = |word: &&str| {
            let names = meant.iter().flat_map(|row| &row.words);
            MARKS.iter().any(|mark| word.contains(mark)) || names.into_iter().any(|name| name == word)
        };
        // The number of a line of source stands behind other words.
        let numbers = words.iter().enumerate().filter_map(|(at, word)| {
            let number: u32 = word.parse().ok().filter(|number| *number > 0)?;
            words[at.saturating_sub(2)..at].iter().any(is_mark).then_some(number)
        });
        numbers.flat_map(|number| meant.iter().filter_map(|row| self.status(row, number)).collect::<Vec<_>>()).collect()
    }
}

impl<'a> Meaning<'a> {
    fn answer(&self) -> Option<&'a AnswerRow> {
        match self {
            Self::Status(_, _, answer) => *answer,
            Self::Text(answer) => Some(answer),
            Self::Exit(_) | Self::Tool(_) => None,
        }
    }

    fn is(&self, other: &Meaning<'_>) -> bool {
        match (self, other) {
            (Self::Status(one, a, _), Meaning::Status(two, b, _)) => a == b && one.name == two.name,
            _ => match (self.answer(), other.answer()) {
                (Some(one), Some(two)) => std::ptr::eq(one, two),
                _ => false,
            },
        }
    }
}

/// A text that is a number and nothing else.
pub fn number(text: &str) -> Option<u32> {
    let text = text.trim().trim_start_matches('#');
    text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |hex| u32::from_str_radix(hex, 16).ok())
}

/// Whether a text says that a process ended with this status: `exit code 139`, `exited with 139`.
fn is_exit(lower: &str, status: u32) -> bool {
    let number = status.to_string();
    let mut at = 0;
    while let Some(found) = lower[at..].find("exit") {
        let rest: String = lower[at + found..].chars().take(40).collect();
        if rest.split(|c: char| !c.is_ascii_digit()).any(|word| word == number) {
            return true;
        }
        at += found + "exit".len();
    }
    false
}

/// Whether a text holds a pattern, in which `*` is any text on one line.
fn contains(text: &str, pattern: &str) -> bool {
    let parts: Vec<&str> = pattern.split('*').collect();
    text.lines().any(|line| {
        let mut rest = line;
        parts.iter().all(|part| match rest.find(part) {
            Some(at) => {
                rest = &rest[at + part.len()..];
                true
            }
            None => false,
        })
    })
}
