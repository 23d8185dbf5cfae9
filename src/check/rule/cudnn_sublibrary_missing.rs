//! Parts of cuDNN that it opens by name when it is used, and that are not found.

use std::sync::Arc;

use crate::check::{Case, Claims, Fault, Outcome, Rule, Symptom, evidence, grouped, stack};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::inventory::Library;

pub const RULE: Rule = Rule {
    code: "cudnn-sublibrary-missing",
    level: Severity::Error,
    page: include_str!("../page/cudnn-sublibrary-missing.md"),
    run,
};

fn run(case: &Case<'_>, claims: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let mut missing = claims.take(|symptom| match symptom.fault {
        Fault::Open(edge, by) => {
            let cudnn = stack::identity(&by.library).is_some_and(|identity| identity.library == "cudnn");
            cudnn && edge.candidates.iter().all(|name| name.starts_with("libcudnn_"))
        }
        Fault::Load(_) => false,
    });
    // A wheel for processors and GPUs alike carries the file that opens, and nothing here is meant for a GPU.
    let for_gpus = case.machine.is_some_and(|machine| !machine.gpus.is_empty()) || has_parts(case);
    missing.retain(|symptom| for_gpus || !symptom.by().is_some_and(is_carried));
    let names: Vec<&str> = missing.iter().filter_map(Symptom::unresolved).collect();
    // Other parts need it too: that is its consequence.
    let needed = claims.take(|symptom| symptom.unresolved().is_some_and(|name| names.contains(&name)));
    let findings = grouped(&missing, Symptom::by_name).into_iter().map(|(_, group)| {
        let of_group = |other: &&Symptom<'_>| group.iter().any(|symptom| symptom.unresolved() == other.unresolved());
        evidence::finding(finding(case, &group), needed.iter().filter(of_group).map(evidence::symptom))
    });
    Ok(Outcome::Ran(findings.collect()))
}

/// Whether any part of cuDNN is here.
fn has_parts(case: &Case<'_>) -> bool {
    let part = |library: &Arc<Library>| {
        stack::identity(library).is_some_and(|identity| identity.library == "cudnn" && identity.component.is_some())
    };
    case.inventory.libraries().iter().any(part)
}

/// Whether a wheel carries a library under a name of its own: `libcudnn-74a4c495.so.9.1.0`.
fn is_carried(library: &Arc<Library>) -> bool {
    library.path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libcudnn-"))
}

fn finding(case: &Case<'_>, symptoms: &[&Symptom<'_>]) -> Diagnostic {
    let (symptom, rest) = (symptoms[0], &symptoms[1..]);
    let name = symptom.unresolved().unwrap_or("a part of cuDNN");
    let names = match rest.len() {
        0 => format!("{name} is"),
        count => format!("{name} and {count} more are"),
    };
    let by = symptom.by();
    let subject = by.map_or(String::new(), |library| library.name.clone());
    let elsewhere = part_named(case, name);
    let links = evidence::dangling(case, symptom);
    let why =
        links.first().map_or(String::new(), |(link, to)| format!(" ({link} is a link to {to}, which is not there)"));
    let message = match elsewhere {
        Some(file) => format!(
            "{names} not found by {subject}, though {} is there, where the loader does not look for it: {} with \
             \"Unable to load any of {{{}}}\"",
            file.name,
            symptom.fails(),
            candidates(symptom)
        ),
        None => format!(
            "{names} missing{why}: {} may succeed, and {} with \"Unable to load any of {{{}}}\"",
            import(case, by),
            symptom.fails(),
            candidates(symptom)
        ),
    };
    let package = by.and_then(|library| stack::package(case.inventory, library));
    let fix = match (elsewhere.and_then(|file| file.path.parent()), package) {
        (Some(folder), _) => {
            format!("put {} on LD_LIBRARY_PATH; it works without only after torch has used its cuDNN", folder.display())
        }
        (None, _) if by.is_some_and(is_carried) => {
            format!("install the cuDNN that has {name}, and put its folder on LD_LIBRARY_PATH")
        }
        (None, Some(package)) => stack::reinstall(package),
        (None, None) => "install all of cuDNN, from one package".into(),
    };
    let finding = Diagnostic::error(RULE.code, message, evidence::symptom(symptom)).about(subject);
    let more = rest.iter().map(|symptom| evidence::symptom(symptom));
    let more = more.chain(by.map(|library| evidence::version(library))).chain(evidence::search(symptom));
    evidence::finding(finding, more.collect::<Vec<Evidence>>()).fix(fix)
}

/// What works without the part.
fn import(case: &Case<'_>, by: Option<&Arc<Library>>) -> String {
    match by.filter(|library| is_carried(library)).and_then(|library| stack::package(case.inventory, library)) {
        Some(package) => format!("`import {}`", package.name),
        None if stack::distribution(case.inventory, "torch").is_some() => "`import torch`".into(),
        None => "an import".into(),
    }
}

/// A file of the environment that has the name of the part, where another looks for it.
fn part_named<'a>(case: &Case<'a>, name: &str) -> Option<&'a Arc<Library>> {
    let named =
        |library: &&Arc<Library>| library.object.as_ref().is_ok_and(|object| object.soname.as_deref() == Some(name));
    case.inventory.libraries().iter().find(named)
}

fn candidates(symptom: &Symptom<'_>) -> String {
    match symptom.fault {
        Fault::Open(edge, _) => edge.candidates.join(", "),
        Fault::Load(_) => String::new(),
    }
}
