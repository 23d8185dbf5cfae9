//! Facts behind what is asked of CUDA and of libraries.

use super::{Fact, Verdict, matches_labelled};
use crate::diag::{Failure, did_you_mean};
use crate::matrix::{Matrix, TorchBuild};
use crate::python::Platform;
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

/// What is said of a build in a fact; `None` where the matrix does not know.
pub type Say<'a> = &'a dyn Fn(&TorchBuild) -> Option<String>;

/// What the candidates that the torch specifier accepts say.
pub fn pins(candidates: &[Candidate], torch: Option<&Specifiers>, say: Say<'_>) -> Vec<Fact> {
    let accepted = candidates.iter().filter(|candidate| torch.is_some_and(|torch| matches_labelled(torch, candidate)));
    let mut facts: Vec<Fact> = accepted.filter_map(|candidate| fact(candidate, say)).collect();
    facts.truncate(4);
    facts
}

/// The newest build that is allowed and the newest that is not, each with what it says.
pub fn examples(candidates: &[Candidate], verdicts: &[Verdict], say: Say<'_>) -> Vec<Fact> {
    let [allowed, refused] = [Verdict::Yes, Verdict::No].map(|verdict| newest(candidates, verdicts, verdict, say));
    allowed.into_iter().chain(refused).collect()
}

/// The newest build of a verdict that says something.
pub fn newest(candidates: &[Candidate], verdicts: &[Verdict], verdict: Verdict, say: Say<'_>) -> Option<Fact> {
    let judged = candidates.iter().zip(verdicts).rev().filter(|(_, own)| **own == verdict);
    judged.into_iter().find_map(|(candidate, _)| fact(candidate, say))
}

/// The CUDA of a build.
pub fn cuda_of(build: &TorchBuild) -> Option<String> {
    Some(format!("is built with CUDA {}", build.row().cuda?))
}

fn fact(candidate: &Candidate, say: Say<'_>) -> Option<Fact> {
    let build = candidate.build.as_ref()?;
    let claim = format!("torch {} {}", candidate.label(), say(build)?);
    Some(Fact { claim, source: build.row().source.clone() })
}

/// The labels that builds have, oldest CUDA first.
fn variants(candidates: &[Candidate]) -> Vec<String> {
    let mut labels: Vec<_> = candidates.iter().filter_map(|c| Some((c.cuda()?, c.variant()?))).collect();
    labels.sort();
    labels.dedup();
    labels.into_iter().map(|(_, label)| label).collect()
}

/// The sentence for a label that no build has.
pub fn no_such_variant(variant: &str, candidates: &[Candidate]) -> String {
    let labels = variants(candidates);
    let meant = match did_you_mean(variant, labels.iter().map(String::as_str)) {
        Some(near) => format!(" (did you mean {near}?)"),
        None => String::new(),
    };
    format!("there is no torch variant {variant}{meant}; those that exist: {}", labels.join(", "))
}

/// The sentence for a torch specifier that accepts no candidate.
pub fn no_such_torch(specifiers: &Specifiers, candidates: &[Candidate], platform: Platform) -> String {
    let labels = specifiers.iter().any(|specifier| specifier.version().is_local());
    let known = match (candidates.first(), candidates.last()) {
        (Some(first), Some(last)) => format!("{} to {}", first.public(), last.public()),
        _ => "none".into(),
    };
    let labels = if labels { format!(", in the variants {}", variants(candidates).join(", ")) } else { String::new() };
    format!("no torch {specifiers} is known for {platform} (known: {known}{labels})")
}
