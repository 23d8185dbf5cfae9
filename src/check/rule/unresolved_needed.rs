//! Libraries that are needed and not found, or found and not loadable.

use std::path::Path;
use std::sync::Arc;

use crate::check::{Case, Claims, Fault, Outcome, Rule, Symptom, evidence, grouped, preload, stack};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::inventory::{Distribution, Library};
use crate::link::Problem;
use crate::python::PackageName;

pub const RULE: Rule =
    Rule { code: "unresolved-needed", level: Severity::Error, page: include_str!("../page/unresolved-needed.md"), run };

fn run(case: &Case<'_>, claims: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let symptoms = claims.take(|symptom| match symptom.fault {
        Fault::Open(..) => true,
        Fault::Load(problem) => {
            matches!(problem, Problem::Unresolved { .. } | Problem::Unloadable { .. } | Problem::Absent { .. })
        }
    });
    let (loaded, unreached): (Vec<_>, Vec<_>) = symptoms.into_iter().partition(|symptom| symptom.context.is_some());
    let (preloaded, loaded): (Vec<_>, Vec<_>) = loaded.into_iter().partition(|symptom| is_preloaded(case, symptom));
    // One finding for each cause: a package that is not there, or whose files are not found, may lack several.
    // Without its own module torch loads nothing, so that its libraries are missing to others.
    let absent = |symptom: &&Symptom<'_>| matches!(symptom.fault, Fault::Load(Problem::Absent { .. }));
    let torch = stack::distribution_index(case.inventory, "torch").map(Cause::NotSearched);
    let without_torch = loaded.iter().find(absent).map(|symptom| Cause::of(case, symptom));
    let groups = grouped(&loaded, |symptom| match (Cause::of(case, symptom), &without_torch) {
        (cause, Some(absent)) if Some(&cause) == torch.as_ref() => absent.clone(),
        (cause, _) => cause,
    });
    let mut findings: Vec<_> = groups.iter().map(|(cause, group)| finding(case, cause, group)).collect();
    findings.extend(counts_on_python(case, &preloaded));
    findings.extend(grouped(&unreached, Symptom::by_name).iter().map(|(who, group)| remark(who, group)));
    Ok(Outcome::Ran(findings))
}

/// Parts of the names of NVIDIA's packages that say nothing of the library: `nvidia-cuda-nvrtc-cu12`.
const FAMILIES: [&str; 4] = ["cuda", "cu11", "cu12", "cu13"];

/// What nothing is known to load may never be loaded: one note for each such library.
fn remark(who: &str, symptoms: &[&Symptom<'_>]) -> Diagnostic {
    let names: Vec<String> = symptoms.iter().map(|symptom| missing(symptom)).collect();
    let what = match &names[..] {
        [one] => format!("{one} is not found, which {who} needs"),
        _ => format!("{} libraries that {who} needs are not found: {}", names.len(), names.join(", ")),
    };
    let message = format!("{what}; nothing is known to load {who}");
    let finding = Diagnostic::note(RULE.code, message, evidence::symptom(symptoms[0])).about(who);
    let others = symptoms.iter().skip(1).map(|symptom| evidence::symptom(symptom));
    evidence::finding(finding, others.chain(evidence::search(symptoms[0])))
}

/// Whether a missing library is one that Python code may open first.
fn is_preloaded(case: &Case<'_>, symptom: &Symptom<'_>) -> bool {
    let name = symptom.unresolved();
    name.and_then(|name| provider(case, name, symptom.by())).is_some_and(|(_, reach)| reach == Reach::Required)
}

/// What packages require and the loader does not find, one note for all: it is not known to be missing.
fn counts_on_python(case: &Case<'_>, symptoms: &[Symptom<'_>]) -> Option<Diagnostic> {
    let first = symptoms.first()?;
    let by: Vec<String> = grouped(symptoms, Symptom::by_name).into_iter().map(|(by, _)| by).collect();
    let names: Vec<String> = grouped(symptoms, missing).into_iter().map(|(name, _)| name).collect();
    let who = match &by[..] {
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
        [] => return None,
    };
    let message = format!(
        "the loader does not find {}, which {who} needs and its package requires: {} fails unless Python code opens it \
         by its path first; whether it does is not known",
        names.join(", "),
        first.when()
    );
    let seen = symptoms.iter().filter_map(|symptom| {
        let (library, _) = provider(case, symptom.unresolved()?, symptom.by())?;
        Some(Evidence::observed(&library.name, format!("is there; {} needs it", symptom.by_name())))
    });
    let note = Diagnostic::note(RULE.code, message, evidence::symptom(first)).about(first.by_name());
    let run = format!(
        "run it to see: python -c {}",
        first.when.first().map_or(String::new(), |when| when.replace('`', "\""))
    );
    Some(evidence::finding(note, seen.collect::<Vec<_>>()).fix(run))
}

