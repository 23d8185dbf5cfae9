//! Words of a line for the shell, as far as they are plain: quotes and variables are taken, what runs a command is not.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

use crate::dockerfile::is_variable;

/// Values within values, and no more than any script has.
const DEEPEST: usize = 8;

/// The words of a line.
pub(super) struct Words<'t> {
    rest: Peekable<Chars<'t>>,
    variables: &'t BTreeMap<String, String>,
    /// How many bytes values of variables may still add.
    left: &'t mut usize,
    depth: usize,
}

impl<'t> Words<'t> {
    pub(super) fn new(line: &'t str, variables: &'t BTreeMap<String, String>, left: &'t mut usize) -> Self {
        Self { rest: line.chars().peekable(), variables, left, depth: 0 }
    }

    /// All words up to a comment; `export` behind a semicolon, which changes no value, is left out. `None` where one of
    /// them is not plain.
    pub(super) fn all(mut self) -> Option<Vec<String>> {
        let mut words = Vec::new();
        let mut exports = false;
        loop {
            while self.rest.next_if(|c| c.is_whitespace()).is_some() {}
            match self.rest.peek() {
                None | Some('#') => return Some(words),
                Some(';') => {
                    self.rest.next();
                    exports = false;
                    continue;
                }
                _ => {}
            }
            let word = self.word()?;
            match word.as_str() {
                "export" => exports = true,
                _ if exports && is_variable(&word) => {}
                _ => words.push(word),
            }
        }
    }

    fn word(&mut self) -> Option<String> {
        let mut word = String::new();
        while let Some(&c) = self.rest.peek() {
            match c {
                c if c.is_whitespace() => break,
                ';' => break,
                '`' | '(' | ')' | '&' | '|' | '<' | '>' | '*' | '?' | '[' | '~' => return None,
                _ => self.part(&mut word)?,
            }
        }
        Some(word)
    }

    /// One character, or what is quoted, outside double quotes.
    fn part(&mut self, into: &mut String) -> Option<()> {
        match self.rest.next()? {
            '\\' => into.push(self.rest.next()?),
            '\'' => loop {
                match self.rest.next()? {
                    '\'' => break,
                    c => into.push(c),
                }
            },
            '"' => self.quoted(into)?,
            '$' => self.value(into)?,
            c => into.push(c),
        }
        Some(())
    }

    /// What is between double quotes, the first of which is read.
    fn quoted(&mut self, into: &mut String) -> Option<()> {
        loop {
            match self.rest.next()? {
                '"' => return Some(()),
                '`' => return None,
                '$' => self.value(into)?,
                '\\' => match self.rest.next()? {
                    c @ ('$' | '`' | '"' | '\\') => into.push(c),
                    c => into.extend(['\\', c]),
                },
                c => into.push(c),
            }
        }
    }

    /// The value of a variable, of which `$` is read: `$NAME`, `${NAME}`, `${NAME:-WORD}`, `${NAME-WORD}`.
    fn value(&mut self, into: &mut String) -> Option<()> {
        let braces = self.rest.next_if_eq(&'{').is_some();
        let mut name = String::new();
        while let Some(c) = self.rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
            name.push(c);
        }
        if !is_variable(&name) {
            return None;
        }
        let own = self.variables.get(&name).map(String::as_str);
        if !braces {
            return self.add(own.unwrap_or_default(), into);
        }
        let or_empty = self.rest.next_if_eq(&':').is_some();
        match self.rest.next()? {
            '}' if !or_empty => self.add(own.unwrap_or_default(), into),
            '-' => {
                let mut other = String::new();
                self.depth += 1;
                if self.depth > DEEPEST {
                    return None;
                }
                while self.rest.peek()? != &'}' {
                    self.part(&mut other)?;
                }
                self.rest.next();
                self.depth -= 1;
                self.add(own.filter(|own| !(or_empty && own.is_empty())).unwrap_or(&other), into)
            }
            _ => None,
        }
    }

    /// Each line may double what the one before it made.
    fn add(&mut self, value: &str, into: &mut String) -> Option<()> {
        *self.left = self.left.checked_sub(value.len())?;
        into.push_str(value);
        Some(())
    }
}
