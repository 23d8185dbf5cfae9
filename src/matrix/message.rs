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
        let ended = ends(&lower);
        let exits = self.exits.iter().filter(|row| {
            let signal = row.signal.as_deref().is_some_and(|signal| words.contains(&signal));
            // `Killed` is what shells print; `killed by` is not.
            let says = |text: &String| if text.contains(' ') { has(text) } else { words.contains(&text.as_str()) };
            signal || row.texts.iter().any(says) || ended.contains(&i64::from(row.status))
        });
        found.extend(exits.map(Meaning::Exit));
        found
    }

    /// The one number of a text that is said to be an error, where no library is named with it: `error code 35`.
    pub fn stray(&self, text: &str) -> Option<u32> {
        let mut numbers: Vec<u32> = text.to_lowercase().lines().flat_map(|line| marked(&words(line), &[])).collect();
        numbers.dedup();
        if let [one] = numbers[..] { Some(one) } else { None }
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
        let line = without_address(line);
        let meant: Vec<&ComponentRow> =
            self.components.iter().filter(|row| row.words.iter().any(|word| line.contains(word.as_str()))).collect();
        let names: Vec<&String> = meant.iter().flat_map(|row| &row.words).collect();
        let numbers = marked(&words(&line), &names).into_iter();
        numbers.flat_map(|number| meant.iter().filter_map(|row| self.status(row, number)).collect::<Vec<_>>()).collect()
    }
}

impl<'a> Meaning<'a> {
    /// What is known of it, where that is more than a name.
    pub fn answer(&self) -> Option<&'a AnswerRow> {
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

/// Words of a line; a version (`8.5.0`) and a name of a file (`nccl.cpp`) are one.
fn words(line: &str) -> Vec<&str> {
    let parts = line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.');
    parts.map(|word| word.trim_matches('.')).filter(|word| !word.is_empty()).collect()
}

/// Numbers beside a word that says that they are statuses, or beside one of `names`; that of a line of source stands behind
/// other words.
fn marked(words: &[&str], names: &[&String]) -> Vec<u32> {
    const MARKS: [&str; 6] = ["error", "status", "code", "failure", "result", "returned"];
    let is_mark = |word: &&str| MARKS.iter().any(|mark| word.contains(mark)) || names.iter().any(|name| name == word);
    let numbers = words.iter().enumerate().filter_map(|(at, word)| {
        let number = number(word).filter(|number| *number > 0)?;
        words[at.saturating_sub(2)..at].iter().any(is_mark).then_some(number)
    });
    numbers.collect()
}

/// A line of the kernel without the GPU that it is about: `NVRM: Xid (PCI:0000:41:00): 79, ..`.
fn without_address(line: &str) -> String {
    let parts = line.split_once("xid (").and_then(|(before, rest)| Some((before, rest.split_once(')')?.1)));
    parts.map_or_else(|| line.to_owned(), |(before, rest)| format!("{before}xid {rest}"))
}

/// Statuses that a text says a process ended with, as a shell has them: `exit code 139`, `exited with 139`, and -11 and
/// signal 11, which are the same.
fn ends(lower: &str) -> Vec<i64> {
    const FAR: usize = 40;
    let numbers = |mark: &str, far: usize| -> Vec<i64> {
        let behind = lower.match_indices(mark).map(|(at, _)| lower[at + mark.len()..].chars().take(far).collect());
        let first = |rest: String| {
            rest.split(|c: char| !c.is_ascii_digit() && c != '-').find_map(|word| word.parse::<i64>().ok())
        };
        behind.filter_map(first).collect()
    };
    let statuses = ["exit", "returncode", "return code", "rc="].iter().flat_map(|mark| numbers(mark, FAR));
    // What is negative, as Python has it, is a signal; a text of nothing else says as much.
    let alone = lower.parse::<i64>().ok().filter(|number| *number < 0);
    let statuses = statuses.chain(alone).map(|status| if (-64..0).contains(&status) { 128 - status } else { status });
    statuses.chain(numbers("signal", 4).into_iter().map(|signal| 128 + signal)).collect()
}

/// The status that a text says a process ended with, where that is none of a signal: the program chose it.
pub fn own_status(text: &str) -> Option<i64> {
    ends(&text.to_lowercase()).into_iter().find(|status| (1..126).contains(status))
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
