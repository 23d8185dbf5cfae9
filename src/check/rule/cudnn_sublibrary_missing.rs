//! Parts of cuDNN that it opens by name when it is used, and that are not found.

use crate::check::{Case, Claims, Fault, Outcome, Rule, Symptom, evidence, stack};
use crate::diag::{Diagnostic, Failure, Severity};

pub const RULE: Rule = Rule {
    code: "cudnn-sublibrary-missing",
    level: Severity::Error,
    page: include_str!("../page/cudnn-sublibrary-missing.md"),
    run,
};

fn run(case: &Case<'_>, claims: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let missing = claims.take(|symptom| match symptom.fault {
        Fault::Open(edge, by) => {
            let cudnn = stack::identity(&by.library).is_some_and(|identity| identity.library == "cudnn");
            cudnn && edge.candidates.iter().all(|name| name.starts_with("libcudnn_"))
        }
        Fault::Load(_) => false,
    });
    let names: Vec<&str> = missing.iter().filter_map(Symptom::unresolved).collect();
    // Other parts need it too: that is its consequence.
    let needed = claims.take(|symptom| symptom.unresolved().is_some_and(|name| names.contains(&name)));
    let findings = missing.iter().map(|symptom| {
        let also = needed.iter().filter(|other| other.unresolved() == symptom.unresolved());
        evidence::finding(finding(case, symptom), also.map(evidence::symptom))
    });
    Ok(Outcome::Ran(findings.collect()))
}

fn finding(case: &Case<'_>, symptom: &Symptom<'_>) -> Diagnostic {
    let name = symptom.unresolved().unwrap_or("a part of cuDNN");
    let by = symptom.by();
    let links = evidence::dangling(case, symptom);
    let why =
        links.first().map_or(String::new(), |(link, to)| format!(" ({link} is a link to {to}, which is not there)"));
    let message = format!(
        "{name} is missing{why}: `import torch` may succeed, and {} with \"Unable to load any of {{{}}}\"",
        symptom.fails(),
        candidates(symptom)
    );
    let package = by.and_then(|library| stack::package(case.inventory, library));
    let fix = match package {
        Some(package) => format!("pip install --force-reinstall --no-deps {}=={}", package.name, package.version),
        None => "install all of cuDNN, from one package".into(),
    };
    let subject = by.map_or(String::new(), |library| library.name.clone());
    let finding = Diagnostic::error(RULE.code, message, evidence::symptom(symptom)).about(subject);
    let more = by.map(|library| evidence::version(library)).into_iter().chain(evidence::search(symptom));
    evidence::finding(finding, more.collect::<Vec<_>>()).fix(fix)
}

fn candidates(symptom: &Symptom<'_>) -> String {
    match symptom.fault {
        Fault::Open(edge, _) => edge.candidates.join(", "),
        Fault::Load(_) => String::new(),
    }
}
