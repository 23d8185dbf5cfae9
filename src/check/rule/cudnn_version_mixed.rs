//! Parts of one cuDNN that are of different versions.
//!
//! cuDNN 8 and 9 are one library in several files. Each part checks the version of the part below it for equality when it
//! is first used, and uses symbols that are not the same in all releases. The shim `libcudnn.so` is left out: it only
//! forwards, and works with parts of other versions.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::check::{Case, Claims, Outcome, Rule, evidence, stack};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::inventory::Library;
use crate::link::Context;

pub const RULE: Rule = Rule {
    code: "cudnn-version-mixed",
    level: Severity::Error,
    page: include_str!("../page/cudnn-version-mixed.md"),
    run,
};

/// More than this many symbols that parts of two releases lack say nothing new.
const SHOWN: usize = 10;

fn run(case: &Case<'_>, claims: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let mut seen: Vec<Vec<(u64, u64)>> = Vec::new();
    let mut findings = Vec::new();
    for context in &case.links.contexts {
        for parts in sets(context, claims) {
            let Some((usual, odd)) = divide(&parts) else { continue };
            let inodes: Vec<(u64, u64)> = odd.iter().map(|library| library.inode).collect();
            if seen.contains(&inodes) {
                continue;
            }
            seen.push(inodes);
            // Of a running process it is known why: a part was replaced, or is not the environment's.
            if parts.iter().any(|library| claims.is_blamed(library)) {
                continue;
            }
            odd.iter().for_each(|library| claims.blame(library));
            findings.push(finding(case, &usual, &odd, &parts, claims));
        }
    }
    Ok(Outcome::Ran(findings))
}

/// The parts of each cuDNN major that a process loads or tries to load, without the shim.
fn sets(context: &Context, claims: &Claims<'_>) -> Vec<Vec<Arc<Library>>> {
    let mut sets: BTreeMap<String, Vec<Arc<Library>>> = BTreeMap::new();
    let here = claims.left().iter().filter(|symptom| symptom.context.is_some_and(|own| std::ptr::eq(own, context)));
    let failed = here.filter_map(|symptom| symptom.by());
    for library in context.loads.iter().map(|load| &load.library).chain(failed) {
        let Some(identity) = stack::identity(library).filter(|identity| identity.library == "cudnn") else { continue };
        let (Some(_), Some(version)) = (&identity.component, &identity.version) else { continue };
        let major = version.split('.').next().unwrap_or_default().to_owned();
        let set = sets.entry(major).or_default();
        if set.iter().all(|known| known.inode != library.inode) {
            set.push(Arc::clone(library));
        }
    }
    sets.into_values().collect()
}

/// The version of most parts, and the parts of another; `None` when there is one version only.
fn divide(parts: &[Arc<Library>]) -> Option<(String, Vec<Arc<Library>>)> {
    let version = |library: &Arc<Library>| stack::version_of(library, "cudnn").unwrap_or_default().to_owned();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    parts.iter().for_each(|part| *counts.entry(version(part)).or_default() += 1);
    if counts.len() < 2 {
        return None;
    }
    let (usual, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    let odd = parts.iter().filter(|part| version(part) != usual).cloned().collect();
    Some((usual, odd))
}

fn finding(
    case: &Case<'_>,
    usual: &str,
    odd: &[Arc<Library>],
    parts: &[Arc<Library>],
    claims: &mut Claims<'_>,
) -> Diagnostic {
    let of_set = |library: &Arc<Library>| parts.iter().any(|part| part.inode == library.inode);
    let symptoms = claims.take(|symptom| {
        symptom.definer().is_some_and(of_set) || symptom.by().is_some_and(of_set) && symptom.undefined().is_some()
    });
    let names: Vec<String> = odd
        .iter()
        .map(|part| format!("{} is {}", file_name(part), stack::version_of(part, "cudnn").unwrap_or_default()))
        .collect();
    let consequence = match symptoms.first() {
        Some(symptom) => format!("{}, it cannot be loaded: {}", symptom.fails(), symptom.text()),
        None => {
            "cuDNN's own check returns CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH (1002) when it is first used".into()
        }
    };
    let message = format!("cuDNN is mixed: {}, the other parts are {usual}; {consequence}", names.join(", "));
    let other = parts.iter().find(|part| stack::version_of(part, "cudnn") == Some(usual));
    let subject = odd.first().map_or(String::new(), |part| part.name.clone());
    let first = odd.first().map_or_else(|| Evidence::observed("cuDNN", usual), |part| evidence::version(part));
    let fix = match odd.iter().chain(other).find_map(|part| stack::package(case.inventory, part)) {
        Some(package) if odd.iter().all(|part| part.package.is_some()) => stack::reinstall(package),
        Some(package) => format!(
            "keep the loader away from {}: it is not of {} {}",
            odd.first()
                .and_then(|part| part.path.parent())
                .map_or(String::new(), |folder| folder.display().to_string()),
            package.name,
            package.version
        ),
        None => format!("take all parts from cuDNN {usual}"),
    };
    let rest = odd.iter().skip(1).chain(other).map(|part| evidence::version(part));
    let rest = rest.chain(symptoms.iter().take(SHOWN).map(evidence::symptom)).collect::<Vec<_>>();
    evidence::finding(Diagnostic::error(RULE.code, message, first).about(subject), rest).fix(fix)
}

fn file_name(library: &Library) -> String {
    library.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
