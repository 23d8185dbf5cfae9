//! Evidence that several rules give in the same words.

use super::{Case, Fault, Symptom, stack};
use crate::diag::{Diagnostic, Evidence};
use crate::inventory::{Distribution, Library};
use crate::link::{Load, Problem, Step};
use crate::python::Requirement;

/// What the loader says, at the library that meets it.
pub fn symptom(symptom: &Symptom<'_>) -> Evidence {
    let by = symptom.by().map_or("Python", |library| &library.name);
    Evidence::elf(by, symptom.text())
}

/// Where a library was looked for in vain, as far as that was anywhere.
pub fn search(symptom: &Symptom<'_>) -> Option<Evidence> {
    let place = |step: &Step| match step.rule.dir() {
        Some(_) => step.rule.to_string(),
        None => format!("{}: {}", step.rule, step.path.display()),
    };
    // Each name that is tried is looked for in the same folders.
    let mut places: Vec<String> = Vec::new();
    for step in tried(symptom) {
        let place = place(step);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    (!places.is_empty()).then(|| Evidence::observed("looked for in", places.join("\n")))
}

/// Links at the places where a library was looked for that lead to nothing, each with what it names.
pub fn dangling(case: &Case<'_>, symptom: &Symptom<'_>) -> Vec<(String, String)> {
    let mut links: Vec<(String, String)> = Vec::new();
    for step in tried(symptom) {
        let Some((link, to)) = case.inventory.dangling(&step.path) else { continue };
        let link = (link, to.display().to_string());
        if !links.contains(&link) {
            links.push(link);
        }
    }
    links
}

fn tried<'a>(symptom: &Symptom<'a>) -> &'a [Step] {
    match symptom.fault {
        Fault::Load(Problem::Unresolved { tried, .. }) => tried,
        Fault::Open(edge, _) => &edge.tried,
        Fault::Load(_) => &[],
    }
}

/// Where a library is and which version it says it has.
pub fn version(library: &Library) -> Evidence {
    let fact = match stack::identity(library) {
        Some(identity) => {
            let part = identity.component.as_ref().map(|part| format!(" {part}")).unwrap_or_default();
            match (&identity.version, identity.readings.first()) {
                (Some(version), Some(reading)) => format!("{}{part} {version} ({})", identity.library, reading.method),
                _ => format!("{}{part}, version unknown", identity.library),
            }
        }
        None => "version unknown".into(),
    };
    Evidence::elf(&library.name, fact)
}

/// What a package requires of torch, beside the torch that is there.
pub fn unmet_torch(case: &Case<'_>, package: &Distribution, asks: &Requirement) -> Evidence {
    let installed = stack::distribution(case.inventory, "torch").map_or("none", |torch| torch.version.as_str());
    let fact = format!("requires torch{}; {installed} is installed", asks.specifiers);
    Evidence::observed(format!("{} {}", package.name, package.version), fact)
}

/// By which rule of the loader a library was found.
pub fn found(load: &Load) -> Evidence {
    Evidence::observed(
        load.path.display().to_string(),
        format!("loaded as {}, found by {}", load.requested, load.found),
    )
}

/// A finding with all its evidence; there is at least one piece.
pub fn finding(mut diagnostic: Diagnostic, evidence: impl IntoIterator<Item = Evidence>) -> Diagnostic {
    for one in evidence {
        if !diagnostic.evidence.contains(&one) {
            diagnostic.evidence.push(one);
        }
    }
    diagnostic
}
