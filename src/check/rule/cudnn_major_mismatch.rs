//! A library that wants a major of cuDNN that is not there, while another major is.

use crate::check::{Case, Claims, Outcome, Rule, evidence, stack};
use crate::diag::{Diagnostic, Failure, Severity};

pub const RULE: Rule = Rule {
    code: "cudnn-major-mismatch",
    level: Severity::Error,
    page: include_str!("../page/cudnn-major-mismatch.md"),
    run,
};

fn run(case: &Case<'_>, claims: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let libraries = case.inventory.libraries();
    let here = |major: &str| {
        libraries.iter().find(|library| {
            stack::identity(library).is_some_and(|identity| identity.library == "cudnn" && identity.component.is_some())
                && library
                    .object
                    .as_ref()
                    .is_ok_and(|object| object.soname.as_deref().and_then(major_of) == Some(major))
        })
    };
    // What torch itself needs and does not find is plain: `unresolved-needed` says it.
    let mut findings = Vec::new();
    let other = ["8", "9"];
    for (wanted, there) in [(other[0], other[1]), (other[1], other[0])] {
        let Some(present) = here(there).filter(|_| here(wanted).is_none()) else { continue };
        let symptoms = claims.take(|symptom| {
            let cudnn =
                symptom.unresolved().is_some_and(|name| name.starts_with("libcudnn") && major_of(name) == Some(wanted));
            cudnn && !symptom.by().is_some_and(|by| stack::is_torch(case.inventory, by))
        });
        for symptom in &symptoms {
            let Some(by) = symptom.by() else { continue };
            let owner = stack::package(case.inventory, by);
            let what = owner.map_or(by.name.clone(), |package| format!("{} {}", package.name, package.version));
            let message = format!(
                "{what} wants cuDNN {wanted} and the environment has cuDNN {there}: {}, {} cannot be opened",
                symptom.fails(),
                symptom.unresolved().unwrap_or_default()
            );
            let finding = Diagnostic::error(RULE.code, message, evidence::symptom(symptom)).about(&by.name);
            let more = [evidence::version(present)].into_iter().chain(evidence::search(symptom));
            let what = owner.map_or("it", |package| package.name.as_str());
            let fix = format!(
                "take a release of {what} that is built for cuDNN {there}, or a torch that comes with cuDNN {wanted}"
            );
            findings.push(evidence::finding(finding, more.collect::<Vec<_>>()).fix(fix));
        }
    }
    Ok(Outcome::Ran(findings))
}

/// The major in a name such as `libcudnn_ops_infer.so.8`.
fn major_of(name: &str) -> Option<&str> {
    name.split(".so.").nth(1)?.split('.').next()
}
