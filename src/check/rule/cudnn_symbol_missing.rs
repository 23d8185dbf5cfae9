//! A part of cuDNN that lacks a symbol which another part, or torch, takes from it, where no version tells why.

use crate::check::{Case, Claims, Outcome, Rule, Symptom, evidence, grouped, stack};
use crate::diag::{Diagnostic, Failure, Severity};
use crate::inventory::Library;

pub const RULE: Rule = Rule {
    code: "cudnn-symbol-missing",
    level: Severity::Error,
    page: include_str!("../page/cudnn-symbol-missing.md"),
    run,
};

fn run(case: &Case<'_>, claims: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let is_cudnn = |library: &Library| {
        stack::identity(library).is_some_and(|identity| identity.library == "cudnn")
            || library.path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libcudnn"))
    };
    let symptoms = claims.take(|symptom| {
        let lacks = symptom.undefined().is_some() || symptom.version_missing().is_some();
        lacks && (symptom.definer().is_some_and(|one| is_cudnn(one)) || symptom.by().is_some_and(|one| is_cudnn(one)))
    });
    // One finding for each library that cannot be loaded.
    let groups = grouped(&symptoms, Symptom::by_name);
    Ok(Outcome::Ran(groups.iter().map(|(name, group)| finding(case, name, group)).collect()))
}

fn finding(case: &Case<'_>, name: &str, symptoms: &[&Symptom<'_>]) -> Diagnostic {
    let first = symptoms[0];
    let definer = first.definer();
    let from = definer.map_or("any loaded cuDNN".into(), |library| library.name.clone());
    let message = format!(
        "{name} needs {} from {from}, which does not have it: {}. The two are not of one cuDNN release",
        first.undefined().or(first.version_missing().map(|(version, _)| version)).unwrap_or("a symbol"),
        first.fails()
    );
    let finding = Diagnostic::error(RULE.code, message, evidence::symptom(first)).about(name);
    let more = symptoms.iter().skip(1).map(|symptom| evidence::symptom(symptom));
    let both = definer.into_iter().chain(first.by()).map(|library| evidence::version(library));
    let package = definer.into_iter().chain(first.by()).find_map(|library| stack::package(case.inventory, library));
    let finding = evidence::finding(finding, more.chain(both).collect::<Vec<_>>());
    finding.fix(match package {
        Some(package) => stack::reinstall(package),
        None => "take all parts of cuDNN from one package".into(),
    })
}
