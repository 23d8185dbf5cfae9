//! The environment is not what the lock says: packages that are missing, of another version, or not in the lock.

use std::collections::BTreeSet;
use std::path::Path;

use crate::check::{Case, Claims, Locked, Outcome, Rule, stack};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::inventory::SubjectKind;
use crate::version::Pep440;

pub const RULE: Rule =
    Rule { code: "lock-drift", level: Severity::Error, page: include_str!("../page/lock-drift.md"), run };

fn run(case: &Case<'_>, _: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let Some(locked) = case.locked else { return Ok(Outcome::Skipped("no lock given".into())) };
    if case.inventory.packages.is_empty() {
        return Ok(Outcome::Skipped("no Python packages here".into()));
    }
    if matches!(case.inventory.subject.kind, SubjectKind::Library | SubjectKind::Wheel) {
        return Ok(Outcome::Skipped("one file is not what a lock is about".into()));
    }
    let mut findings = Vec::new();
    let mut wrong = Vec::new();
    for (name, package) in &locked.target.packages {
        let fact = match stack::distribution(case.inventory, name.as_str()) {
            None => format!("not installed; the lock has {}", package.version),
            Some(installed) if installed.version.parse::<Pep440>().is_ok_and(|version| version == package.version) => {
                continue;
            }
            Some(installed) => format!("{} is installed; the lock has {}", installed.version, package.version),
        };
        wrong.push(Evidence::observed(name.to_string(), fact));
    }
    findings.extend(differs(case, ["package", "packages"], wrong));
    // What a process has not loaded may be there all the same.
    if case.inventory.process.is_none() {
        findings.extend(differs(case, ["library", "libraries"], missing_libraries(case, locked)));
    }
    let packages = case.matrix.package()?;
    let extra = case.inventory.packages.iter().filter(|package| packages.is_gpu(&package.name));
    let extra = extra.filter(|package| !locked.target.packages.contains_key(&package.name));
    for package in extra {
        let message = format!("{} {} is installed and not in the lock", package.name, package.version);
        let seen = Evidence::observed(package.name.to_string(), "not in the lock");
        findings.push(Diagnostic::note(RULE.code, message, seen).about(package.name.to_string()));
    }
    Ok(Outcome::Ran(findings))
}

fn differs(case: &Case<'_>, [one, several]: [&str; 2], wrong: Vec<Evidence>) -> Option<Diagnostic> {
    let count = wrong.len();
    let (what, is) = if count == 1 { (one, "is") } else { (several, "are") };
    let mut wrong = wrong.into_iter();
    let message = format!("{count} {what} of {} {is} not what the lock says", case.inventory.subject.given.display());
    let mut finding = Diagnostic::error(RULE.code, message, wrong.next()?);
    finding.evidence.extend(wrong);
    Some(
        finding
            .fix("gpulock export requirements -o requirements.txt && pip install --require-hashes -r requirements.txt"),
    )
}

/// Libraries of the lock that are not where their package puts them, or have another size.
fn missing_libraries(case: &Case<'_>, locked: Locked<'_>) -> Vec<Evidence> {
    let here: BTreeSet<&Path> = case.inventory.libraries().iter().map(|library| library.path.as_path()).collect();
    let mut wrong = Vec::new();
    for (name, package) in &locked.target.packages {
        let Some(installed) = stack::distribution(case.inventory, name.as_str()) else { continue };
        if installed.version.parse::<Pep440>().is_ok_and(|version| version != package.version) {
            continue;
        }
        let Some((_, wheel)) = locked.lock.wheel(package) else { continue };
        for path in wheel.libraries.keys() {
            if !here.contains(installed.site.join(path).as_path()) {
                wrong.push(Evidence::observed(path, format!("not there; {name} {} has it", package.version)));
            }
        }
    }
    wrong
}
