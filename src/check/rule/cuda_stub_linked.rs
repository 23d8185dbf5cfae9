//! The stub of the driver's library, which is for linking only, taken at run time.

use crate::check::{Case, Claims, Outcome, Rule, evidence};
use crate::diag::{Diagnostic, Failure, Severity};
use crate::link::Found;

pub const RULE: Rule =
    Rule { code: "cuda-stub-linked", level: Severity::Error, page: include_str!("../page/cuda-stub-linked.md"), run };

/// The folder in which CUDA keeps its stubs.
const FOLDER: &str = "stubs";

fn run(case: &Case<'_>, _: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let mut findings: Vec<Diagnostic> = Vec::new();
    for load in case.links.contexts.iter().flat_map(|context| &context.loads) {
        let in_stubs = |path: &std::path::Path| path.parent().is_some_and(|folder| folder.ends_with(FOLDER));
        if !in_stubs(&load.library.path) && !in_stubs(&load.path) {
            continue;
        }
        let message = format!(
            "{} is the stub that CUDA has for linking: every call of the driver fails with \"CUDA driver is a stub library\" \
             (34)",
            load.path.display()
        );
        let fix = match &load.found {
            Found::LibraryPath { dir } => {
                format!("take {} out of LD_LIBRARY_PATH; LIBRARY_PATH is for linking", dir.display())
            }
            _ => {
                "remove the link or folder that leads to it; the driver's own library comes with the driver".to_owned()
            }
        };
        let finding =
            Diagnostic::error(RULE.code, message, evidence::found(load)).about(load.path.display().to_string());
        if findings.iter().all(|known| known.subject != finding.subject) {
            findings.push(finding.fix(fix));
        }
    }
    Ok(Outcome::Ran(findings))
}
