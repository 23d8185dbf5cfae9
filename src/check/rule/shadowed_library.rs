//! A library of the environment that another file of the same name takes the place of: LD_LIBRARY_PATH or the system wins.

use std::sync::Arc;

use crate::check::{Case, Claims, Outcome, Rule, Symptom, evidence, stack};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::inventory::Library;
use crate::link::{Found, Load};

pub const RULE: Rule =
    Rule { code: "shadowed-library", level: Severity::Error, page: include_str!("../page/shadowed-library.md"), run };

/// One foreign folder, and what is taken from it in place of what.
type Taken<'a> = (String, Vec<(&'a Load, &'a Arc<Library>)>);

fn run<'a>(case: &Case<'a>, claims: &mut Claims<'a>) -> Result<Outcome, Failure> {
    // One finding for each folder that wins.
    let mut folders: Vec<Taken<'_>> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for load in case.links.contexts.iter().flat_map(|context| &context.loads) {
        let outside =
            matches!(load.found, Found::LibraryPath { .. } | Found::Preload | Found::Cache | Found::Default { .. });
        let told = claims.is_blamed(&load.library);
        if !outside || told || load.library.package.is_some() || !seen.insert(load.library.inode) {
            continue;
        }
        let Some(own) = own(case, &load.library) else { continue };
        let folder = load.path.parent().map_or(String::new(), |folder| folder.display().to_string());
        match folders.iter_mut().find(|(known, _)| *known == folder) {
            Some((_, taken)) => taken.push((load, own)),
            None => folders.push((folder, vec![(load, own)])),
        }
    }
    let findings = folders.iter().map(|(folder, taken)| {
        // What the foreign file lacks is its consequence.
        let lacks = claims.take(|symptom| {
            let is_taken = |library: &Arc<Library>| taken.iter().any(|(load, _)| load.library.inode == library.inode);
            symptom.definer().is_some_and(is_taken)
        });
        finding(folder, taken, &lacks)
    });
    Ok(Outcome::Ran(findings.collect()))
}

/// The library of an installed package that has the same name: what was meant.
fn own<'a>(case: &Case<'a>, foreign: &Library) -> Option<&'a Arc<Library>> {
    let identity = stack::identity(foreign)?;
    let soname = foreign.object.as_ref().ok()?.soname.as_deref()?;
    case.inventory.libraries().iter().find(|library| {
        library.package.is_some()
            && library.inode != foreign.inode
            && library.path.file_name().is_some_and(|name| name == soname)
            && stack::identity(library).is_some_and(|own| own.library == identity.library)
    })
}

fn finding(folder: &str, taken: &[(&Load, &Arc<Library>)], lacks: &[Symptom<'_>]) -> Diagnostic {
    let version = |library: &Library| stack::identity(library).and_then(|identity| identity.version.clone());
    let differs = taken.iter().any(|(load, own)| match (version(&load.library), version(own)) {
        (Some(foreign), Some(own)) => foreign != own,
        _ => false,
    });
    let (first, own) = taken[0];
    let names = match taken.len() {
        1 => format!("{} is", first.requested),
        count => format!("{} and {} more are", first.requested, count - 1),
    };
    let versions = match (version(&first.library), version(own)) {
        (Some(foreign), Some(own)) => format!(" ({foreign} in place of {own})"),
        _ => String::new(),
    };
    let rule = match &first.found {
        Found::LibraryPath { .. } => "LD_LIBRARY_PATH",
        Found::Preload => "LD_PRELOAD",
        _ => "the system's library path",
    };
    let fails =
        lacks.first().map_or(String::new(), |symptom| format!(": {} fails, {}", symptom.when(), symptom.text()));
    let message = format!("{names} taken from {folder} by {rule}, not from the environment{versions}{fails}");
    let severity = if differs || !lacks.is_empty() { Severity::Error } else { Severity::Warning };
    let told = |library: &Library| version(library).unwrap_or_else(|| "version unknown".into());
    let mut each = taken.iter().map(|(load, own)| {
        let fact = format!("{}, in place of {} ({})", told(&load.library), own.name, told(own));
        Evidence::observed(load.path.display().to_string(), fact)
    });
    let seen = each.next().unwrap_or_else(|| evidence::found(first));
    let finding = Diagnostic { severity, ..Diagnostic::error(RULE.code, message, seen) };
    let fix = match &first.found {
        Found::LibraryPath { .. } => format!("take {folder} out of LD_LIBRARY_PATH"),
        Found::Preload => "take it out of LD_PRELOAD".to_owned(),
        _ => {
            let first = own.path.parent().map_or(String::new(), |folder| folder.display().to_string());
            format!("remove the system's copy in {folder}, or put {first} first on LD_LIBRARY_PATH")
        }
    };
    let each: Vec<Evidence> = each.chain(lacks.iter().map(evidence::symptom)).collect();
    evidence::finding(finding.about(first.path.display().to_string()), each).fix(fix)
}
