//! What a driver allows: builds of a CUDA that it runs, and the GPUs that it supports.

use super::{Fact, Input, Rule, Verdict};
use crate::diag::Failure;
use crate::matrix::{Matrix, Tier};
use crate::resolve::Machine;
use crate::resolve::candidate::Candidate;
use crate::resolve::machine::first_driver;

pub fn rule(machine: &Machine, candidates: &[Candidate], matrix: &Matrix) -> Result<Option<Rule>, Failure> {
    let Some(driver) = &machine.driver else { return Ok(None) };
    let facts = matrix.cuda()?;
    let mut rule = Rule {
        input: Input::Driver,
        verdicts: Vec::with_capacity(candidates.len()),
        subject: format!("driver {}", driver.given),
        nothing: Some(format!("driver {} is older than what any CUDA 11 or later needs", driver.given)),
        facts: Vec::new(),
        refuses: Vec::new(),
    };
    for candidate in candidates {
        rule.verdicts.push(match candidate.cuda() {
            Some(cuda) => match facts.tier(&driver.decides, cuda, machine.forward) {
                Some(_) => Verdict::Yes,
                None => Verdict::No,
            },
            // A CPU build needs no driver; a build that nobody knows may need any.
            None if candidate.build.is_some() => Verdict::Yes,
            None => Verdict::Unknown,
        });
    }
    for family in &facts.families {
        let claim = format!("CUDA {}.x needs driver {} or later", family.cuda, family.floor);
        rule.facts.push(Fact { claim, source: family.source.clone() });
    }
    for gpu in &machine.gpus {
        let input = Input::Gpu(gpu.name.clone());
        if let Some((first, claim, source, _)) = first_driver(matrix, gpu)?
            && driver.decides < first
        {
            rule.refuses.push((
                input.clone(),
                format!("driver {} does not know {} (the first that does: {first})", driver.given, gpu.name),
            ));
            rule.facts.push(Fact { claim, source });
        }
        let row = matrix.gpu()?.get(gpu.capability);
        if let Some((last, source)) = row.and_then(|row| Some((row.last_branch?, &row.source)))
            && driver.decides.major() > last
        {
            let sentence =
                format!("driver {} no longer supports {} (the last branch that does: R{last})", driver.given, gpu.name);
            rule.refuses.push((input, sentence.clone()));
            rule.facts.push(Fact { claim: sentence, source: source.clone() });
        }
    }
    Ok(Some(rule))
}

/// How the driver of a machine supports a candidate.
pub fn tier(candidate: &Candidate, machine: &Machine, matrix: &Matrix) -> Result<Option<Tier>, Failure> {
    match (&machine.driver, candidate.cuda()) {
        (Some(driver), Some(cuda)) => Ok(matrix.cuda()?.tier(&driver.decides, cuda, machine.forward)),
        _ => Ok(None),
    }
}
