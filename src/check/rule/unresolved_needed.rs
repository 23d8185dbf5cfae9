//! Libraries that are needed and not found, or found and not loadable.

use std::sync::Arc;

use crate::check::{Case, Claims, Fault, Outcome, Rule, Symptom, evidence, grouped, preload, stack};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::inventory::Library;
use crate::link::Problem;

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
    // One finding for each missing name, whoever needs it.
    let groups = grouped(&loaded, missing);
    let mut findings: Vec<_> = groups.iter().map(|(name, group)| finding(case, name, group)).collect();
    findings.extend(counts_on_python(case, &preloaded));
    findings.extend(grouped(&unreached, Symptom::by_name).iter().map(|(who, group)| remark(who, group)));
    Ok(Outcome::Ran(findings))
}

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

fn finding(case: &Case<'_>, name: &str, symptoms: &[&Symptom<'_>]) -> Diagnostic {
    let first = symptoms[0];
    let by = first.by();
    let who = by.map_or("Python".to_owned(), |by| by.name.clone());
    let fails = format!("{} fails", first.when());
    let elsewhere = provider(case, name, by);
    let (what, severity) = match first.fault {
        Fault::Load(Problem::Unloadable { why, .. }) => {
            (format!("{name} is found and cannot be loaded ({why})"), Severity::Error)
        }
        Fault::Load(Problem::Absent { package, .. }) => (format!("{name} of {package} is not there"), Severity::Error),
        _ => (format!("{name} is not found, which {who} needs"), Severity::Error),
    };
    let hint = elsewhere.as_ref().map(|(library, reach)| reach.hint(&library.name)).unwrap_or_default();
    let finding = Diagnostic {
        severity,
        ..Diagnostic::error(RULE.code, format!("{what}: {fails}{hint}"), evidence::symptom(first))
    };
    let others = symptoms.iter().skip(1).map(|symptom| evidence::symptom(symptom));
    let owner = by.and_then(|by| stack::package(case.inventory, by));
    let unmet = owner.and_then(|owner| Some((owner, stack::unmet_torch(case.inventory, owner)?)));
    let asks = unmet.as_ref().map(|(owner, asks)| evidence::unmet_torch(case, owner, asks));
    let more: Vec<Evidence> = others.chain(evidence::search(first)).chain(asks).collect();
    let finding = evidence::finding(finding.about(who), more);
    finding.fix(match &unmet {
        Some((owner, asks)) => format!(
            "install the torch that {} {} requires: pip install 'torch{}'; or a {} that is built for the installed one",
            owner.name, owner.version, asks.specifiers, owner.name
        ),
        None => fix(case, name, first, elsewhere.as_ref().map(|(library, reach)| (library.name.as_str(), *reach))),
    })
}

/// How near a file is to the one that is missing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// It has the name.
    NotSearched,
    /// It has the name, and is of a package that the one that needs it requires: that may open it first, by its path.
    Required,
    /// It is of another major.
    OtherMajor,
    /// It has the name and is for another processor.
    OtherMachine,
}

impl Reach {
    fn hint(self, file: &str) -> String {
        match self {
            Self::NotSearched | Self::Required => format!("; {file} is there, where the loader does not look for it"),
            Self::OtherMajor => format!("; the environment has {file}"),
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
    let libraries = || case.inventory.libraries().iter().filter(own_name);
    let same = libraries().find(|library| soname(library) == name);
    let near = || libraries().find(|library| soname(library).split(".so").next() == Some(stem));
    let machine = by.and_then(|by| Some(by.object.as_ref().ok()?.machine));
    let reach = |library: &Library| match &library.object {
        Ok(object) if machine.is_some_and(|machine| machine != object.machine) => Reach::OtherMachine,
        _ if by.is_some_and(|by| preload::may_open(case, by, library)) => Reach::Required,
        _ => Reach::NotSearched,
    };
    same.map(|library| (library.as_ref(), reach(library)))
        .or_else(|| near().map(|near| (near.as_ref(), Reach::OtherMajor)))
}

fn fix(case: &Case<'_>, name: &str, symptom: &Symptom<'_>, elsewhere: Option<(&str, Reach)>) -> String {
    let owner = symptom.by().and_then(|by| stack::package(case.inventory, by));
    if let Fault::Load(Problem::Absent { package, .. }) = symptom.fault {
        return format!("pip install --force-reinstall --no-deps {package}");
    }
    // A file that a package recorded and that is gone.
    let lost = case
        .inventory
        .packages
        .iter()
        .find(|package| package.files.iter().any(|file| file.path.file_name().is_some_and(|own| own == name)));
    match (lost, elsewhere, owner) {
        (Some(package), None | Some((_, Reach::OtherMachine)), _) => {
            format!("pip install --force-reinstall --no-deps {}=={}", package.name, package.version)
        }
        (_, Some((_, Reach::OtherMajor)), Some(owner)) => {
            format!(
                "install a {} that is built for what the environment has, or the package that has {name}",
                owner.name
            )
        }
        (_, Some((file, Reach::NotSearched | Reach::Required)), _) => {
            let folder = file.rsplit_once('/').map_or(".", |(folder, _)| folder);
            format!("import the package that loads it first, or put {folder} on LD_LIBRARY_PATH")
        }
        _ => match requirement_for(case, name) {
            Some(package) => format!("pip install {package}"),
            None => format!("install the package that has {name}"),
        },
    }
}

/// The requirement of an installed package that is not installed and that brings such a library: `nvidia-cusparselt-cu12`.
fn requirement_for(case: &Case<'_>, name: &str) -> Option<String> {
    let stem = name.strip_prefix("lib")?.split(".so").next()?.to_lowercase();
    let installed =
        |package: &crate::python::PackageName| case.inventory.packages.iter().any(|one| one.name == *package);
    let requirements = case.inventory.packages.iter().flat_map(|package| package.requirements().collect::<Vec<_>>());
    requirements
        .filter(|one| !installed(&one.package) && one.package.as_str().starts_with("nvidia-"))
        .find(|one| one.package.as_str().split('-').any(|part| part == stem))
        .map(|one| format!("'{}{}'", one.package, one.specifiers))
}
