//! A library that wants a major of cuDNN that is not there, while another major is.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::check::{Case, Claims, Outcome, Rule, Symptom, evidence, grouped, stack};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::inventory::Library;

pub const RULE: Rule = Rule {
    code: "cudnn-major-mismatch",
    level: Severity::Error,
    page: include_str!("../page/cudnn-major-mismatch.md"),
    run,
};

fn run(case: &Case<'_>, claims: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let here = majors(case);
    let Some((there, present)) = here.last_key_value() else { return Ok(Outcome::Ran(Vec::new())) };
    // What torch itself needs and does not find is plain: `unresolved-needed` says it.
    let symptoms = claims.take(|symptom| {
        wanted(symptom).is_some_and(|major| !here.contains_key(major))
            && !symptom.by().is_some_and(|by| stack::is_torch(case.inventory, by))
    });
    let groups = grouped(&symptoms, |symptom| (symptom.by_name(), wanted(symptom)));
    Ok(Outcome::Ran(groups.iter().filter_map(|(_, group)| finding(case, group, there, present)).collect()))
}

/// The majors of which there are parts, each with one of them. The file that programs are linked with is no part: a wheel
/// may carry it for itself.
fn majors<'a>(case: &Case<'a>) -> BTreeMap<String, &'a Arc<Library>> {
    let part = |library: &&Arc<Library>| {
        stack::identity(library).is_some_and(|identity| identity.library == "cudnn" && identity.component.is_some())
    };
    let major = |library: &'a Arc<Library>| {
        let soname = library.object.as_ref().ok()?.soname.as_deref()?;
        Some((major_of(soname)?.to_owned(), library))
    };
    case.inventory.libraries().iter().filter(part).filter_map(major).collect()
}

/// The major of cuDNN that is asked for and not found.
fn wanted<'a>(symptom: &Symptom<'a>) -> Option<&'a str> {
    major_of(symptom.unresolved().filter(|name| name.starts_with("libcudnn"))?)
}

fn finding(case: &Case<'_>, symptoms: &[&Symptom<'_>], there: &str, present: &Library) -> Option<Diagnostic> {
    let (first, rest) = symptoms.split_first()?;
    let (by, wanted) = (first.by()?, wanted(first)?);
    let owner = stack::package(case.inventory, by);
    let what = owner.map_or(by.name.clone(), |package| format!("{} {}", package.name, package.version));
    let message = format!(
        "{what} wants cuDNN {wanted} and the environment has cuDNN {there}: {}, {} cannot be opened",
        first.fails(),
        first.unresolved().unwrap_or_default()
    );
    let finding = Diagnostic::error(RULE.code, message, evidence::symptom(first)).about(&by.name);
    let more = rest.iter().map(|symptom| evidence::symptom(symptom)).chain([evidence::version(present)]);
    let more: Vec<Evidence> = more.chain(evidence::search(first)).collect();
    let what = owner.map_or("it", |package| package.name.as_str());
    Some(evidence::finding(finding, more).fix(format!(
        "take a release of {what} that is built for cuDNN {there}, or a torch that comes with cuDNN {wanted}"
    )))
}

/// The major in a name such as `libcudnn_ops_infer.so.8`.
fn major_of(name: &str) -> Option<&str> {
    name.split(".so.").nth(1)?.split('.').next()
}