/// The name that is missing.
fn missing(symptom: &Symptom<'_>) -> String {
    match symptom.fault {
        Fault::Load(Problem::Unloadable { library, .. }) => library.name.clone(),
        Fault::Load(Problem::Absent { file, .. }) => file.clone(),
        _ => symptom.unresolved().unwrap_or_default().to_owned(),
    }
}

/// Why libraries are missing; what has one cause is one finding.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Cause {
    /// An installed package recorded it, and it is gone or for another processor: an index into the packages.
    Lost(usize),
    /// A requirement that is not installed brings it, as pip takes it: `nvidia-cublas-cu12==12.8.4.1`.
    NotInstalled(String),
    /// It is there, in an installed package, and the loader does not look there.
    NotSearched(usize),
    /// Nothing is known of it but its name.
    Name(String),
}

impl Cause {
    fn of(case: &Case<'_>, symptom: &Symptom<'_>) -> Self {
        let name = missing(symptom);
        let is_named = matches!(symptom.fault, Fault::Open(..) | Fault::Load(Problem::Unresolved { .. }));
        if !is_named {
            return Self::Name(name);
        }
        if let Some(package) = lost(case, &name, symptom.by()) {
            return Self::Lost(package);
        }
        match provider(case, &name, symptom.by()) {
            Some((library, Reach::NotSearched | Reach::Required)) if library.package.is_some() => {
                library.package.map_or(Self::Name(name), Self::NotSearched)
            }
            Some((_, Reach::NotSearched | Reach::Required)) => Self::Name(name),
            _ => requirement_for(case, &name).map_or(Self::Name(name), Self::NotInstalled),
        }
    }
}

