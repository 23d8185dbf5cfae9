//! What the rules about one library's release share: symbols or versions that are asked of a library and that the loaded
//! release of it does not have.

use std::sync::Arc;

use crate::check::{Case, Claims, Symptom, evidence, grouped, stack};
use crate::diag::Diagnostic;
use crate::inventory::Library;
use crate::link::{Found, Load};

/// The library.
pub struct Mismatch {
    /// Code of the findings.
    pub code: &'static str,
    /// As people call it.
    pub name: &'static str,
    /// As [`crate::elf::Identity`] calls it.
    pub identity: &'static str,
    /// How its file names begin.
    pub file: &'static str,
    /// How the names of its symbols begin.
    pub symbols: &'static [&'static str],
}

/// One finding for each loaded release that lacks something.
pub fn findings<'a>(case: &Case<'a>, claims: &mut Claims<'a>, of: &Mismatch) -> Vec<Diagnostic> {
    let is_it = |library: &Arc<Library>| {
        stack::identity(library).is_some_and(|identity| identity.library == of.identity)
            || library.path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(of.file))
    };
    let symptoms = claims.take(|symptom| {
        let named = symptom.undefined().is_some_and(|name| of.symbols.iter().any(|start| name.starts_with(start)));
        let lacks = symptom.undefined().is_some() || symptom.version_missing().is_some();
        // Without the library itself it is that which is missing.
        lacks && (named && release(case, symptom, &is_it).is_some() || symptom.definer().is_some_and(is_it))
    });
    let groups = grouped(&symptoms, |symptom| release(case, symptom, &is_it).map(|library| library.inode));
    for library in groups.iter().filter_map(|(_, group)| release(case, group[0], &is_it)) {
        claims.blame(library);
    }
    groups.iter().map(|(_, group)| finding(case, group, of, &is_it)).collect()
}

/// The loaded release of the library.
fn loaded<'a>(symptom: &Symptom<'a>, is_it: &impl Fn(&Arc<Library>) -> bool) -> Option<&'a Arc<Load>> {
    symptom.context?.loads.iter().find(|load| is_it(&load.library))
}

/// The release that is in question: the loaded one; where what failed would have been the first to load it, the one that
/// it asks for.
fn release<'a>(
    case: &Case<'a>,
    symptom: &Symptom<'a>,
    is_it: &impl Fn(&Arc<Library>) -> bool,
) -> Option<&'a Arc<Library>> {
    let known = symptom.definer().filter(|library| is_it(library));
    let known = known.or(loaded(symptom, is_it).map(|load| &load.library));
    known.or_else(|| asked_for(case, symptom, is_it))
}

/// The only library here of a name that is asked for; with several, it is not known which of them is meant.
fn asked_for<'a>(
    case: &Case<'a>,
    symptom: &Symptom<'a>,
    is_it: &impl Fn(&Arc<Library>) -> bool,
) -> Option<&'a Arc<Library>> {
    let needed = &symptom.by()?.object.as_ref().ok()?.needed;
    let soname = |library: &'a Arc<Library>| library.object.as_ref().ok()?.soname.as_ref();
    let is_asked_for = |library: &&'a Arc<Library>| soname(library).is_some_and(|soname| needed.contains(soname));
    let mut here = case.inventory.libraries().iter().filter(|library| is_it(library)).filter(is_asked_for);
    here.next().filter(|_| here.next().is_none())
}

fn finding<'a>(
    case: &Case<'a>,
    symptoms: &[&Symptom<'a>],
    of: &Mismatch,
    is_it: &impl Fn(&Arc<Library>) -> bool,
) -> Diagnostic {
    let first = symptoms[0];
    let library = release(case, first, is_it);
    let by = first.by().map_or("a library", |by| &by.name);
    let version = library.and_then(|library| stack::version_of(library, of.identity));
    let lacks = first.undefined().or(first.version_missing().map(|(version, _)| version)).unwrap_or("a symbol");
    let message = format!(
        "{} {} is loaded and lacks {lacks}, which {by} needs: {}",
        of.name,
        version.unwrap_or("of an unknown version"),
        first.fails()
    );
    let subject = library.map_or(String::new(), |library| library.name.clone());
    let finding = Diagnostic::error(of.code, message, evidence::symptom(first)).about(subject);
    let load = library.and_then(|library| first.context?.loads.iter().find(|load| load.library.inode == library.inode));
    let more = symptoms.iter().skip(1).map(|symptom| evidence::symptom(symptom));
    let more =
        more.chain(library.map(|library| evidence::version(library))).chain(load.map(|load| evidence::found(load)));
    let finding = evidence::finding(finding, more.collect::<Vec<_>>());
    let package = library.and_then(|library| stack::package(case.inventory, library));
    let required = package.and_then(|package| stack::install_required(case.inventory, package));
    finding.fix(match (required, package, load.map(|load| &load.found)) {
        (Some(install), ..) => install,
        (None, Some(package), _) => {
            format!("install the {} that was resolved with {by}: now {} {}", of.name, package.name, package.version)
        }
        (None, None, Some(Found::LibraryPath { dir })) => format!("take {} out of LD_LIBRARY_PATH", dir.display()),
        (None, None, _) => format!("let the loader find the {} of the environment first", of.name),
    })
}
