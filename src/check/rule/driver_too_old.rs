//! The driver of the machines is older than the environment's CUDA allows, or than their GPU needs.

use crate::check::{Case, Claims, Outcome, Rule, stack};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::matrix::schema::GpuClass;
use crate::resolve::first_driver;

pub const RULE: Rule =
    Rule { code: "driver-too-old", level: Severity::Error, page: include_str!("../page/driver-too-old.md"), run };

fn run(case: &Case<'_>, _: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let Some((machine, driver)) = case.driver() else {
        return Ok(Outcome::Skipped("no driver declared".into()));
    };
    let facts = case.matrix.cuda()?;
    let mut findings = Vec::new();
    for (cuda, library) in stack::runtimes(case.inventory, case.links) {
        if facts.tier(&driver.decides, cuda, machine.forward).is_some() {
            continue;
        }
        let Some(floor) = facts.floor(cuda) else { continue };
        let message = format!(
            "driver {} is too old for CUDA {cuda}: every CUDA call will fail with \"CUDA driver version is insufficient \
             for CUDA runtime version\"",
            driver.given
        );
        let mut fix = format!("install driver {} or later, or resolve a stack for this driver", floor.driver);
        let data_centre = machine.gpus.iter().all(|gpu| gpu.class == Some(GpuClass::DataCenter));
        if data_centre && facts.forward_branches(cuda).contains(&driver.decides.major()) {
            fix += &format!(
                "; on data-centre GPUs the package cuda-compat-{}-{} lets this driver run it",
                cuda.major, cuda.minor
            );
        }
        let seen = Evidence::elf(&library.name, format!("CUDA runtime {cuda}"));
        findings.push(
            Diagnostic::error(RULE.code, message, seen)
                .about(&library.name)
                .and(Evidence::fact(floor.claim, floor.source))
                .fix(fix),
        );
    }
    for gpu in &machine.gpus {
        if let Some((first, claim, source, _)) = first_driver(case.matrix, gpu)?
            && driver.decides < first
        {
            let message = format!("driver {} does not know {}: it will not be found", driver.given, gpu.name);
            let fact = Evidence::fact(claim, source);
            findings.push(Diagnostic::error(RULE.code, message, fact).fix(format!("install driver {first} or later")));
        }
    }
    Ok(Outcome::Ran(findings))
}
