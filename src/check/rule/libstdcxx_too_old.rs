//! A libstdc++ that lacks versions which libraries ask of it.

use crate::check::{Case, Claims, Outcome, Rule, Symptom, evidence, grouped};
use crate::diag::{Diagnostic, Failure, Severity};

pub const RULE: Rule =
    Rule { code: "libstdcxx-too-old", level: Severity::Error, page: include_str!("../page/libstdcxx-too-old.md"), run };

const FAMILIES: [&str; 4] = ["GLIBCXX_", "CXXABI_", "GCC_", "GOMP_"];

fn run(_: &Case<'_>, claims: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let of_compiler = |version: &str| FAMILIES.iter().any(|family| version.starts_with(family));
    let symptoms = claims.take(|symptom| symptom.version().is_some_and(of_compiler));
    // The version itself comes before the symbols that have it.
    let (mut missing, symbols): (Vec<_>, Vec<_>) =
        symptoms.into_iter().partition(|symptom| symptom.version_missing().is_some());
    missing.extend(symbols);
    let groups = grouped(&missing, |symptom| symptom.definer().map(|library| library.inode));
    Ok(Outcome::Ran(groups.iter().filter_map(|(_, group)| finding(group)).collect()))
}

fn finding(symptoms: &[&Symptom<'_>]) -> Option<Diagnostic> {
    let (first, rest) = symptoms.split_first()?;
    let (version, library) = (first.version()?, first.definer()?);
    let by = first.by().map_or("a library", |by| &by.name);
    let message = format!("{} is older than {by} needs: it has no {version}, and {}", library.name, first.fails());
    let load = first.context.and_then(|context| context.loads.iter().find(|load| load.library.inode == library.inode));
    let more = rest.iter().map(|symptom| evidence::symptom(symptom)).chain(load.map(|load| evidence::found(load)));
    let finding = Diagnostic::error(RULE.code, message, evidence::symptom(first)).about(&library.name);
    Some(evidence::finding(finding, more.collect::<Vec<_>>()).fix(
        "install a newer one (the distribution's libstdc++6, or conda's libstdcxx-ng), or let the loader find a newer one \
         first",
    ))
}
