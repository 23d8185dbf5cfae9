//! Two files of one library in a running process.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::check::{Case, Claims, Outcome, Rule, evidence, stack};
use crate::diag::{Diagnostic, Failure, Severity};
use crate::link::Load;

pub const RULE: Rule =
    Rule { code: "loaded-twice", level: Severity::Error, page: include_str!("../page/loaded-twice.md"), run };

fn run(case: &Case<'_>, claims: &mut Claims<'_>) -> Result<Outcome, Failure> {
    if case.inventory.process.is_none() {
        return Ok(Outcome::Ran(Vec::new()));
    }
    let Some(context) = case.links.contexts.first() else { return Ok(Outcome::Ran(Vec::new())) };
    let mut groups: BTreeMap<String, Vec<&Arc<Load>>> = BTreeMap::new();
    for load in context.loads.iter().take(context.lazy) {
        if let Some(name) = name(load).filter(|_| !claims.is_blamed(&load.library)) {
            groups.entry(name).or_default().push(load);
        }
    }
    let twice = groups.into_iter().filter(|(_, loads)| loads.len() > 1);
    let findings: Vec<Diagnostic> = twice.map(|(name, loads)| finding(case, &name, &loads, claims)).collect();
    Ok(Outcome::Ran(findings))
}

/// Files of one name are one library: that of the GPU stack by what they are, OpenMP's by its file. A copy that a wheel
/// renamed for itself alone (`libcudart-e8e8b82a.so.12`) gets in nobody's way.
fn name(load: &Load) -> Option<String> {
    let file = load.library.path.file_name()?.to_str()?;
    if file.starts_with("libgomp") {
        return Some("libgomp".into());
    }
    let soname = load.library.object.as_ref().ok()?.soname.as_deref()?;
    let own = file == soname || file.starts_with(&format!("{soname}."));
    let identity = stack::identity(&load.library).filter(|_| own)?;
    let part = identity.component.as_ref().map(|part| format!(" {part}")).unwrap_or_default();
    Some(format!("{}{part}", identity.library))
}

fn finding(case: &Case<'_>, name: &str, loads: &[&Arc<Load>], claims: &mut Claims<'_>) -> Diagnostic {
    let pid = case.inventory.process.as_ref().map_or(0, |process| process.pid);
    let version = |load: &Load| stack::identity(&load.library).and_then(|identity| identity.version.clone());
    let (first, second) = (loads[0], loads[1]);
    let differ = version(first) != version(second);
    let paths: Vec<String> = loads.iter().map(|load| load.path.display().to_string()).collect();
    // Each pool has its own threads: slower, and sound.
    let (severity, follows) = match name {
        "libgomp" => (Severity::Note, "each has threads of its own, together more than there are cores"),
        _ if differ => (Severity::Error, "which release serves a call depends on who asked first"),
        _ => (Severity::Warning, "state of one is unknown to the other"),
    };
    loads.iter().for_each(|load| claims.blame(&load.library));
    let message = format!("process {pid} has {name} {} times, {}: {follows}", loads.len(), paths.join(" and "));
    let finding = Diagnostic { severity, ..Diagnostic::error(RULE.code, message, evidence::version(&first.library)) };
    let more = loads.iter().flat_map(|load| [evidence::found(load), evidence::version(&load.library)]);
    let finding = evidence::finding(finding.about(paths[0].clone()), more.collect::<Vec<_>>());
    finding.fix(match name {
        "libgomp" => "set OMP_NUM_THREADS so that all pools together have as many threads as there are cores",
        _ => "take the packages from one resolve, so that they share one file, and other copies off LD_LIBRARY_PATH",
    })
}
