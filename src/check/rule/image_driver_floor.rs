//! What the image asks of the driver before a container of it is started: NVIDIA_REQUIRE_CUDA.

use std::path::Path;

use crate::check::{Case, Claims, Outcome, Rule, stack};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::inventory::shown;
use crate::matrix::requirement::{Invalid, Refused, first, least_cuda, refused, worst};
use crate::resolve::DriverAsk;

pub const RULE: Rule = Rule {
    code: "image-driver-floor",
    level: Severity::Error,
    page: include_str!("../page/image-driver-floor.md"),
    run,
};

/// Where the language is defined.
const SOURCE: &str = "https://github.com/NVIDIA/libnvidia-container, src/cli/dsl.c";

fn run(case: &Case<'_>, _: &mut Claims<'_>) -> Result<Outcome, Failure> {
    if !case.inventory.subject.kind.is_root() {
        return Ok(Outcome::Ran(Vec::new()));
    }
    let Some((machine, driver)) = case.driver() else {
        return Ok(Outcome::Skipped("no driver declared".into()));
    };
    let facts = case.matrix.cuda()?;
    let mut findings = Vec::new();
    for (variable, requirement) in case.image_requirements() {
        // Words of a report, in which a line feed would begin another.
        let shown = shown(Path::new(&requirement));
        match refused(&requirement, &machine.gpus, &driver.decides, facts) {
            Err(Invalid(condition)) => findings.push(invalid(variable, &shown, &condition)),
            Ok(refused) if refused.is_empty() => {}
            Ok(refused) => findings.push(finding(case, (variable, &requirement, &shown), &refused, driver)?),
        }
    }
    Ok(Outcome::Ran(findings))
}

fn invalid(variable: &str, requirement: &str, condition: &str) -> Diagnostic {
    let condition = shown(Path::new(condition));
    let message = format!(
        "the container runtime cannot read {variable}, and starts no container of this image: `{condition}` is no condition"
    );
    let seen = Evidence::observed(format!("{variable} of the image"), requirement);
    let language = Evidence::fact("conditions are cuda, driver, arch and brand with =, !=, <, <=, > and >=", SOURCE);
    Diagnostic::error(RULE.code, message, seen).and(language).fix(format!("correct {variable}, or remove it"))
}

fn finding(
    case: &Case<'_>,
    (variable, requirement, text): (&str, &str, &str),
    refused: &[Refused<'_>],
    driver: &DriverAsk,
) -> Result<Diagnostic, Failure> {
    let facts = case.matrix.cuda()?;
    let (certain, names) = worst(refused);
    let gpus = if names.is_empty() { String::new() } else { format!(" with {}", names.join(", ")) };
    let first = first(text);
    let message = match certain {
        true => format!(
            "the container runtime does not start this image on driver {}{gpus}: it requires {first}, and names no \
             exception for them",
            driver.given
        ),
        false => format!(
            "whether the container runtime starts this image on driver {}{gpus} depends on the brand that the driver \
             reports: it requires {first}, or another driver for some brands",
            driver.given
        ),
    };
    let native = least_cuda(requirement).and_then(|cuda| facts.native(cuda));
    // Where the libraries themselves run, the requirement is all that stands against it.
    let runs = stack::runtimes(case.inventory, case.links)
        .keys()
        .all(|cuda| facts.tier(&driver.decides, *cuda, false).is_some());
    let mut fix = match &native {
        Some(native) => format!("install driver {} or later", native.driver),
        None => "install a driver that meets it".to_owned(),
    };
    if runs {
        fix +=
            "; the libraries in it run on this driver, so that NVIDIA_DISABLE_REQUIRE=1 for the container does as well";
    }
    let seen = Evidence::observed(format!("{variable} of the image"), text);
    let native = native.map(|native| Evidence::fact(native.claim, native.source));
    let mut finding = Diagnostic::error(RULE.code, message, seen).fix(fix);
    finding.evidence.extend(native);
    if !certain {
        finding.severity = Severity::Warning;
    }
    Ok(finding)
}
