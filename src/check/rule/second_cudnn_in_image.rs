//! Two copies of cuDNN in an image, the system's and a package's: which one wins, and when.

use std::collections::BTreeSet;
use std::path::Path;

use crate::check::{Case, Claims, Outcome, Rule, evidence, stack};
use crate::diag::{Diagnostic, Failure, Severity};
use crate::inventory::Library;

pub const RULE: Rule = Rule {
    code: "second-cudnn-in-image",
    level: Severity::Warning,
    page: include_str!("../page/second-cudnn-in-image.md"),
    run,
};

fn run(case: &Case<'_>, claims: &mut Claims<'_>) -> Result<Outcome, Failure> {
    if !case.inventory.subject.kind.is_root() {
        return Ok(Outcome::Ran(Vec::new()));
    }
    // Of each copy the library that programs ask for; its parts come with it.
    let shim = |library: &&Library| {
        stack::identity(library).is_some_and(|own| own.library == "cudnn" && own.component.is_none())
    };
    let all: Vec<&Library> = case.inventory.libraries().iter().map(|library| &**library).filter(shim).collect();
    let is_packaged = |library: &&Library| {
        let sites = case.inventory.pythons.iter().flat_map(|python| &python.site_packages);
        library.package.is_some() || sites.into_iter().any(|site| library.path.starts_with(site))
    };
    let (packaged, system): (Vec<&Library>, Vec<&Library>) = all.into_iter().partition(is_packaged);
    let (Some(own), Some(_)) = (packaged.first(), system.first()) else { return Ok(Outcome::Ran(Vec::new())) };
    // Where they are mixed in one process, or one takes the other's place, that is the finding.
    let told = |library: &Library| {
        let mut beside = case.inventory.libraries().iter().filter(|one| one.path.parent() == library.path.parent());
        beside.any(|one| claims.is_blamed(one))
    };
    if told(own) {
        return Ok(Outcome::Ran(Vec::new()));
    }
    let findings = system.iter().filter(|other| !told(other)).map(|other| finding(case, own, other)).collect();
    Ok(Outcome::Ran(findings))
}

fn finding(case: &Case<'_>, own: &Library, other: &Library) -> Diagnostic {
    let version = |library: &Library| stack::version_of(library, "cudnn").map(str::to_owned);
    let told = |library: &Library| version(library).unwrap_or_else(|| "of unknown version".into());
    let folder = |library: &Library| library.path.parent().unwrap_or(Path::new("/")).display().to_string();
    let loads = |wanted: &Library| -> BTreeSet<&str> {
        let contexts = case.links.contexts.iter();
        let loads = contexts.filter(|context| context.loads.iter().any(|load| load.library.inode == wanted.inode));
        loads.map(|context| context.name.as_str()).collect()
    };
    let words = |names: &BTreeSet<&str>| match names.iter().next() {
        None => "nothing here loads".to_owned(),
        Some(first) if names.len() == 1 => format!("{first} loads"),
        Some(first) => format!("{first} and {} more load", names.len() - 1),
    };
    let (by_own, by_other) = (loads(own), loads(other));
    let message = format!(
        "the image has cuDNN {} of a package and cuDNN {} of its system ({}): {} the package's, {} the system's; a program \
         that has no path of its own, and all with that folder on LD_LIBRARY_PATH, take the system's",
        told(own),
        told(other),
        folder(other),
        words(&by_own),
        words(&by_other),
    );
    let fix = match version(own) == version(other) {
        true => format!(
            "they are the same release: 1 copy does, so build on a base without cuDNN, or remove {}",
            folder(other)
        ),
        false => "build on a base image without `cudnn` in its tag: the packages bring their own".to_owned(),
    };
    let finding = Diagnostic::warning(RULE.code, message, evidence::version(own)).and(evidence::version(other));
    let finding = finding.about(other.path.display().to_string()).fix(fix);
    // What nothing loads does no harm yet.
    if by_other.is_empty() { Diagnostic { severity: Severity::Note, ..finding } } else { finding }
}
