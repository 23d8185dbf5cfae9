//! A library of the environment that another file of the same name takes the place of: LD_LIBRARY_PATH or the system wins.

use std::sync::Arc;

use crate::check::{Case, Claims, Outcome, Rule, Symptom, evidence, stack};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::inventory::Library;
use crate::link::{Found, Load};

pub const RULE: Rule =
    Rule { code: "shadowed-library", level: Severity::Error, page: include_str!("../page/shadowed-library.md"), run };

/// One foreign folder, and what is taken from it in place of what.
pub(super) type Taken<'a> = (String, Vec<(&'a Load, Arc<Library>)>);

fn run<'a>(case: &Case<'a>, claims: &mut Claims<'a>) -> Result<Outcome, Failure> {
    // One finding for each folder that wins.
    let mut folders: Vec<Taken<'a>> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for load in case.links.contexts.iter().flat_map(|context| &context.loads) {
        let outside =
            matches!(load.found, Found::LibraryPath { .. } | Found::Preload | Found::Cache | Found::Default { .. });
        let told = claims.is_blamed(&load.library);
        if !outside || told || load.library.package.is_some() || !seen.insert(load.library.inode) {
            continue;
        }
        let Some(own) = own(case, &load.library)? else { continue };
        let folder = load.path.parent().map_or(String::new(), |folder| folder.display().to_string());
        match folders.iter_mut().find(|(known, _)| *known == folder) {
            Some((_, taken)) => taken.push((load, own)),
            None => folders.push((folder, vec![(load, own)])),
        }
    }
    let mut findings = Vec::new();
    for (folder, taken) in &folders {
        // What the one that was meant would have is its consequence.
        let fails = claims.take(|symptom| taken.iter().any(|(load, own)| lacks(symptom, &load.library, own)));
        findings.push(finding(RULE.code, folder, taken, &fails));
    }
    Ok(Outcome::Ran(findings))
}

/// Whether a symptom is that `foreign` does not have what `own`, whose place it takes, has.
pub(super) fn lacks(symptom: &Symptom<'_>, foreign: &Library, own: &Library) -> bool {
    if let Some((version, library)) = symptom.version_missing() {
        let has = own.object.as_ref().is_ok_and(|object| object.version_definitions.iter().any(|one| one == version));
        return library.inode == foreign.inode && has;
    }
    let (Some(symbol), Some(by)) = (symptom.undefined(), symptom.by()) else { return false };
    let soname = foreign.object.as_ref().ok().and_then(|object| object.soname.as_ref());
    let asks = by.object.as_ref().is_ok_and(|object| soname.is_some_and(|soname| object.needed.contains(soname)));
    asks && own.object.as_ref().is_ok_and(|object| object.symbols.find(symbol).len() > 0)
}

/// The library of an installed package that has the same name: what was meant. A process may not have loaded it.
pub(super) fn own(case: &Case<'_>, foreign: &Library) -> Result<Option<Arc<Library>>, Failure> {
    let Some(identity) = stack::identity(foreign) else { return Ok(None) };
    let Some(soname) = foreign.object.as_ref().ok().and_then(|object| object.soname.as_deref()) else {
        return Ok(None);
    };
    let packages = case.matrix.package()?;
    let is_it = |library: &Arc<Library>| {
        stack::package(case.inventory, library)
            .is_some_and(|package| !packages.is_private(&package.name, identity.library))
            && library.inode != foreign.inode
            && library.path.file_name().is_some_and(|name| name == soname)
            && stack::identity(library).is_some_and(|own| own.library == identity.library)
    };
    if case.inventory.process.is_none() {
        return Ok(case.inventory.libraries().iter().find(|library| is_it(library)).cloned());
    }
    let files = case.inventory.packages.iter().flat_map(|package| &package.files);
    let mut named = files.filter(|file| file.path.file_name().is_some_and(|name| name == soname));
    Ok(named.find_map(|file| case.inventory.at(&file.path).filter(is_it)))
}

pub(super) fn finding(
    code: &'static str,
    folder: &str,
    taken: &[(&Load, Arc<Library>)],
    fails: &[Symptom<'_>],
) -> Diagnostic {
    let version = |library: &Library| stack::identity(library).and_then(|identity| identity.version.clone());
    let differs = taken.iter().any(|(load, own)| match (version(&load.library), version(own)) {
        (Some(foreign), Some(own)) => foreign != own,
        _ => false,
    });
    let (first, own) = &taken[0];
    let names = match taken.len() {
        1 => format!("{} is", file_name(&first.requested)),
        count => format!("{} and {} more are", file_name(&first.requested), count - 1),
    };
    let versions = match (version(&first.library), version(own)) {
        (Some(foreign), Some(own)) => format!(" ({foreign} in place of {own})"),
        _ => String::new(),
    };
    let rule = match &first.found {
        Found::LibraryPath { .. } => "LD_LIBRARY_PATH",
        Found::Preload => "LD_PRELOAD",
        Found::Path => "its path",
        _ => "the system's library path",
    };
    let fault = fails.first().map_or(String::new(), |symptom| {
        let lacks = symptom.undefined().or(symptom.version_missing().map(|(version, _)| version)).unwrap_or_default();
        format!(", and lacks {lacks}: {}", symptom.fails())
    });
    let message = format!("{names} taken from {folder} by {rule}, not from the environment{versions}{fault}");
    let severity = if differs || !fails.is_empty() { Severity::Error } else { Severity::Warning };
    let told = |library: &Library| version(library).unwrap_or_else(|| "version unknown".into());
    let mut each = taken.iter().map(|(load, own)| {
        let fact = format!("{}, in place of {} ({})", told(&load.library), own.name, told(own));
        Evidence::observed(load.path.display().to_string(), fact)
    });
    let seen = each.next().unwrap_or_else(|| evidence::found(first));
    let finding = Diagnostic { severity, ..Diagnostic::error(code, message, seen) };
    let fix = match &first.found {
        Found::LibraryPath { .. } => format!("take {folder} out of LD_LIBRARY_PATH"),
        Found::Preload => "take it out of LD_PRELOAD".to_owned(),
        Found::Path => format!("find out who opens {} by its path", first.path.display()),
        _ => {
            let first = own.path.parent().map_or(String::new(), |folder| folder.display().to_string());
            format!("remove the system's copy in {folder}, or put {first} first on LD_LIBRARY_PATH")
        }
    };
    let each = each.chain(fails.iter().map(evidence::symptom));
    evidence::finding(finding.about(first.path.display().to_string()), each.collect::<Vec<_>>()).fix(fix)
}

/// Without the folder, where it was asked for by its path.
fn file_name(requested: &str) -> &str {
    requested.rsplit('/').next().unwrap_or(requested)
}
