//! What a GPU allows: builds whose own code runs on it, with a cuDNN that has code for it.

use super::{Fact, Input, Rule, Verdict};
use crate::diag::Failure;
use crate::matrix::{Gpu, Matrix, Served};
use crate::python::Platform;
use crate::resolve::Machine;
use crate::resolve::candidate::Candidate;
use crate::version::{Capability, Cudnn, PtxIsa};

pub fn rule(
    gpu: &Gpu,
    platform: Platform,
    machine: &Machine,
    candidates: &[Candidate],
    matrix: &Matrix,
) -> Result<Rule, Failure> {
    let facts = matrix.gpu()?;
    let row = facts.get(gpu.capability);
    let on_chip_elsewhere = row.is_some_and(|row| row.tegra) && platform == Platform::LinuxX86_64;
    let mut rule = Rule {
        input: Input::Gpu(gpu.name.clone()),
        verdicts: Vec::with_capacity(candidates.len()),
        subject: if gpu.name.parse::<Capability>().is_ok() {
            format!("a GPU of {}", gpu.capability.sm())
        } else {
            format!("{} ({})", gpu.name, gpu.capability.sm())
        },
        nothing: Some(if on_chip_elsewhere {
            format!("{} ({}) is an Arm system on chip: its platform is linux-aarch64", gpu.name, gpu.capability.sm())
        } else {
            format!("no known build of torch carries code that runs on {} ({})", gpu.name, gpu.capability.sm())
        }),
        facts: Vec::new(),
        refuses: Vec::new(),
    };
    for candidate in candidates {
        let Some(build) = &candidate.build else {
            rule.verdicts.push(Verdict::Unknown);
            continue;
        };
        let too_new =
            matches!((row.and_then(|row| row.last_cuda), candidate.cuda()), (Some(last), Some(cuda)) if cuda > last);
        // What the indexes have for Arm is made for servers.
        let not_for_tegra =
            row.is_some_and(|row| row.tegra && row.sbsa_from_cuda.is_none_or(|from| candidate.cuda() < Some(from)));
        let verdict = if candidate.cuda().is_none() || too_new || not_for_tegra || on_chip_elsewhere {
            Verdict::No
        } else {
            let own = match service(gpu, candidate, machine, matrix)? {
                // For a GPU that the matrix has not heard of, only code that was read counts.
                None if !gpu.known => Verdict::No,
                None => Verdict::Unknown,
                Some(Served::Sass(_) | Served::Ptx(_)) => Verdict::Yes,
                Some(Served::PtxTooNew(_) | Served::No) => Verdict::No,
            };
            let cudnn = build.row().cudnn.as_ref().filter(|_| own != Verdict::No);
            match cudnn.map(|cudnn| cudnn_serves(gpu, cudnn, candidate, machine, matrix)).transpose()? {
                Some(false) => Verdict::No,
                Some(true) | None => own,
            }
        };
        rule.verdicts.push(verdict);
    }
    if let Some(row) = row {
        let since = row.first_cuda.map_or(String::new(), |cuda| format!(", known to CUDA {cuda} and later"));
        let until = row.last_cuda.map_or(String::new(), |cuda| format!(", supported up to CUDA {cuda}"));
        let claim = format!("{} has compute capability {}{since}{until}", gpu.name, gpu.capability);
        rule.facts.push(Fact { claim, source: row.source.clone() });
        if row.tegra {
            let from = row.sbsa_from_cuda.map_or("not at all".into(), |cuda| format!("from CUDA {cuda} on"));
            let claim = format!("packages for Arm servers run on {} ({}) {from}", gpu.name, gpu.capability.sm());
            rule.facts.push(Fact { claim, source: row.source.clone() });
        }
    }
    Ok(rule)
}

/// What of a candidate's own code serves a GPU; `None` where its code is not known.
pub fn service(
    gpu: &Gpu,
    candidate: &Candidate,
    machine: &Machine,
    matrix: &Matrix,
) -> Result<Option<Served>, Failure> {
    let Some(code) = candidate.build.as_ref().and_then(|build| build.row().code.as_ref()) else { return Ok(None) };
    let cuda = candidate.cuda();
    let facts = matrix.cuda()?;
    let isa = cuda.and_then(|cuda| facts.get(cuda)).and_then(|file| file.ptx_isa.as_ref());
    Ok(Some(matrix.gpu()?.serve(code, gpu.capability, cuda, isa, driver_isa(machine))))
}

fn driver_isa(machine: &Machine) -> Option<&PtxIsa> {
    machine.driver.as_ref().and_then(|driver| driver.ptx_isa.as_ref())
}

/// False when the cuDNN that a candidate pins is known to carry no code for a GPU. What nobody has read serves.
fn cudnn_serves(
    gpu: &Gpu,
    cudnn: &Cudnn,
    candidate: &Candidate,
    machine: &Machine,
    matrix: &Matrix,
) -> Result<bool, Failure> {
    let on_x86 = candidate.build.as_ref().is_some_and(|build| build.row().platform == Platform::LinuxX86_64);
    let family = candidate.cuda().map(|cuda| cuda.major);
    let builds = matrix.cudnn_release(cudnn)?.map_or(&[][..], |release| &release.builds);
    let code = builds.iter().filter(|build| Some(build.cuda) == family).find_map(|build| build.code.as_ref());
    // The lists were read from x86_64 wheels; for another platform, and for a GPU newer than the matrix, they say nothing.
    let (Some(code), true, true) = (code, on_x86, gpu.known) else { return Ok(true) };
    let served = matrix.gpu()?.serve(code, gpu.capability, candidate.cuda(), None, driver_isa(machine));
    Ok(matches!(served, Served::Sass(_) | Served::Ptx(_)))
}
