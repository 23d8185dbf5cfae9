//! Libraries that need a newer glibc than the machines have.

use std::collections::{BTreeMap, BTreeSet};

use crate::check::{Case, Claims, Outcome, Rule, evidence, stack};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::inventory::{Library, LoaderKind};
use crate::version::Glibc;

pub const RULE: Rule =
    Rule { code: "glibc-too-new", level: Severity::Error, page: include_str!("../page/glibc-too-new.md"), run };

fn run<'a>(case: &Case<'a>, claims: &mut Claims<'a>) -> Result<Outcome, Failure> {
    if case.inventory.loader.kind == LoaderKind::Musl && stack::is_gpu_stack(case.inventory, case.matrix)? {
        let seen = Evidence::observed("C library", "musl");
        let message = "the C library here is musl: no CUDA library is built for it, none of them loads";
        return Ok(Outcome::Ran(vec![
            Diagnostic::error(RULE.code, message, seen).fix("use a base with glibc, such as ubuntu or debian"),
        ]));
    }
    let own = case.inventory.loader.glibc.as_ref().map(|fact| &fact.value);
    let Some(glibc) = case.glibc.into_iter().chain(own).min() else {
        return Ok(Outcome::Skipped("the glibc of the machines is not known".into()));
    };
    // The version itself, and the symbols that have it.
    let symptoms = claims.take(|symptom| {
        let of_glibc = symptom.version().is_some_and(|version| version.starts_with("GLIBC_"));
        of_glibc && symptom.by().and_then(|by| floor(by)).is_some_and(|floor| floor > *glibc)
    });
    // The loader of this root says so itself, or the machines that are declared are older than it.
    let mut needs: BTreeMap<String, Vec<(Glibc, &Library)>> = BTreeMap::new();
    let failing = symptoms.iter().filter_map(|symptom| symptom.by()).map(|by| by.as_ref());
    for library in loaded(case, failing) {
        let Some(floor) = floor(library) else { continue };
        if floor > *glibc {
            let owner =
                stack::package(case.inventory, library).map_or(library.name.clone(), |one| one.name.to_string());
            needs.entry(owner).or_default().push((floor, library));
        }
    }
    let mut findings = Vec::new();
    for (owner, mut libraries) in needs {
        libraries.sort_by(|a, b| b.0.cmp(&a.0));
        let Some((floor, highest)) = libraries.first() else { continue };
        let package = stack::package(case.inventory, highest);
        let what = package.map_or(owner, |package| format!("{} {}", package.name, package.version));
        let message =
            format!("{what} needs glibc {floor} and the machines have {glibc}: `version GLIBC_{floor}' not found");
        let each =
            libraries.iter().map(|(floor, library)| Evidence::elf(&library.name, format!("needs GLIBC_{floor}")));
        let mut each = each.chain(symptoms.iter().map(evidence::symptom)).collect::<Vec<_>>().into_iter();
        let Some(first) = each.next() else { continue };
        let finding = Diagnostic::error(RULE.code, message, first).about(&highest.name);
        findings.push(evidence::finding(finding, each).fix(match package {
            Some(package) => format!(
                "take a release of {} that is built for glibc {glibc} (the tag of its wheel may promise less than it \
                 needs), or machines with glibc {floor}",
                package.name
            ),
            None => format!("build it on a system with glibc {glibc} or older"),
        }));
    }
    Ok(Outcome::Ran(findings))
}

/// The least glibc that has all versions which a library asks for.
fn floor(library: &Library) -> Option<Glibc> {
    library.object.as_ref().ok()?.floor("GLIBC")?.parse().ok()
}

/// What some process loads of the subject, and what fails to load wherever it is from.
fn loaded<'a>(case: &Case<'a>, failing: impl Iterator<Item = &'a Library>) -> Vec<&'a Library> {
    let mut inodes = BTreeSet::new();
    let loads = case.links.contexts.iter().flat_map(|context| &context.loads).map(|load| load.library.as_ref());
    let roots = case.links.contexts.iter().flat_map(|context| &context.roots);
    // What is opened in vain when it is optional is not loaded.
    let roots = roots.filter(|root| root.optional.is_none()).map(|root| root.library.as_ref());
    let own = loads.chain(roots).filter(|library| library.package.is_some());
    own.chain(failing).filter(|library| inodes.insert(library.inode)).collect()
}