fn finding(case: &Case<'_>, cause: &Cause, symptoms: &[&Symptom<'_>]) -> Diagnostic {
    let first = symptoms[0];
    let name = &missing(first);
    let by = first.by();
    let who = by.map_or("Python".to_owned(), |by| by.name.clone());
    let mut names: Vec<String> = Vec::new();
    for name in symptoms.iter().map(|symptom| missing(symptom)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let not_found = match &names[..] {
        [one, other] => format!("{one} and {other} are not found, which {who} needs"),
        [one, rest @ ..] if !rest.is_empty() => {
            format!("{one} and {} more are not found, which {who} needs", rest.len())
        }
        _ => format!("{name} is not found, which {who} needs"),
    };
    let elsewhere = provider(case, name, by);
    let (what, severity) = match first.fault {
        Fault::Load(Problem::Unloadable { why, .. }) => {
            (format!("{name} is found and cannot be loaded ({why})"), Severity::Error)
        }
        Fault::Load(Problem::Absent { package, other_python: Some(other), .. }) => {
            (format!("{other} is for another Python, and {package} has no module for this one"), Severity::Error)
        }
        Fault::Load(Problem::Absent { package, .. }) => (format!("{name} of {package} is not there"), Severity::Error),
        _ => (not_found, Severity::Error),
    };
    let links: Vec<(String, String)> = evidence::dangling(case, first);
    let hint = match (links.first(), cause, &elsewhere) {
        (Some((link, to)), _, _) => format!("; {link} is a link to {to}, which is not there"),
        (None, Cause::Lost(_), Some((library, reach @ Reach::OtherMachine))) => reach.hint(&library.name),
        (None, Cause::Lost(_), _) => String::new(),
        (None, Cause::NotInstalled(requirement), elsewhere) => {
            let near = elsewhere.as_ref().map(|(library, reach)| reach.hint(&library.name)).unwrap_or_default();
            format!("; {requirement} is required and not installed{near}")
        }
        (None, _, Some((library, reach))) => reach.hint(&library.name),
        (None, _, None) => String::new(),
    };
    let message = format!("{what}: {}{hint}", first.fails());
    let finding = Diagnostic { severity, ..Diagnostic::error(RULE.code, message, evidence::symptom(first)) };
    let others = symptoms.iter().skip(1).map(|symptom| evidence::symptom(symptom));
    let owner = by.and_then(|by| stack::package(case.inventory, by));
    let unmet = owner.and_then(|owner| Some((owner, stack::unmet_torch(case.inventory, owner)?)));
    let asks = unmet.as_ref().map(|(owner, asks)| evidence::unmet_torch(case, owner, asks));
    let links = links.iter().map(|(link, to)| Evidence::observed(link, format!("a link to {to}, which is not there")));
    let more: Vec<Evidence> = others.chain(links).chain(evidence::search(first)).chain(asks).collect();
    evidence::finding(finding.about(who), more).fix(match (&unmet, cause) {
        (Some((owner, asks)), Cause::Name(_) | Cause::NotSearched(_)) => format!(
            "install the torch that {} {} requires: pip install 'torch{}'; or a {} that is built for the installed one",
            owner.name, owner.version, asks.specifiers, owner.name
        ),
        _ => fix(case, name, cause, first, elsewhere),
    })
}

/// How near a file is to the one that is missing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// It has the name.
    NotSearched,
    /// It has the name, and is of a package that the one that needs it requires: that may open it first, by its path.
    Required,
    /// It is of another major, or its file has another name.
    Other,
    /// It has the name and is for another processor.
    OtherMachine,
}

impl Reach {
    fn hint(self, file: &str) -> String {
        match self {
            Self::NotSearched | Self::Required => format!("; {file} is there, where the loader does not look for it"),
            Self::Other => format!("; the environment has {file}"),
            Self::OtherMachine => format!("; {file} is for another processor, and the loader passes over it"),
        }
    }
}

/// A file of the environment that has the missing name, or is another major of it.
fn provider<'a>(case: &'a Case<'_>, name: &str, by: Option<&Arc<Library>>) -> Option<(&'a Library, Reach)> {
    let stem = name.split(".so").next().unwrap_or(name);
    let soname =
        |library: &Library| library.object.as_ref().ok().and_then(|object| object.soname.clone()).unwrap_or_default();
    // A copy that a wheel renamed for itself serves that wheel alone.
    let own_name = |library: &&Arc<Library>| {
        library.path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(&format!("{stem}.so")))
    };
    // What pip left behind when it was interrupted (`~orch`) is nobody's.
    let is_left = |library: &&Arc<Library>| library.path.iter().any(|part| part.to_string_lossy().starts_with('~'));
    let libraries = || case.inventory.libraries().iter().filter(own_name).filter(|library| !is_left(library));
    let same = libraries().find(|library| soname(library) == name);
    let near = || libraries().find(|library| soname(library).split(".so").next() == Some(stem));
    let machine = by.and_then(|by| Some(by.object.as_ref().ok()?.machine));
    let reach = |library: &Library| match &library.object {
        Ok(object) if machine.is_some_and(|machine| machine != object.machine) => Reach::OtherMachine,
        _ if by.is_some_and(|by| preload::may_open(case, by, library)) => Reach::Required,
        _ if library.place.file_name().is_some_and(|file| file == name) => Reach::NotSearched,
        _ => Reach::Other,
    };
    same.map(|library| (library.as_ref(), reach(library))).or_else(|| near().map(|near| (near.as_ref(), Reach::Other)))
}

