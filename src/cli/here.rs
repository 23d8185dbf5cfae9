//! This machine, where it is asked for by name: `--target auto`, `init --from-host`. What was read is always said.

use std::path::Path;

use super::asking;
use super::input::{self, Flags, Input, Place};
use crate::diag::{Diagnostic, Evidence, Failure};
use crate::inventory::host::{self, Host};
use crate::manifest::{self, Manifest, Stack, Target};
use crate::matrix::Matrix;
use crate::resolve::{Machine, Request};
use crate::version::Capability;

/// The target that means this machine.
pub const AUTO: &str = "auto";

/// Reads this machine, by the same files as `gpulock doctor`.
///
/// # Errors
/// When the matrix cannot be read.
pub fn host(matrix: &Matrix) -> Result<Host, Failure> {
    Ok(host::read(Path::new("/"), std::env::consts::ARCH, (matrix.pci()?, matrix.gpu()?), &asking::ask))
}

/// What was read, each with where.
pub fn notes(host: &Host) -> Vec<Diagnostic> {
    let note = |what: String, seen: &Evidence| Diagnostic::note("from-host", what, seen.clone());
    let driver = host.driver.iter().map(|fact| note(format!("driver {}", fact.value), &fact.seen));
    let gpus = host.gpus.iter().map(|fact| note(format!("GPU {}", fact.value), &fact.seen));
    let platform = host.platform.iter().map(|fact| note(format!("platform {}", fact.value), &fact.seen));
    let glibc = host.glibc.iter().map(|fact| note(format!("glibc {}", fact.value), &fact.seen));
    let python = host.python.iter().map(|fact| note(format!("Python {}", fact.value), &fact.seen));
    driver.chain(gpus).chain(platform).chain(glibc).chain(python).collect()
}

/// That there is no GPU here to go by.
pub fn nothing() -> Failure {
    let evidence = Evidence::observed("/proc/driver/nvidia, /sys/bus/pci/devices, nvidia-smi", "no GPU and no driver");
    let error = Diagnostic::error("host-unknown", "this machine has no NVIDIA GPU and no driver", evidence);
    Failure::unanswerable(error.fix("name the machines of the job: --gpu \"RTX 5090\" --driver 570"))
}

/// What `gpulock resolve --target auto` is about: the targets of the manifest that describe this machine, or without a
/// manifest this machine itself.
///
/// # Errors
/// No GPU here, a manifest that cannot be read, or none of its targets describes this machine.
pub fn input(place: &Place, flags: &Flags, host: &Host, matrix: &Matrix) -> Result<(Input, Vec<String>), Failure> {
    if !flags.gpus.is_empty() {
        let evidence = Evidence::observed("command line", "--gpu and --target auto");
        let error = Diagnostic::error("usage", "--gpu names machines, and --target auto means this one", evidence);
        return Err(Failure::unanswerable(error.fix("leave one of the two out")));
    }
    if host.gpus.is_empty() {
        return Err(nothing());
    }
    if input::manifest_with_path(place)?.is_some() {
        let input = input::read(place, flags)?;
        let targets = fitting(&input.manifest, host, matrix)?;
        return Ok((input, targets));
    }
    let mut flags = flags.clone();
    flags.gpus = host.gpus.iter().map(|fact| fact.value.clone()).collect();
    let driver = host.driver.as_ref().and_then(|fact| manifest::parse_driver(&fact.value.to_string()).ok());
    flags.driver = flags.driver.or(driver);
    flags.platform = flags.platform.or(host.platform.as_ref().map(|fact| fact.value));
    flags.glibc = flags.glibc.or(host.glibc.as_ref().map(|fact| fact.value.clone()));
    Ok((input::read(place, &flags)?, Vec::new()))
}

/// Names of the targets that have all GPUs of this machine, its platform, and no newer driver.
fn fitting(manifest: &Manifest, host: &Host, matrix: &Matrix) -> Result<Vec<String>, Failure> {
    let facts = matrix.gpu()?;
    let here: Vec<Option<Capability>> =
        host.gpus.iter().map(|fact| facts.find(&fact.value).ok().map(|gpu| gpu.capability)).collect();
    let mut names = Vec::new();
    for target in &manifest.targets {
        let machine = machine(target, matrix)?;
        let has = |capability: &Option<Capability>| machine.gpus.iter().any(|gpu| Some(gpu.capability) == *capability);
        let lowest = machine.driver.as_ref().and_then(|driver| driver.lowest.as_ref());
        let is_new = host.driver.as_ref().zip(lowest).is_none_or(|(here, lowest)| here.value >= *lowest);
        let is_platform = host.platform.as_ref().is_none_or(|fact| fact.value == target.platform);
        if here.iter().all(has) && is_new && is_platform {
            names.push(target.name.clone());
        }
    }
    if names.is_empty() {
        let all: Vec<String> = manifest.targets.iter().map(|target| target.name.clone()).collect();
        let error = Diagnostic::error(
            "target-unknown",
            format!("this machine is none of the manifest's targets: {}", all.join(", ")),
            host.gpus[0].seen.clone(),
        );
        let error = host.driver.iter().fold(error, |error, fact| error.and(fact.seen.clone()));
        return Err(Failure::unanswerable(
            error.fix("add a target for it, or name the target that is meant: --target"),
        ));
    }
    Ok(names)
}

fn machine(target: &Target, matrix: &Matrix) -> Result<Machine, Failure> {
    let request =
        Request { target: target.clone(), stack: Stack::default(), packages: Vec::new(), indexes: Vec::new() };
    Machine::of(&request, matrix)
}
