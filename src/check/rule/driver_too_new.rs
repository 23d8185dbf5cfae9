//! The driver of the machines is of a branch that no longer supports their GPU.

use crate::check::{Case, Claims, Outcome, Rule};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};

pub const RULE: Rule =
    Rule { code: "driver-too-new", level: Severity::Error, page: include_str!("../page/driver-too-new.md"), run };

fn run(case: &Case<'_>, _: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let Some((machine, driver)) = case.driver() else {
        return Ok(Outcome::Skipped("no driver declared".into()));
    };
    let facts = case.matrix.gpu()?;
    let mut findings = Vec::new();
    for gpu in &machine.gpus {
        let Some(row) = facts.get(gpu.capability) else { continue };
        let Some(last) = row.last_branch.filter(|last| driver.decides.major() > *last) else { continue };
        let message = format!("driver {} no longer supports {}: it will not be found", driver.given, gpu.name);
        let claim = format!("R{last} is the last driver branch for {} ({})", gpu.name, gpu.capability.sm());
        let fact = Evidence::fact(claim, &row.source);
        findings.push(Diagnostic::error(RULE.code, message, fact).fix(format!("stay on driver branch {last}")));
    }
    Ok(Outcome::Ran(findings))
}
