//! Facts behind what is asked of CUDA and of libraries.

use super::{Fact, matches_labelled};
use crate::diag::Failure;
use crate::matrix::{Matrix, TorchBuild};
use crate::resolve::Machine;
use crate::resolve::candidate::Candidate;
use crate::version::{Constraint, Cuda, Specifiers};

/// The sentence for a CUDA minor inside the known range that was never released.
pub fn never_released(asked: Option<&Cuda>, matrix: &Matrix) -> Result<Option<String>, Failure> {
    let facts = matrix.cuda()?;
    let Some(asked) = asked.filter(|asked| facts.get(**asked).is_none()) else { return Ok(None) };
    let family: Vec<String> =
        facts.cudas.iter().filter(|file| file.cuda.major == asked.major).map(|file| file.cuda.to_string()).collect();
    let newest = facts.cudas.last().map(|file| file.cuda);
    Ok(Some(if newest.is_some_and(|newest| *asked > newest) {
        format!("CUDA {asked} is newer than this matrix, which ends with {}", newest.unwrap_or(*asked))
    } else if family.is_empty() {
        format!("CUDA {asked} is not known; no torch that is known here uses it")
    } else {
        format!("CUDA {asked} was never released; those of that family: {}", family.join(", "))
    }))
}

/// GPUs that no CUDA inside the constraint knows.
pub fn unknown_to_cuda(
    constraint: &Constraint<Cuda>,
    machine: &Machine,
    matrix: &Matrix,
) -> Result<Vec<Fact>, Failure> {
    let allowed: Vec<Cuda> =
        matrix.cuda()?.cudas.iter().map(|file| file.cuda).filter(|cuda| constraint.allows(cuda)).collect();
    let mut facts = Vec::new();
    for gpu in &machine.gpus {
        let Some(row) = matrix.gpu()?.get(gpu.capability) else { continue };
        let Some(first) = row.first_cuda.filter(|first| allowed.iter().all(|cuda| cuda < first)) else { continue };
        let claim = format!(
            "CUDA {constraint} does not know {} ({}): the first that does is {first}",
            gpu.name,
            gpu.capability.sm()
        );
        facts.push(Fact { claim, source: row.source.clone() });
    }
    Ok(facts)
}

/// What the candidates that the torch specifier accepts pin of a library.
pub fn pins(
    candidates: &[Candidate],
    torch: Option<&Specifiers>,
    library: &str,
    pin: impl Fn(&TorchBuild) -> Option<String>,
) -> Vec<Fact> {
    let accepted = candidates.iter().filter(|candidate| torch.is_some_and(|torch| matches_labelled(torch, candidate)));
    let mut facts: Vec<Fact> = accepted
        .filter_map(|candidate| {
            let build = candidate.build.as_ref()?;
            let claim = format!("torch {} pins {library} {}", candidate.label(), pin(build)?);
            Some(Fact { claim, source: build.row().source.clone() })
        })
        .collect();
    facts.truncate(4);
    facts
}
