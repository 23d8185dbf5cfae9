//! Findings for the tools that show them beside the code: what all of those formats share.

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

use crate::diag::{Diagnostic, Evidence, Failure, Severity};

/// What a command found, or why it has no answer.
#[derive(Debug, Clone)]
pub struct Results<'a> {
    /// The command: `gpulock check`.
    pub command: &'a str,
    /// What was looked at, as the user named it.
    pub subject: &'a str,
    /// The findings, the gravest first.
    pub findings: Vec<&'a Diagnostic>,
    /// Rules that could not run, and why.
    pub skipped: &'a [(&'static str, String)],
    /// Files of the project that stand for a finding without a place of its own, the best first: the manifest, the lock.
    pub anchors: Vec<String>,
    /// The least severity that fails; `None` where nothing does.
    pub fails: Option<Severity>,
    /// Whether the question was answered.
    pub answered: bool,
    /// Nothing that was looked at has to do with GPUs, so that no finding is no verdict.
    pub is_empty: bool,
    /// The repository that files are named from; `None` where they are named as the user did.
    pub repository: Option<Repository>,
}

/// A repository, and where in it the command was started.
#[derive(Debug, Clone)]
pub struct Repository {
    /// Its folder.
    pub root: PathBuf,
    /// The folder in which the command was started.
    pub folder: PathBuf,
}

impl Repository {
    /// The name of a file from the root; as it is where it lies elsewhere.
    fn name<'f>(&self, file: &'f str) -> Cow<'f, str> {
        let mut path = PathBuf::new();
        for component in self.folder.join(file).components() {
            match component {
                Component::CurDir => {}
                Component::ParentDir => drop(path.pop()),
                other => path.push(other),
            }
        }
        match path.strip_prefix(&self.root) {
            Ok(inside) if inside != Path::new("") => Cow::Owned(inside.display().to_string()),
            _ => Cow::Borrowed(file),
        }
    }
}

/// Where a finding is, in a file of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location<'a> {
    /// The file, from the root of the repository where there is one.
    pub file: Cow<'a, str>,
    /// Line, column and width, where known; in characters, from 1.
    pub place: Option<(usize, usize, usize)>,
}

impl<'a> Results<'a> {
    /// The errors of a command that could not answer.
    pub fn of_failure(command: &'a str, failure: &'a Failure) -> Self {
        Self {
            command,
            subject: "",
            findings: failure.diagnostics.iter().collect(),
            skipped: &[],
            anchors: Vec::new(),
            fails: Some(Severity::Error),
            answered: false,
            is_empty: false,
            repository: None,
        }
    }

    /// Whether a finding fails the command.
    pub fn is_failing(&self, finding: &Diagnostic) -> bool {
        self.fails.is_some_and(|least| finding.severity >= least)
    }

    /// Where a finding is: its first place, else the file that it was seen in, else the first anchor.
    pub fn location<'l>(&'l self, finding: &'l Diagnostic) -> Option<Location<'l>> {
        let name = |file: &'l str| match &self.repository {
            Some(repository) => repository.name(file),
            None => Cow::Borrowed(file),
        };
        let span = finding.evidence.iter().find_map(|evidence| match evidence {
            Evidence::Span { file, line, column, width, .. } => {
                Some(Location { file: name(file), place: Some((*line, *column, *width)) })
            }
            _ => None,
        });
        let seen = || {
            let what = finding.evidence.iter().find_map(|evidence| match evidence {
                Evidence::Observed { what, .. } => self.anchors.iter().find(|anchor| *anchor == what),
                _ => None,
            });
            what.or(self.anchors.first()).map(|file| Location { file: name(file), place: None })
        };
        span.or_else(seen)
    }

    /// What is said where nothing was inspected, and nothing found that fails all the same.
    pub fn nothing(&self) -> Option<&'static str> {
        let fails = self.findings.iter().any(|finding| finding.severity > Severity::Note);
        (self.is_empty && !fails).then_some(NOTHING)
    }

    /// How many findings there are, in words: `1 error, 2 notes`; `clean` where there are none, and nothing else is said.
    pub fn verdict(&self) -> String {
        let counts = counted(self.findings.iter().copied());
        match (self.nothing(), counts.is_empty()) {
            (Some(nothing), true) => nothing.into(),
            (Some(nothing), false) => format!("{nothing}; {counts}"),
            (None, true) => "clean".into(),
            (None, false) => counts,
        }
    }
}

/// The verdict where nothing was inspected.
pub const NOTHING: &str = "nothing here has to do with GPUs: not judged";

/// How many findings there are of each severity, in words; empty where there are none.
pub fn counted<'d>(findings: impl Iterator<Item = &'d Diagnostic> + Clone) -> String {
    let words = [(Severity::Error, "error"), (Severity::Warning, "warning"), (Severity::Note, "note")];
    let counts = words.map(|(severity, word)| {
        let count = findings.clone().filter(|finding| finding.severity == severity).count();
        (count > 0).then(|| format!("{count} {word}{}", if count == 1 { "" } else { "s" }))
    });
    counts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// What a finding rests on and what to do, a line each.
pub fn details(finding: &Diagnostic) -> Vec<String> {
    let evidence = finding.evidence.iter().map(|evidence| match evidence {
        Evidence::Span { file, line, column, .. } => format!("at {file}:{line}:{column}"),
        Evidence::Fact { claim, source } => format!("fact: {claim} ({source})"),
        Evidence::Observed { what, fact } | Evidence::Elf { path: what, fact } => format!("seen: {what}: {fact}"),
    });
    evidence.chain(finding.fix.iter().map(|fix| format!("help: {fix}"))).collect()
}
