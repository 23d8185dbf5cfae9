//! Libraries that ask for an executable stack, which glibc 2.41 and later refuse to give to what is opened at run time.

use crate::check::{Case, Claims, Outcome, Rule, stack};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::elf::{Kind, Machine, Stack};
use crate::version::Glibc;

pub const RULE: Rule =
    Rule { code: "executable-stack", level: Severity::Error, page: include_str!("../page/executable-stack.md"), run };

/// The glibc that refuses, and where that is from.
const REFUSES: [u32; 2] = [2, 41];
const SOURCE: &str = "glibc 2.41 release notes: dlopen no longer makes the stack executable";

fn run(case: &Case<'_>, _: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let refuses = Glibc::from_numbers(&REFUSES);
    let own = case.inventory.loader.glibc.as_ref().map(|fact| &fact.value);
    let glibc = case.glibc.or(own);
    let refused = glibc.is_some_and(|glibc| *glibc >= refuses);
    let mut findings = Vec::new();
    for library in case.inventory.libraries() {
        let Ok(object) = &library.object else { continue };
        let asks = match object.stack {
            Stack::Executable => "PT_GNU_STACK is executable",
            // The default of the architecture: executable on x86-64, not so on aarch64 (glibc, stackinfo.h).
            Stack::Absent if object.machine == Machine::X86_64 => "no PT_GNU_STACK, which counts as executable",
            Stack::Absent | Stack::Plain => continue,
        };
        if object.kind != Kind::Shared {
            continue;
        }
        let (name, seen) = (&library.name, Evidence::elf(&library.name, asks));
        let fact = Evidence::fact(format!("glibc {refuses} and later refuse it"), SOURCE);
        let finding = match (refused, glibc) {
            (true, Some(glibc)) => {
                let message = format!(
                    "{name} asks for an executable stack, and glibc {glibc} refuses to load it: \"cannot enable \
                     executable stack as shared object requires: Invalid argument\""
                );
                Diagnostic::error(RULE.code, message, seen)
            }
            _ => {
                let message = format!(
                    "{name} asks for an executable stack: loading it makes the stack of the process executable, and \
                     glibc {refuses} and later refuse to load it"
                );
                Diagnostic::warning(RULE.code, message, seen)
            }
        };
        let package = stack::package(case.inventory, library);
        let newer = package
            .map_or(String::new(), |package| format!("a newer release of {} may be built without it; ", package.name));
        findings.push(
            finding
                .about(name)
                .and(fact)
                .fix(format!("{newer}`patchelf --clear-execstack {}` clears the flag", library.path.display())),
        );
    }
    Ok(Outcome::Ran(findings))
}
