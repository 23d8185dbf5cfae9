//! The rules: takes what was read of an environment and of the machines, gives findings.
//!
//! A rule is data (code, level, page) and a function. What a rule explains is its cause's finding; the loader's
//! symptoms are taken as evidence, so that one broken library is one finding. A rule that could not run says why:
//! skipped is not passed.

mod case;
mod claim;
pub mod coverage;
mod device_code;
pub mod dockerfile;
mod evidence;
pub mod image;
mod level;
pub mod machine;
mod pages;
mod preload;
pub mod rule;
pub mod stack;
mod variables;

pub use case::{Case, Locked};
pub use claim::{Claims, Fault, Symptom, grouped};
pub use device_code::Offer;
pub use level::exceptions;
pub use pages::{Page, is_of_environments, message, messages, pages};

use std::collections::BTreeMap;

use crate::diag::{Diagnostic, Failure, Severity};
use crate::manifest::{Check, Level};

/// One rule.
#[derive(Debug)]
pub struct Rule {
    /// Its stable name, which `[checks]` and `gpulock explain` use.
    pub code: &'static str,
    /// How grave its findings are unless they say otherwise.
    pub level: Severity,
    /// What it means, why it happens and what to do, in Markdown.
    pub page: &'static str,
    /// Looks for findings; what it explains of the loader's symptoms it claims.
    pub run: for<'a> fn(&Case<'a>, &mut Claims<'a>) -> Result<Outcome, Failure>,
}

/// What a rule came to.
#[derive(Debug)]
pub enum Outcome {
    /// It ran; no findings is good.
    Ran(Vec<Diagnostic>),
    /// It could not run, for this reason.
    Skipped(String),
}

/// What all rules came to.
#[derive(Debug, Default)]
pub struct Findings {
    /// The gravest first, then in the order of the rules.
    pub findings: Vec<Diagnostic>,
    /// Rules that could not run, and why.
    pub skipped: Vec<(&'static str, String)>,
}

/// Runs every rule and gives findings the levels that `[checks]` wants.
///
/// # Errors
/// When the matrix cannot be read.
pub fn run(case: &Case<'_>, checks: &BTreeMap<String, Check>) -> Result<Findings, Failure> {
    let mut claims = Claims::of(case.links);
    let mut all = Findings::default();
    for rule in rule::ALL {
        match (rule.run)(case, &mut claims)? {
            Outcome::Ran(findings) => all.findings.extend(findings),
            Outcome::Skipped(reason) => all.skipped.push((rule.code, reason)),
        }
    }
    // What is off leaves a trace.
    for (code, check) in checks.iter().filter(|(_, check)| check.level == Level::Off) {
        let found = all.findings.iter().filter(|finding| finding.code == *code).count();
        if let Some(rule) = rule::find(code).filter(|_| found > 0) {
            let word = if found == 1 { "finding" } else { "findings" };
            let reason = check.reason.as_deref().unwrap_or("no reason");
            all.skipped.push((rule.code, format!("{found} {word} off in [checks]: {reason}")));
        }
    }
    all.findings = exceptions(all.findings, checks);
    all.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    Ok(all)
}
