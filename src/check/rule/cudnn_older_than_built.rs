//! A cuDNN that is older than the one that torch was compiled against.

use crate::check::{Case, Claims, Outcome, Rule, evidence, stack};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::link::{Context, Load};
use crate::version::Cudnn;

pub const RULE: Rule = Rule {
    code: "cudnn-older-than-built",
    level: Severity::Error,
    page: include_str!("../page/cudnn-older-than-built.md"),
    run,
};

/// The parts whose version `cudnnGetVersion` gives: of cuDNN 9, of cuDNN 8.
const TELLING: [&str; 2] = ["graph", "ops_infer"];

fn run(case: &Case<'_>, _: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let mut findings: Vec<Diagnostic> = Vec::new();
    for context in &case.links.contexts {
        let Some((torch, reading)) = context.loads.iter().find_map(|load| {
            let identity = stack::identity(&load.library)?;
            Some((load, identity.built_against_cudnn.as_ref()?))
        }) else {
            continue;
        };
        let Some((part, version)) = running(context) else { continue };
        let (Ok(built), Ok(runs)) = (reading.version.parse::<Cudnn>(), version.parse::<Cudnn>()) else { continue };
        if runs.major() == built.major() && runs.minor() >= built.minor() {
            continue;
        }
        let message = format!(
            "cuDNN {runs} is loaded and torch was compiled against {built}: the first use of cuDNN fails with \"cuDNN \
             version incompatibility\""
        );
        let seen = Evidence::elf(&torch.library.name, format!("compiled against cuDNN {built} ({})", reading.method));
        let finding = Diagnostic::error(RULE.code, message, seen).about(&part.library.name);
        let finding = evidence::finding(finding, [evidence::version(&part.library), evidence::found(part)]);
        let package = stack::package(case.inventory, &part.library);
        let finding = finding.fix(match package {
            Some(package) => format!("pip install '{}>={}.{}'", package.name, built.major(), built.minor()),
            None => format!("let the loader find cuDNN {}.{} or later first", built.major(), built.minor()),
        });
        if findings.iter().all(|known| known.subject != finding.subject) {
            findings.push(finding);
        }
    }
    Ok(Outcome::Ran(findings))
}

/// The part that tells cuDNN's version at run time.
fn running(context: &Context) -> Option<(&Load, &str)> {
    context.loads.iter().find_map(|load| {
        let identity = stack::identity(&load.library).filter(|identity| identity.library == "cudnn")?;
        let telling = identity.component.as_deref().is_some_and(|part| TELLING.contains(&part));
        Some((load.as_ref(), identity.version.as_deref().filter(|_| telling)?))
    })
}
