//! Two majors of the CUDA runtime in one process: a package that is made for torch brings another than torch.

use crate::check::{Case, Claims, Outcome, Rule, evidence, stack};
use crate::diag::{Diagnostic, Failure, Severity};
use crate::link::{Context, Load};

pub const RULE: Rule =
    Rule { code: "cuda-major-mixed", level: Severity::Warning, page: include_str!("../page/cuda-major-mixed.md"), run };

fn run(case: &Case<'_>, _: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let mut findings: Vec<Diagnostic> = Vec::new();
    for context in case.links.contexts.iter().filter(|context| context.after_torch) {
        // Packages that are independent of torch keep to their own runtime beside it.
        let Some(package) = context.package.and_then(|package| case.inventory.packages.get(package)) else { continue };
        if !package.requirements().any(|one| one.package.as_str() == "torch") {
            continue;
        }
        let [first, second] = majors(context)[..] else { continue };
        let message = format!(
            "{} {} brings CUDA {} into a process in which torch runs CUDA {}: memory and streams of one are unknown to the \
             other",
            package.name,
            package.version,
            major(second),
            major(first)
        );
        let finding = Diagnostic::warning(RULE.code, message, evidence::found(second)).about(&second.library.name);
        let finding = evidence::finding(
            finding,
            [evidence::found(first), evidence::version(&first.library), evidence::version(&second.library)],
        );
        let fix = format!("install the {} that is built for CUDA {}", package.name, major(first));
        findings.push(finding.fix(fix));
    }
    Ok(Outcome::Ran(findings))
}

/// The first runtime of each major, in the order in which they are loaded.
fn majors(context: &Context) -> Vec<&Load> {
    let mut found: Vec<&Load> = Vec::new();
    for load in &context.loads {
        if !major(load).is_empty() && found.iter().all(|known| major(known) != major(load)) {
            found.push(load);
        }
    }
    found
}

fn major(load: &Load) -> &str {
    stack::version_of(&load.library, "cudart").and_then(|version| version.split('.').next()).unwrap_or_default()
}
