//! A CPU build of torch where a GPU is the target.

use crate::check::{Case, Claims, Outcome, Rule};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};

pub const RULE: Rule = Rule {
    code: "cpu-build-installed",
    level: Severity::Error,
    page: include_str!("../page/cpu-build-installed.md"),
    run,
};

/// The library that every CUDA build of torch has, and no other build.
const CUDA_LIBRARY: &str = "torch/lib/libtorch_cuda.so";

fn run(case: &Case<'_>, _: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let Some(machine) = case.machine.filter(|machine| !machine.gpus.is_empty()) else {
        return Ok(Outcome::Skipped("no GPU declared".into()));
    };
    let Some((index, torch)) =
        case.inventory.packages.iter().enumerate().find(|(_, package)| package.name.as_str() == "torch")
    else {
        return Ok(Outcome::Ran(Vec::new()));
    };
    let own = |name: &str| {
        let of_torch = case.inventory.libraries().iter().filter(|library| library.package == Some(index));
        let recorded = torch.files.iter().map(|file| file.path.as_path());
        of_torch.map(|library| library.path.as_path()).chain(recorded).any(|path| path.ends_with(name))
    };
    // Without its libraries at all it is another fault.
    if own(CUDA_LIBRARY) || !own("torch/lib/libtorch_cpu.so") {
        return Ok(Outcome::Ran(Vec::new()));
    }
    let gpus: Vec<&str> = machine.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
    let message =
        format!("torch {} is a CPU build: `torch.cuda.is_available()` is false on {}", torch.version, gpus.join(", "));
    let seen =
        Evidence::observed(torch.info.display().to_string(), format!("version {}, no {CUDA_LIBRARY}", torch.version));
    let release = torch.pep440().map_or(torch.version.clone(), |version| version.only_release().to_string());
    let fix = match &case.locked {
        Some(locked) => format!(
            "install what the lock says, torch {}, with `pip install --force-reinstall --no-deps`: a CPU build satisfies \
             `torch=={}` too",
            locked.target.torch, release
        ),
        None => format!("gpulock resolve --gpu \"{}\" --torch '=={release}' names the CUDA build", gpus[0]),
    };
    Ok(Outcome::Ran(vec![Diagnostic::error(RULE.code, message, seen).about("torch").fix(fix)]))
}
