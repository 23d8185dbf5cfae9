//! A library of a running process that is not the file of its environment: which path won, and why.

use super::shadowed_library::{Taken, finding, lacks, own};
use crate::check::{Case, Claims, Outcome, Rule};
use crate::diag::{Evidence, Failure, Severity};
use crate::link::Load;

pub const RULE: Rule = Rule {
    code: "loaded-from-elsewhere",
    level: Severity::Error,
    page: include_str!("../page/loaded-from-elsewhere.md"),
    run,
};

fn run<'a>(case: &Case<'a>, claims: &mut Claims<'a>) -> Result<Outcome, Failure> {
    if case.inventory.process.is_none() {
        return Ok(Outcome::Ran(Vec::new()));
    }
    let Some(context) = case.links.contexts.first() else { return Ok(Outcome::Ran(Vec::new())) };
    // One finding for each folder that something is mapped from; what would be opened from there later goes with it.
    let mut folders: Vec<Taken<'a>> = Vec::new();
    for (at, load) in context.loads.iter().enumerate() {
        if load.library.package.is_some() || claims.is_blamed(&load.library) {
            continue;
        }
        let folder = load.path.parent().map_or(String::new(), |folder| folder.display().to_string());
        let known = folders.iter().position(|(known, _)| *known == folder);
        if at >= context.lazy && known.is_none() {
            continue;
        }
        let Some(own) = own(case, &load.library)? else { continue };
        match known {
            Some(known) => folders[known].1.push((load, own)),
            None => folders.push((folder, vec![(load, own)])),
        }
    }
    let mut findings = Vec::new();
    for (folder, taken) in &folders {
        let fails = claims.take(|symptom| taken.iter().any(|(load, own)| lacks(symptom, &load.library, own)));
        taken.iter().for_each(|(load, _)| claims.blame(&load.library));
        let finding = finding(RULE.code, folder, taken, &fails);
        findings.push(match by(case, taken[0].0) {
            Some(evidence) => finding.and(evidence),
            None => finding,
        });
    }
    Ok(Outcome::Ran(findings))
}

/// Who asked for it, and where the search for it leads.
fn by(case: &Case<'_>, load: &Load) -> Option<Evidence> {
    let context = case.links.contexts.first()?;
    let running = case.links.running.as_ref()?;
    if let Some(by) = load.by.and_then(|by| context.loads.get(by)) {
        return Some(Evidence::observed(load.path.display().to_string(), format!("asked for by {}", by.library.name)));
    }
    let (_, by, meant) =
        running.diverted.iter().find(|(at, _, _)| context.loads[*at].library.inode == load.library.inode)?;
    let by = &context.loads.get(*by)?.library.name;
    let fact = format!("the search of {by} leads to {}: this file was opened before, by its path", meant.name);
    Some(Evidence::observed(load.path.display().to_string(), fact))
}
