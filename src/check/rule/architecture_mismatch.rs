//! Packages whose libraries are for another processor than the machines have.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::check::{Case, Claims, Outcome, Rule, evidence};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::elf::Machine;
use crate::inventory::{Library, Role, SubjectKind};
use crate::matrix::Gpu;
use crate::matrix::schema::GpuClass;
use crate::python::Platform;

pub const RULE: Rule = Rule {
    code: "architecture-mismatch",
    level: Severity::Error,
    page: include_str!("../page/architecture-mismatch.md"),
    run,
};

/// Libraries that a finding names.
const SHOWN: usize = 3;

fn run(case: &Case<'_>, _: &mut Claims<'_>) -> Result<Outcome, Failure> {
    // A file by itself is installed nowhere.
    if matches!(case.inventory.subject.kind, SubjectKind::Library | SubjectKind::Wheel) {
        return Ok(Outcome::Ran(Vec::new()));
    }
    let mut findings: Vec<Diagnostic> = whole_image(case).into_iter().collect();
    let Some((own, seen)) = machine(case) else {
        if !findings.is_empty() {
            return Ok(Outcome::Ran(findings));
        }
        return Ok(Outcome::Skipped("the processor of the machines is not known".into()));
    };
    let mut packages: BTreeMap<usize, Vec<&Arc<Library>>> = BTreeMap::new();
    for library in case.inventory.libraries().iter().filter(|library| library.role == Role::Library) {
        if let (Some(package), Ok(_)) = (library.package, &library.object) {
            packages.entry(package).or_default().push(library);
        }
    }
    let groups = case.matrix.package()?;
    for (package, libraries) in packages {
        let package = &case.inventory.packages[package];
        let Some(foreign) = foreign(&libraries, own) else { continue };
        // Packages may carry files for devices of another kind; what Python imports is not of these.
        if !groups.is_gpu(&package.name) && !libraries.iter().any(|library| is_module(library)) {
            continue;
        }
        let message = format!(
            "{} {} is for {}, and the machines are {}: none of its libraries loads",
            package.name,
            package.version,
            name(foreign),
            name(own)
        );
        let mut each = libraries.iter().take(SHOWN);
        let Some(first) = each.next() else { continue };
        let is_for = |library: &Arc<Library>| Evidence::elf(&library.name, format!("for {}", name(foreign)));
        let finding = Diagnostic::error(RULE.code, message, is_for(first)).about(package.name.to_string());
        let more = each.map(|library| is_for(library)).chain([seen.clone()]);
        findings.push(evidence::finding(finding, more.collect::<Vec<_>>()).fix(format!(
            "install the wheel for {}: pip install --force-reinstall --no-deps {}=={}",
            name(own),
            package.name,
            package.version
        )));
    }
    Ok(Outcome::Ran(findings))
}

/// What an image says that it is for, against what the machines are, else against what lies in it.
fn whole_image(case: &Case<'_>) -> Option<Diagnostic> {
    let said = case.inventory.image.as_ref()?.config.platform.as_deref()?;
    let architecture = said.strip_prefix("linux/")?;
    let platform = Platform::ALL.into_iter().find(|platform| platform.architecture() == architecture);
    let own = platform.map_or(Machine::Other(0), of);
    let seen = Evidence::observed("configuration of the image", said);
    if let Some(locked) = case.locked {
        let platform = locked.target.platform;
        let message = format!(
            "the image is for {said}, and the machines of target {} are {platform}: they start no container of it",
            locked.target.name
        );
        let fix = format!("build it for them: docker build --platform linux/{}", platform.architecture());
        let lock = Evidence::observed("the lock's target", platform.to_string());
        return (of(platform) != own).then(|| Diagnostic::error(RULE.code, message, seen).and(lock).fix(fix));
    }
    if let Some((content, file)) = content(case).filter(|(content, _)| *content != own) {
        let message = format!("the image says that it is for {said}, and its programs are for {}", name(content));
        let fix = "build it with the platform that it is for: docker build --platform";
        return Some(Diagnostic::error(RULE.code, message, seen).and(file).fix(fix));
    }
    // Nothing says what the machines are: most have the other processor, and none of Jetson's.
    let machine = case.machine.filter(|machine| !machine.gpus.is_empty())?;
    let is_jetson = |gpu: &Gpu| gpu.class == Some(GpuClass::Jetson);
    if own == Machine::X86_64 || machine.gpus.iter().all(is_jetson) {
        return None;
    }
    let gpus: Vec<&str> = machine.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
    let message = format!("the image is for {said}: it starts only on machines of that kind with {}", gpus.join(", "));
    Some(Diagnostic::note(RULE.code, message, seen).fix("if they are not, choose the image for linux/amd64"))
}

fn of(platform: Platform) -> Machine {
    match platform {
        Platform::LinuxX86_64 => Machine::X86_64,
        Platform::LinuxAarch64 => Machine::Aarch64,
    }
}

/// The processor of the machines, and how it is known: by the lock's target, by the interpreter, by the loader.
pub fn machine(case: &Case<'_>) -> Option<(Machine, Evidence)> {
    if let Some(locked) = case.locked {
        let platform = locked.target.platform;
        return Some((of(platform), Evidence::observed("the lock's target", platform.to_string())));
    }
    content(case)
}

/// The processor that the programs of the environment are for: the interpreter, else the loader.
fn content(case: &Case<'_>) -> Option<(Machine, Evidence)> {
    let interpreter = case.inventory.pythons.first().and_then(|python| python.interpreter.as_deref());
    let program = interpreter.and_then(|path| Some((path, case.inventory.at(path)?)));
    if let Some((path, Ok(object))) = program.as_ref().map(|(path, library)| (path, &library.object)) {
        return Some((object.machine, Evidence::observed(path.display().to_string(), name(object.machine))));
    }
    let loader = &case.inventory.loader;
    let path = loader.path.as_ref().map_or(String::new(), |path| path.display().to_string());
    loader.platform.map(|platform| (of(platform), Evidence::observed(path, platform.to_string())))
}

/// The other processor that all of them are for.
fn foreign(libraries: &[&Arc<Library>], own: Machine) -> Option<Machine> {
    let machine = |library: &Arc<Library>| library.object.as_ref().ok().map(|object| object.machine);
    let server = |machine: &Machine| matches!(machine, Machine::X86_64 | Machine::Aarch64);
    let first = machine(libraries.first()?).filter(server).filter(|first| *first != own)?;
    libraries.iter().all(|library| machine(library) == Some(first)).then_some(first)
}

/// Whether Python imports it, by its name.
fn is_module(library: &Library) -> bool {
    let file = library.path.file_name().unwrap_or_default().to_string_lossy();
    file.contains(".cpython-") || file.ends_with(".abi3.so")
}

fn name(machine: Machine) -> &'static str {
    match machine {
        Machine::X86_64 => "x86_64",
        Machine::Aarch64 => "aarch64",
        Machine::Other(_) => "another processor",
    }
}
