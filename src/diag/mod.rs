//! What gpulock has to say: one [`Diagnostic`] type for manifest, matrix, resolver and verifier.
//!
//! Each carries evidence, since a claim without one is a guess. None carries a login: whatever becomes part of one has
//! its secrets hidden first.

mod secret;
mod source;

use std::fmt;
use std::sync::Arc;

pub use secret::{hide as hide_secrets, hide_value};
pub use source::{Lines, SourceText};

/// How grave a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know; nothing has to be done.
    Note,
    /// Works, but may not be what was meant, or rests on something that is not known.
    Warning,
    /// Does not work.
    Error,
}

/// What a claim rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evidence {
    /// A place in a text that the user wrote.
    Span {
        /// File as the user named it.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// How many characters, at least 1.
        width: usize,
        /// The line's text.
        text: Arc<str>,
    },
    /// A fact of the matrix.
    Fact {
        /// The fact, a sentence.
        claim: String,
        /// Where it is from.
        source: String,
    },
    /// What an ELF file says of itself.
    Elf {
        /// The file, as the report names it.
        path: String,
        /// What it says.
        fact: String,
    },
    /// What was seen, and how.
    Observed {
        /// What was looked at: a path, an index, a request.
        what: String,
        /// What it showed.
        fact: String,
    },
}

/// One finding, error or note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable name, kebab-case: `gpulock explain CODE` tells more.
    pub code: &'static str,
    /// How grave.
    pub severity: Severity,
    /// What is so, and what follows; one or two sentences.
    pub message: String,
    /// The file or package that it is about, where it is about one.
    pub subject: Option<String>,
    /// What it rests on; never empty.
    pub evidence: Vec<Evidence>,
    /// What to do about it.
    pub fix: Option<String>,
}

impl Diagnostic {
    /// An error that rests on `evidence`.
    pub fn error(code: &'static str, message: impl Into<String>, evidence: Evidence) -> Self {
        Self {
            code,
            severity: Severity::Error,
            message: secret::hide(&message.into()),
            subject: None,
            evidence: vec![evidence],
            fix: None,
        }
    }

    /// A warning that rests on `evidence`.
    pub fn warning(code: &'static str, message: impl Into<String>, evidence: Evidence) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, message, evidence) }
    }

    /// A note that rests on `evidence`.
    pub fn note(code: &'static str, message: impl Into<String>, evidence: Evidence) -> Self {
        Self { severity: Severity::Note, ..Self::error(code, message, evidence) }
    }

    /// Names the file or package that it is about.
    pub fn about(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// Adds what to do.
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(secret::hide(&fix.into()));
        self
    }

    /// Adds more evidence.
    pub fn and(mut self, evidence: Evidence) -> Self {
        self.evidence.push(evidence);
        self
    }
}

impl Evidence {
    /// What was seen at `what`.
    pub fn observed(what: impl Into<String>, fact: impl Into<String>) -> Self {
        Self::Observed { what: secret::hide(&what.into()), fact: secret::hide(&fact.into()) }
    }

    /// What the ELF file at `path` says of itself.
    pub fn elf(path: impl Into<String>, fact: impl Into<String>) -> Self {
        Self::Elf { path: path.into(), fact: fact.into() }
    }

    /// A fact with its source.
    pub fn fact(claim: impl Into<String>, source: impl Into<String>) -> Self {
        Self::Fact { claim: claim.into(), source: source.into() }
    }
}

/// Which of the two bad exits a failure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The question was answered: no (exit 1).
    No,
    /// The question could not be answered: usage, unreadable input, network (exit 2).
    Unanswerable,
}

/// Why a command stops: one or more diagnostics, all of them at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Decides the exit code.
    pub class: Class,
    /// What is wrong; not empty.
    pub diagnostics: Vec<Diagnostic>,
}

impl Failure {
    /// The answer is no.
    pub fn no(diagnostic: Diagnostic) -> Self {
        Self { class: Class::No, diagnostics: vec![diagnostic] }
    }

    /// The question could not be answered.
    pub fn unanswerable(diagnostic: Diagnostic) -> Self {
        Self { class: Class::Unanswerable, diagnostics: vec![diagnostic] }
    }

    /// The question could not be answered, for all these reasons.
    pub fn all(diagnostics: Vec<Diagnostic>) -> Self {
        Self { class: Class::Unanswerable, diagnostics }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, diagnostic) in self.diagnostics.iter().enumerate() {
            let separator = if i == 0 { "" } else { "; " };
            write!(f, "{separator}{}", diagnostic.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

/// The nearest of `known` to a mistyped `given`, close enough to be meant.
pub fn did_you_mean<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_lowercase();
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&given, &name.to_lowercase()), name))
        .filter(|(score, _)| *score > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// By how many single mistakes a name becomes another one: a character too many, too few or wrong, two that changed places.
pub fn mistakes(one: &str, other: &str) -> usize {
    strsim::damerau_levenshtein(one, other)
}

/// The one of `known` that is nearest to a mistyped name in capitals, by single mistakes: two, or one in five characters.
/// Such names begin alike, so [`did_you_mean`] would find one for each.
pub fn misspelt<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = (given.len() / 5).clamp(2, 4);
    known
        .into_iter()
        .map(|name| (mistakes(given, name), name))
        .filter(|(mistakes, _)| *mistakes <= most)
        .min()
        .map(|(_, name)| name)
}
