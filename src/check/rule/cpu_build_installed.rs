//! A CPU build of torch where a GPU is the target.

use super::architecture_mismatch;
use crate::check::{Case, Claims, Outcome, Rule, evidence, stack};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::inventory::Distribution;

pub const RULE: Rule = Rule {
    code: "cpu-build-installed",
    level: Severity::Error,
    page: include_str!("../page/cpu-build-installed.md"),
    run,
};

/// The library that every CUDA build of torch has, and no other build.
const CUDA_LIBRARY: &str = "libtorch_cuda.so";
/// The one that all builds have.
const CPU_LIBRARY: &str = "libtorch_cpu.so";

fn run(case: &Case<'_>, _: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let Some(machine) = case.machine.filter(|machine| !machine.gpus.is_empty()) else {
        return Ok(Outcome::Skipped("no GPU declared".into()));
    };
    // Conda's packages bring torch under names of their own, split in several.
    let names = &case.matrix.package()?.torch;
    let of_torch = |package: &&Distribution| names.contains(&package.name);
    let Some(torch) = case.inventory.packages.iter().find(of_torch) else { return Ok(Outcome::Ran(Vec::new())) };
    let own = |name: &str| {
        case.inventory.libraries().iter().find(|library| {
            library.path.ends_with(name) && stack::package(case.inventory, library).as_ref().is_some_and(of_torch)
        })
    };
    // Without its libraries at all it is another fault, and so is a library that was recorded and is gone.
    let recorded = case.inventory.packages.iter().filter(of_torch).flat_map(|package| &package.files);
    let is_cuda_build =
        own(CUDA_LIBRARY).is_some() || recorded.into_iter().any(|file| file.path.ends_with(CUDA_LIBRARY));
    let Some(library) = own(CPU_LIBRARY).filter(|_| !is_cuda_build) else { return Ok(Outcome::Ran(Vec::new())) };
    // For another processor: that is said, and a wheel for this one is another build.
    let machine_of = library.object.as_ref().ok().map(|object| object.machine);
    if architecture_mismatch::machine(case).is_some_and(|(own, _)| machine_of.is_some_and(|other| other != own)) {
        return Ok(Outcome::Ran(Vec::new()));
    }
    let gpus: Vec<&str> = machine.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
    let message =
        format!("torch {} is a CPU build: `torch.cuda.is_available()` is false on {}", torch.version, gpus.join(", "));
    let seen =
        Evidence::observed(torch.info.display().to_string(), format!("version {}, no {CUDA_LIBRARY}", torch.version));
    let conda = case.inventory.packages.iter().find(|package| of_torch(package) && package.build.is_some());
    let build = conda.map(|package| {
        let build = package.build.as_deref().unwrap_or_default();
        Evidence::observed(package.info.display().to_string(), format!("build {build}"))
    });
    let release = torch.pep440().map_or(torch.version.clone(), |version| version.only_release().to_string());
    let fix = match &case.locked {
        None if conda.is_some() => "ask conda for the CUDA build: conda install 'pytorch=*=cuda*'".to_owned(),
        Some(locked) => format!(
            "install what the lock says, torch {}, with `pip install --force-reinstall --no-deps`: a CPU build satisfies \
             `torch=={}` too",
            locked.target.torch, release
        ),
        None => format!("gpulock resolve --gpu \"{}\" --torch '=={release}' names the CUDA build", gpus[0]),
    };
    let finding = evidence::finding(Diagnostic::error(RULE.code, message, seen).about("torch"), build);
    Ok(Outcome::Ran(vec![finding.fix(fix)]))
}