fn fix(
    case: &Case<'_>,
    name: &str,
    cause: &Cause,
    symptom: &Symptom<'_>,
    elsewhere: Option<(&Library, Reach)>,
) -> String {
    let owner = symptom.by().and_then(|by| stack::package(case.inventory, by));
    if let Fault::Load(Problem::Absent { package, .. }) = symptom.fault {
        let installed = stack::distribution(case.inventory, package);
        return installed.map_or(format!("pip install --force-reinstall --no-deps {package}"), stack::reinstall);
    }
    match (cause, elsewhere, owner) {
        (Cause::Lost(package), _, _) => stack::reinstall(&case.inventory.packages[*package]),
        (Cause::NotInstalled(requirement), _, _) => format!("pip install '{requirement}'"),
        (_, Some((other, Reach::Other)), Some(owner)) => {
            let package = stack::package(case.inventory, other);
            // Where it is the release that is required, the fault is not its.
            let is_other = |package: &&Distribution| !stack::is_required(case.inventory, package);
            let required =
                package.filter(is_other).and_then(|package| stack::install_required(case.inventory, package));
            required.unwrap_or_else(|| {
                format!(
                    "install a {} that is built for what the environment has, or the package that has {name}",
                    owner.name
                )
            })
        }
        // A library that does not find its own package's files has lost its run path.
        (Cause::NotSearched(package), _, Some(owner)) if case.inventory.packages[*package].name == owner.name => {
            stack::reinstall(owner)
        }
        (_, Some((library, Reach::NotSearched | Reach::Required)), _) => {
            let folder = library.name.rsplit_once('/').map_or(".", |(folder, _)| folder);
            format!("import the package that loads it first, or put {folder} on LD_LIBRARY_PATH")
        }
        _ => format!("install the package that has {name}"),
    }
}

/// The package that recorded a file of that name which is not there, or is for another processor.
fn lost(case: &Case<'_>, name: &str, by: Option<&Arc<Library>>) -> Option<usize> {
    let libraries = case.inventory.libraries();
    let machine = by.and_then(|by| Some(by.object.as_ref().ok()?.machine));
    let is_there = |path: &Path| {
        let of = |library: &&Arc<Library>| {
            library.path == path || library.place == path || library.others.iter().any(|one| one == path)
        };
        libraries.iter().find(of).is_some_and(|library| match &library.object {
            Ok(object) => machine.is_none_or(|machine| machine == object.machine),
            Err(_) => true,
        })
    };
    case.inventory.packages.iter().position(|package| {
        let mut named = package.files.iter().filter(|file| file.path.file_name().is_some_and(|own| own == name));
        named.any(|file| !is_there(&file.path))
    })
}

/// The requirement of an installed package that is not installed and that brings such a library, with what all say of its
/// version: `nvidia-cublas-cu12==12.8.4.1` for `libcublasLt.so.12`.
fn requirement_for(case: &Case<'_>, name: &str) -> Option<String> {
    let stem = name.strip_prefix("lib")?.split(".so").next()?.to_lowercase();
    let installed = |package: &PackageName| case.inventory.packages.iter().any(|one| one.name == *package);
    let requirements = case.inventory.packages.iter().flat_map(|package| package.requirements().collect::<Vec<_>>());
    let missing = requirements.filter(|one| !installed(&one.package) && one.package.as_str().starts_with("nvidia-"));
    // The part of its name that the library's begins with; the longest: `cusparselt`, not `cusparse`.
    let part = |package: &PackageName| {
        let parts = package.as_str().split('-').skip(1);
        parts.filter(|part| !FAMILIES.contains(part) && stem.starts_with(part)).map(str::len).max()
    };
    let (_, package) =
        missing.filter_map(|one| Some((part(&one.package)?, one.package))).max_by_key(|(length, _)| *length)?;
    let required = stack::required(case.inventory, &package);
    Some(required.map_or(package.to_string(), |required| format!("{package}{}", required.specifiers)))
}
