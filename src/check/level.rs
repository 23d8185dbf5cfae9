//! `[checks]`: gives findings the level that the manifest wants, with its reason; an exception that meets nothing is said.

use std::collections::BTreeMap;

use crate::diag::{Diagnostic, Evidence, Severity};
use crate::manifest::{Check, Level};

use super::pages::only_remarks;

/// Findings with the levels of `checks`. Notes of a rule that judges stay notes, since they are remarks; those of a rule
/// that only remarks are what its level is about.
pub fn exceptions(findings: Vec<Diagnostic>, checks: &BTreeMap<String, Check>) -> Vec<Diagnostic> {
    let met = |rule: &str| findings.iter().any(|finding| finding.code == rule);
    let unused: Vec<Diagnostic> = checks
        .iter()
        .filter(|(rule, check)| check.level < Level::Error && !met(rule))
        .map(|(rule, check)| {
            let reason = check.reason.as_deref().unwrap_or("no reason");
            let evidence = Evidence::observed("[checks]", format!("{rule}: {reason}"));
            Diagnostic::note("exception-unused", format!("the exception for `{rule}` meets nothing here"), evidence)
                .fix(format!("remove `{rule}` from [checks] if it is no longer needed"))
        })
        .collect();
    findings.into_iter().filter_map(|finding| leveled(finding, checks)).chain(unused).collect()
}

fn leveled(finding: Diagnostic, checks: &BTreeMap<String, Check>) -> Option<Diagnostic> {
    let Some(check) = checks.get(finding.code) else { return Some(finding) };
    if finding.severity == Severity::Note && check.level != Level::Off && !only_remarks(finding.code) {
        return Some(finding);
    }
    let severity = match check.level {
        Level::Off => return None,
        Level::Note => Severity::Note,
        Level::Warning => Severity::Warning,
        Level::Error => Severity::Error,
    };
    let changed = severity != finding.severity;
    let said = check.reason.as_ref().filter(|_| changed).map(|reason| {
        let word = if severity < finding.severity { "lowered" } else { "raised" };
        Evidence::observed("[checks]", format!("{word} for this reason: {reason}"))
    });
    let finding = Diagnostic { severity, ..finding };
    Some(match said {
        Some(said) => finding.and(said),
        None => finding,
    })
}
