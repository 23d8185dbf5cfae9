//! Versions that are asked of a library which does not define them, and no rule knows why.

use crate::check::{Case, Claims, Outcome, Rule, Symptom, evidence};
use crate::diag::{Diagnostic, Failure, Severity};

pub const RULE: Rule = Rule {
    code: "symbol-version-missing",
    level: Severity::Error,
    page: include_str!("../page/symbol-version-missing.md"),
    run,
};

fn run(_: &Case<'_>, claims: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let symptoms = claims.take(|symptom| symptom.version_missing().is_some());
    Ok(Outcome::Ran(symptoms.iter().filter_map(finding).collect()))
}

fn finding(symptom: &Symptom<'_>) -> Option<Diagnostic> {
    let (version, library) = symptom.version_missing()?;
    let by = symptom.by().map_or("a library", |by| &by.name);
    let (fails, severity) = match symptom.context {
        Some(_) => (symptom.fails(), Severity::Error),
        None => ("it does not load".into(), Severity::Note),
    };
    let message = format!("{} has no version {version}, which {by} needs: {fails}", library.name);
    let load =
        symptom.context.and_then(|context| context.loads.iter().find(|load| load.library.inode == library.inode));
    let finding = Diagnostic::error(RULE.code, message, evidence::symptom(symptom)).about(&library.name);
    let finding = evidence::finding(finding, load.map(|load| evidence::found(load)));
    Some(Diagnostic { severity, ..finding }.fix("let the loader find a release of it that has that version"))
}
