//! Two different releases of one library in one process.

use std::sync::Arc;

use crate::check::{Case, Claims, Outcome, Rule, evidence, stack};
use crate::diag::{Diagnostic, Failure, Severity};
use crate::link::{Context, Load};

pub const RULE: Rule =
    Rule { code: "duplicate-soname", level: Severity::Warning, page: include_str!("../page/duplicate-soname.md"), run };

fn run(case: &Case<'_>, claims: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let mut seen = std::collections::BTreeSet::new();
    let mut findings = Vec::new();
    for context in &case.links.contexts {
        for (first, second) in pairs(context) {
            // Of a running process it is said where each comes from.
            let told = case.inventory.process.is_some()
                && (claims.is_blamed(&first.library) || claims.is_blamed(&second.library));
            if !told && seen.insert((first.library.inode, second.library.inode)) {
                findings.push(finding(context, first, second));
            }
        }
    }
    Ok(Outcome::Ran(findings))
}

/// Loads of one name and of different releases. A copy that a wheel renamed for itself alone (`libcudart-e8e8b82a.so.12`)
/// gets in nobody's way.
fn pairs(context: &Context) -> Vec<(&Arc<Load>, &Arc<Load>)> {
    let name = |load: &Load| {
        let soname = load.library.object.as_ref().ok()?.soname.clone()?;
        let own = load.library.path.file_name()?.to_str()?;
        (own == soname || own.starts_with(&format!("{soname}."))).then_some(soname)
    };
    let version = |load: &Load| stack::identity(&load.library).and_then(|identity| identity.version.clone());
    let mut pairs = Vec::new();
    for (i, first) in context.loads.iter().enumerate() {
        let (Some(soname), Some(release)) = (name(first), version(first)) else { continue };
        let other = |second: &&Arc<Load>| {
            name(second).as_ref() == Some(&soname) && version(second).is_some_and(|other| other != release)
        };
        pairs.extend(context.loads[i + 1..].iter().find(other).map(|second| (first, second)));
    }
    pairs
}

fn finding(context: &Context, first: &Load, second: &Load) -> Diagnostic {
    let soname = first.library.object.as_ref().ok().and_then(|object| object.soname.clone()).unwrap_or_default();
    let message = format!(
        "two releases of {soname} are loaded into one process ({}): which one serves a call depends on the order of imports",
        context.name
    );
    let finding = Diagnostic::warning(RULE.code, message, evidence::version(&first.library)).about(soname);
    let more = [evidence::found(first), evidence::version(&second.library), evidence::found(second)];
    evidence::finding(finding, more).fix("take the packages from one resolve, so that they share one release")
}
