//! Files that are named as libraries and cannot be read as such.

use crate::check::{Case, Claims, Fault, Outcome, Rule, evidence, stack};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::elf;
use crate::inventory::{DriverFile, DriverFileKind, Library, Role};
use crate::link::Problem;

pub const RULE: Rule = Rule {
    code: "library-unreadable",
    level: Severity::Error,
    page: include_str!("../page/library-unreadable.md"),
    run,
};

/// Damaged parts of one file that are shown besides the first.
const PARTS: usize = 4;

fn again(case: &Case<'_>, library: &Library) -> String {
    match stack::package(case.inventory, library) {
        Some(package) => stack::reinstall(package),
        None => "install what it belongs to again".to_owned(),
    }
}

fn is_left_by_mount(case: &Case<'_>, library: &Library) -> bool {
    let own = |file: &DriverFile| file.kind == DriverFileKind::Driver && file.file == library.path;
    library.size == 0 && case.inventory.driver.iter().any(own)
}

fn run(case: &Case<'_>, claims: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let mut findings = Vec::new();
    for library in case.inventory.libraries() {
        let seen = |why: &str| Evidence::elf(&library.name, why);
        match &library.object {
            Err(trouble) if trouble.problem == elf::Problem::Unsupported => {
                let message = format!("{} is not for a 64-bit machine and is not judged", library.name);
                findings.push(Diagnostic::note(RULE.code, message, seen(&trouble.to_string())).about(&library.name));
            }
            // What a mount left in an image is said by a rule of its own.
            Err(_) if case.inventory.subject.kind.is_root() && is_left_by_mount(case, library) => {}
            Err(trouble) => {
                let message = format!("{} cannot be read as a library: loading it fails", library.name);
                let finding = Diagnostic::error(RULE.code, message, seen(&trouble.to_string())).about(&library.name);
                // That it cannot be loaded either is its consequence.
                let fails = claims.take(|symptom| match symptom.fault {
                    Fault::Load(Problem::Unloadable { library: own, .. }) => own.inode == library.inode,
                    _ => false,
                });
                let when = fails.iter().map(|symptom| Evidence::observed("fails", symptom.when()));
                let finding = evidence::finding(finding, when);
                findings.push(finding.fix(again(case, library)));
            }
            // Programs are started, not loaded.
            Ok(_) if library.role == Role::Program => {}
            Ok(object) => {
                let damage =
                    object.damaged.iter().chain(&object.gpu_code.damaged).chain(&object.gpu_code_embedded.damaged);
                let cut = object.damaged.iter().any(|trouble| trouble.problem == elf::Problem::CutShort);
                let mut parts = damage.map(|trouble| seen(&trouble.to_string()));
                let first = parts.next();
                if let Some(first) = first.clone().filter(|_| cut) {
                    let message = format!(
                        "{} is cut short: the loader maps it, and the first use of what is missing ends the process (SIGBUS) \
                         or reads zeros",
                        library.name
                    );
                    let finding = Diagnostic::error(RULE.code, message, first).about(&library.name);
                    findings.push(evidence::finding(finding, parts.take(PARTS)).fix(again(case, library)));
                } else if let Some(first) = first {
                    let message = format!("a part of {} cannot be read and is not judged", library.name);
                    let finding = Diagnostic::warning(RULE.code, message, first).about(&library.name);
                    findings.push(evidence::finding(finding, parts.take(PARTS)));
                }
            }
        }
    }
    for trouble in &case.inventory.troubles {
        let message = format!("{} cannot be read: {}", trouble.name, trouble.why);
        let seen = Evidence::observed(&trouble.name, &trouble.why);
        let finding = Diagnostic::error(RULE.code, message, seen).about(&trouble.name);
        findings.push(finding.fix("read as a user who may, or remove what should not be there"));
    }
    Ok(Outcome::Ran(findings))
}
