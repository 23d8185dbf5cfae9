//! Libraries that are needed and not found, or found and not loadable.

use crate::check::{Case, Claims, Fault, Outcome, Rule, Symptom, evidence, grouped, stack};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::elf::Machine;
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
    // One finding for each missing name, whoever needs it.
    let groups = grouped(&symptoms, missing);
    Ok(Outcome::Ran(groups.iter().map(|(name, group)| finding(case, name, group)).collect()))
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
    let fails = if first.context.is_some() { format!("{} fails", first.when()) } else { "it does not load".into() };
    let (what, severity) = match first.fault {
        Fault::Load(Problem::Unloadable { why, .. }) => {
            (format!("{name} is found and cannot be loaded ({why})"), Severity::Error)
        }
        Fault::Load(Problem::Absent { package, .. }) => (format!("{name} of {package} is not there"), Severity::Error),
        // What nothing is known to load may never be loaded.
        _ if first.context.is_none() => (format!("{name} is not found, which {who} needs"), Severity::Note),
        _ => (format!("{name} is not found, which {who} needs"), Severity::Error),
    };
    let machine = by.and_then(|by| Some(by.object.as_ref().ok()?.machine));
    let elsewhere = provider(case, name, machine);
    let hint = match &elsewhere {
        Some((file, Reach::NotSearched)) => format!("; {file} is there, where the loader does not look for it"),
        Some((file, Reach::OtherMajor)) => format!("; the environment has {file}"),
        Some((file, Reach::OtherMachine)) => {
            format!("; {file} is for another processor, and the loader passes over it")
        }
        None => String::new(),
    };
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
        None => fix(case, name, first, elsewhere.as_ref()),
    })
}

/// How near a file is to the one that is missing.
enum Reach {
    /// It has the name.
    NotSearched,
    /// It is of another major.
    OtherMajor,
    /// It has the name and is for another processor.
    OtherMachine,
}

/// A file of the environment that has the missing name, or is another major of it.
fn provider(case: &Case<'_>, name: &str, by: Option<Machine>) -> Option<(String, Reach)> {
    let stem = name.split(".so").next().unwrap_or(name);
    let soname = |library: &crate::inventory::Library| {
        library.object.as_ref().ok().and_then(|object| object.soname.clone()).unwrap_or_default()
    };
    // A copy that a wheel renamed for itself serves that wheel alone.
    let own_name = |library: &&std::sync::Arc<crate::inventory::Library>| {
        library.path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(&format!("{stem}.so")))
    };
    let libraries = || case.inventory.libraries().iter().filter(own_name);
    let same = libraries().find(|library| soname(library) == name);
    let near = || libraries().find(|library| soname(library).split(".so").next() == Some(stem));
    let reach = |library: &crate::inventory::Library| match &library.object {
        Ok(object) if by.is_some_and(|by| by != object.machine) => Reach::OtherMachine,
        _ => Reach::NotSearched,
    };
    same.map(|library| (library.name.clone(), reach(library)))
        .or_else(|| near().map(|library| (library.name.clone(), Reach::OtherMajor)))
}

fn fix(case: &Case<'_>, name: &str, symptom: &Symptom<'_>, elsewhere: Option<&(String, Reach)>) -> String {
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
        (_, Some((file, Reach::NotSearched)), _) => {
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
