//! Symbols that nothing in the process defines, and no rule knows why.

use std::sync::Arc;

use crate::check::{Case, Claims, Outcome, Rule, Symptom, evidence, grouped, stack};
use crate::diag::{Diagnostic, Failure, Severity};
use crate::inventory::Library;
use crate::link::Load;

pub const RULE: Rule =
    Rule { code: "undefined-symbol", level: Severity::Error, page: include_str!("../page/undefined-symbol.md"), run };

fn run(case: &Case<'_>, claims: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let symptoms = claims.take(|symptom| symptom.undefined().is_some());
    let groups = grouped(&symptoms, Symptom::by_name);
    let finding = |(name, group): &(String, Vec<&Symptom<'_>>)| match hidden(group) {
        Some(library) => relies_on_python(name, library, group),
        None if is_for_absent_torch(case, group) => remark(name, group),
        None => finding(case, name, group),
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

/// The library that has the symbols and keeps them for itself, where the module asks it for nothing else: such a module
/// counts on Python code that opens the library for everything first.
fn hidden<'a>(symptoms: &[&Symptom<'a>]) -> Option<&'a Library> {
    let needed = &symptoms[0].by()?.object.as_ref().ok()?.needed;
    let definers: Option<Vec<&'a Arc<Library>>> = symptoms.iter().map(|symptom| symptom.hidden_definer()).collect();
    let definers = definers?;
    let packages: Vec<_> = definers.iter().map(|library| library.package).collect();
    let asks = |load: &Arc<Load>| needed.contains(&load.requested) && packages.contains(&load.library.package);
    let is_linked = symptoms[0].context?.loads.iter().any(asks);
    definers.first().copied().map(Arc::as_ref).filter(|_| !is_linked)
}

fn relies_on_python(name: &str, library: &Library, symptoms: &[&Symptom<'_>]) -> Diagnostic {
    let symbol = symptoms[0].undefined().unwrap_or_default();
    let message = format!(
        "{symbol}, which {name} needs, is in {}, which is opened for its own package alone: {} fails unless Python code \
         opens it with RTLD_GLOBAL first; whether it does is not known",
        library.name,
        symptoms[0].when()
    );
    Diagnostic::note(RULE.code, message, evidence::symptom(symptoms[0])).about(name)
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
