//! Symbols that nothing in the process defines, and no rule knows why.

use crate::check::{Case, Claims, Outcome, Rule, Symptom, evidence, grouped, stack};
use crate::diag::{Diagnostic, Failure, Severity};

pub const RULE: Rule =
    Rule { code: "undefined-symbol", level: Severity::Error, page: include_str!("../page/undefined-symbol.md"), run };

fn run(case: &Case<'_>, claims: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let symptoms = claims.take(|symptom| symptom.undefined().is_some());
    let groups = grouped(&symptoms, Symptom::by_name);
    let finding = |(name, group): &(String, Vec<&Symptom<'_>>)| match is_for_absent_torch(case, group) {
        true => remark(name, group),
        false => finding(case, name, group),
    };
    Ok(Outcome::Ran(groups.iter().map(finding).collect()))
}

/// Whether a module is for processes with torch, which is not installed, and the module's own package does without it.
fn is_for_absent_torch(case: &Case<'_>, symptoms: &[&Symptom<'_>]) -> bool {
    let Some(own) = symptoms[0].by().and_then(|by| stack::package(case.inventory, by)) else { return false };
    let is_of_torch = |symptom: &&Symptom<'_>| symptom.undefined().is_some_and(stack::is_symbol_of_torch);
    stack::distribution(case.inventory, "torch").is_none()
        && !own.requires_outright("torch")
        && symptoms.iter().all(is_of_torch)
}

fn remark(name: &str, symptoms: &[&Symptom<'_>]) -> Diagnostic {
    let message = format!("{name} is for processes with torch, which is not installed: {}", symptoms[0].fails());
    Diagnostic::note(RULE.code, message, evidence::symptom(symptoms[0])).about(name)
}

fn finding(case: &Case<'_>, name: &str, symptoms: &[&Symptom<'_>]) -> Diagnostic {
    /// More than this many symbols say nothing new.
    const SHOWN: usize = 10;
    let first = symptoms[0];
    let symbol = first.undefined().unwrap_or_default();
    let others = match symptoms.len() {
        1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    let fails = if first.context.is_some() { first.fails() } else { "it does not load".into() };
    // A library that says its version is known to lack it, where the symbol's version names that library.
    let lacks = first.definer().and_then(|library| {
        let identity = stack::identity(library)?;
        Some((library, format!("{} {}", identity.library, identity.version.as_ref()?)))
    });
    let message = match &lacks {
        Some((_, release)) => format!("{release} is loaded and lacks {symbol}{others}, which {name} needs: {fails}"),
        None => format!("nothing defines {symbol}{others}, which {name} needs: {fails}"),
    };
    let finding = Diagnostic::error(RULE.code, message, evidence::symptom(first)).about(name);
    let severity = if first.context.is_some() { Severity::Error } else { Severity::Note };
    let more = symptoms.iter().skip(1).take(SHOWN).map(|symptom| evidence::symptom(symptom));
    let definer = first.definer().map(|library| evidence::version(library));
    let finding = Diagnostic { severity, ..evidence::finding(finding, more.chain(definer).collect::<Vec<_>>()) };
    let required = lacks.and_then(|(library, _)| stack::package(case.inventory, library));
    if let Some(install) = required.and_then(|package| stack::install_required(case.inventory, package)) {
        return finding.fix(install);
    }
    finding.fix(match first.by().and_then(|by| stack::package(case.inventory, by)) {
        Some(package) => format!("install the releases that {} {} was built with", package.name, package.version),
        None => "install the releases that it was built with, or build it again".into(),
    })
}
