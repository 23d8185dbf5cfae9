//! Every code that has a page for `gpulock explain` and a level in `[checks]`: those of environments, of a project's
//! files and of Dockerfiles.

use super::{dockerfile, machine, rule};
use crate::diag::Severity;

/// A code with its page.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// Its stable name.
    pub code: &'static str,
    /// How grave its findings are unless they say otherwise.
    pub level: Severity,
    /// What it means, why it happens and what to do, in Markdown.
    pub text: &'static str,
}

/// What `gpulock check` finds in a project's own files.
const PROJECT: [Page; 6] = [
    Page { code: "file-stale", level: Severity::Error, text: include_str!("page/file-stale.md") },
    Page { code: "file-unchecked", level: Severity::Error, text: include_str!("page/file-unchecked.md") },
    Page { code: "lock-edited", level: Severity::Error, text: include_str!("page/lock-edited.md") },
    Page { code: "lock-missing", level: Severity::Error, text: include_str!("page/lock-missing.md") },
    Page { code: "lock-stale", level: Severity::Error, text: include_str!("page/lock-stale.md") },
    Page { code: "matrix-old", level: Severity::Note, text: include_str!("page/matrix-old.md") },
];

/// All pages, by code.
pub fn pages() -> Vec<Page> {
    let rules = rule::ALL.iter().map(|rule| Page { code: rule.code, level: rule.level, text: rule.page });
    let lints = dockerfile::ALL.into_iter().map(|lint| Page { code: lint.code, level: lint.level, text: lint.page });
    let faults = machine::ALL.iter().map(|fault| Page { code: fault.code, level: fault.level, text: fault.page });
    let mut all: Vec<Page> = rules.chain(PROJECT).chain(lints).chain(faults).collect();
    all.sort_by_key(|page| page.code);
    all
}

/// What is said of codes that have no level: errors of commands, and remarks beside findings.
const MESSAGES: &str = include_str!("page/messages.md");

/// The page of a code that has no level: its name and a few sentences.
pub fn message(code: &str) -> Option<&'static str> {
    messages().find(|page| page.lines().next().and_then(|line| line.strip_prefix("# ")) == Some(code))
}

/// All such pages, by code.
pub fn messages() -> impl Iterator<Item = &'static str> {
    let starts =
        || MESSAGES.match_indices("# ").map(|(at, _)| at).filter(|at| MESSAGES[..*at].ends_with('\n') || *at == 0);
    starts().zip(starts().skip(1).chain([MESSAGES.len()])).map(|(from, to)| &MESSAGES[from..to])
}

/// Whether findings of this code are about an environment, and not about files of a project.
pub fn is_of_environments(code: &str) -> bool {
    !PROJECT.iter().any(|page| page.code == code)
        && !dockerfile::ALL.iter().any(|lint| lint.code == code)
        && !machine::ALL.iter().any(|fault| fault.code == code)
}

/// Whether a code only remarks: its level is that of a note.
pub fn only_remarks(code: &str) -> bool {
    pages().iter().any(|page| page.code == code && page.level == Severity::Note)
}

impl Page {
    /// The first sentence.
    pub fn summary(&self) -> String {
        let text = self.text.split("\n\n").nth(1).unwrap_or_default().replace('\n', " ");
        let end = text.find(". ").map_or(text.len(), |end| end + 1);
        text[..end].to_owned()
    }
}
