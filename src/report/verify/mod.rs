//! The report of `gpulock verify` and `gpulock check`: takes what the rules found, gives text for people and `gpulock.report/1` for programs.

pub mod human;
pub mod json;
pub mod run;

use super::findings::Results;
use crate::check::Findings;
use crate::diag::Severity;

/// All that a report says.
#[derive(Debug)]
pub struct Report<'a> {
    /// What kind of thing was read: `venv`, `root-filesystem`.
    pub kind: &'a str,
    /// As the user named it.
    pub path: String,
    /// What it holds, in the order in which people ask: `torch 2.8.0+cu128`.
    pub stack: Vec<String>,
    /// The machines, where they were declared.
    pub target: Option<Machines>,
    /// Files of a project that were looked at; absent where it is not about a project.
    pub files: Option<usize>,
    /// Libraries that were read.
    pub libraries: usize,
    /// Their size in bytes.
    pub bytes: u64,
    /// Nothing that was looked at has to do with GPUs, so that no finding is no verdict.
    pub is_empty: bool,
    /// What the rules came to.
    pub findings: &'a Findings,
    /// The command that was run, where it is about one.
    pub run: Option<&'a run::Run>,
}

/// The machines that an environment is judged for.
#[derive(Debug, Clone, Default)]
pub struct Machines {
    /// Name of the target, where it is from a lock or manifest.
    pub name: Option<String>,
    /// GPUs: product name and architecture.
    pub gpus: Vec<(String, String)>,
    /// The driver as given.
    pub driver: Option<String>,
}

impl Report<'_> {
    /// The same for the formats that are lists of findings, down to severity `least`.
    pub fn results<'r>(
        &'r self,
        command: &'r str,
        anchors: Vec<String>,
        fails: Option<Severity>,
        least: Severity,
    ) -> Results<'r> {
        Results {
            command,
            subject: &self.path,
            findings: self.findings.findings.iter().filter(|finding| finding.severity >= least).collect(),
            skipped: if least == Severity::Note { &self.findings.skipped } else { &[] },
            anchors,
            fails,
            answered: true,
            is_empty: self.is_empty,
            repository: None,
        }
    }

    /// How many findings there are of a severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.findings.iter().filter(|finding| finding.severity == severity).count()
    }
}
