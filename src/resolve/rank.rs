//! The order of preference among torch candidates.

use std::cmp::Reverse;

use super::candidate::Candidate;
use super::rule::{Rule, Verdict, service, tier};
use super::{Context, Machine};
use crate::diag::Failure;
use crate::matrix::{Served, Tier};

/// Indexes of the candidates, best first: what is known before what is not; the newest torch; native code on every GPU
/// before JIT; the default index before another; a CUDA that the driver supports natively before one under
/// minor-version compatibility, and the highest of each.
pub fn ranked(
    candidates: &[Candidate],
    rules: &[Rule],
    machine: &Machine,
    context: &Context<'_>,
) -> Result<Vec<usize>, Failure> {
    let mut keyed = Vec::with_capacity(candidates.len());
    for (i, candidate) in candidates.iter().enumerate() {
        let beyond_matrix = candidate.build.is_none();
        let hole = beyond_matrix || is_hole(candidate) || rules.iter().any(|rule| rule.verdicts[i] == Verdict::Unknown);
        let mut jit = false;
        for gpu in &machine.gpus {
            jit |= !matches!(service(gpu, candidate, machine, context.matrix)?, None | Some(Served::Sass(_)));
        }
        let other_index = *candidate.index != *context.default_index;
        let compatibility = tier(candidate, machine, context.matrix)?.unwrap_or(Tier::Native);
        let key = (
            beyond_matrix,
            hole,
            Reverse(candidate.public()),
            jit,
            other_index,
            compatibility,
            Reverse(candidate.cuda()),
        );
        keyed.push((key, i));
    }
    keyed.sort();
    Ok(keyed.into_iter().map(|(_, i)| i).collect())
}

/// A build whose GPU code or Python tags nobody has read.
pub fn is_hole(candidate: &Candidate) -> bool {
    candidate.build.as_ref().is_some_and(|build| {
        let row = build.row();
        row.cuda.is_some() && (row.code.is_none() || row.python.is_none())
    })
}
