//! The driver is older than the environment's CUDA and runs it by minor-version or forward compatibility: good to know.

use crate::check::{Case, Claims, Outcome, Rule, stack};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::matrix::Tier;

pub const RULE: Rule = Rule {
    code: "driver-minor-version",
    level: Severity::Note,
    page: include_str!("../page/driver-minor-version.md"),
    run,
};

fn run(case: &Case<'_>, _: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let Some((machine, driver)) = case.driver() else {
        return Ok(Outcome::Skipped("no driver declared".into()));
    };
    let facts = case.matrix.cuda()?;
    let mut findings = Vec::new();
    for (cuda, library) in stack::runtimes(case.inventory, case.links) {
        let Some(tier) = facts.tier(&driver.decides, cuda, machine.forward).filter(|tier| *tier != Tier::Native) else {
            continue;
        };
        let mut message = format!("driver {} runs CUDA {cuda} {}", driver.given, tier.words());
        if tier == Tier::MinorVersion {
            message += ": PTX of this CUDA cannot be compiled there, and what is new in it is missing";
        }
        let native = facts.native(cuda);
        let fact = match &native {
            Some(native) => Evidence::fact(&native.claim, &native.source),
            None => Evidence::elf(&library.name, format!("CUDA runtime {cuda}")),
        };
        let note = Diagnostic::note(RULE.code, message, fact).about(&library.name);
        findings.push(match native {
            Some(native) => note.fix(format!("driver {} or later supports it natively", native.driver)),
            None => note,
        });
    }
    Ok(Outcome::Ran(findings))
}
