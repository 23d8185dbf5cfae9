//! What `gpulock doctor` says of a machine, for people and as `gpulock.doctor/1`.

pub mod human;
pub mod json;

use crate::check::machine::{Line, State};
use crate::diag::{Diagnostic, Severity};
use crate::report::findings::Results;

/// The report on a machine.
#[derive(Debug)]
pub struct Report<'r> {
    /// `machine`, `tree` or `capture`.
    pub kind: &'static str,
    /// As the user named it.
    pub path: String,
    /// All lines, in the order of the layers.
    pub lines: &'r [Line],
    /// Rules that could not run, and why.
    pub skipped: &'r [(&'static str, String)],
    /// Whether there is nothing of NVIDIA's here.
    pub is_empty: bool,
}

impl Report<'_> {
    /// All findings, the gravest first.
    pub fn findings(&self) -> Vec<&Diagnostic> {
        let mut all: Vec<&Diagnostic> = self.lines.iter().flat_map(|line| &line.findings).collect();
        all.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        all
    }

    /// How many lines are so.
    pub fn count(&self, state: State) -> usize {
        self.lines.iter().filter(|line| line.state == state).count()
    }

    /// The same for the formats that are lists of findings, down to severity `least`.
    pub fn results<'s>(&'s self, fails: Option<Severity>, least: Severity) -> Results<'s> {
        Results {
            command: "gpulock doctor",
            subject: &self.path,
            findings: self.findings().into_iter().filter(|finding| finding.severity >= least).collect(),
            skipped: if least == Severity::Note { self.skipped } else { &[] },
            anchors: vec![self.path.clone()],
            fails,
            answered: true,
            is_empty: self.is_empty,
            repository: None,
        }
    }
}
