//! The smallest changes that would give a stack, each tried by really resolving it.
//!
//! First the conflict is reduced to inputs that cannot be spared: their derivation is the explanation, and a repair has
//! to touch one of them. For each, the nearest value upward and downward that works; pairs only where no single change
//! is enough.

use super::candidate::candidates;
use super::explain::{Conflict, Derivation, Repair, inputs};
use super::solve::{self, Attempt};
use super::value::{Change, changes};
use super::{Context, Gives, Input, Keep, Machine, Request};
use crate::diag::Failure;
use crate::version::Driver;

/// How many values of one input are tried in one direction.
const MOST_TRIES: usize = 60;
/// How many pairs of changes are shown.
const MOST_PAIRS: usize = 3;

/// Explains a failed request and finds repairs.
pub(super) fn conflict(request: &Request, context: &Context<'_>, first: Derivation) -> Result<Conflict, Failure> {
    // What an old lock holds must not colour what is possible.
    let keep = Keep::default();
    let context = &Context { keep: &keep, ..*context };
    let core = core(request, context)?;
    // One without premises comes of an index that could not be asked.
    let derivation = derivation(request, &core, context)?.filter(|found| !found.premises.is_empty()).unwrap_or(first);
    let mut repairs = Vec::new();
    for input in &core {
        repairs.extend(single(request, input, context)?.into_iter().map(Found::repair));
    }
    let mut conflict = Conflict {
        target: request.target.name.clone(),
        explanation: derivation.text(),
        facts: derivation.facts,
        repairs,
        warnings: Machine::of(request, context.matrix)?.warnings,
    };
    if conflict.repairs.is_empty() {
        also(request, &core, context, &mut conflict)?;
        conflict.repairs = pairs(request, &core, context)?;
    }
    if context.offline
        && !context.pending
        && let Ok(solution) = attempt(request, &Context { pending: true, ..*context })?
    {
        let change = "resolve without --offline, or with --allow-pending".to_owned();
        conflict.repairs.push(Repair { change, gives: solution.gives(), at_bound: None });
    }
    conflict.repairs.dedup();
    Ok(conflict)
}

/// The derivation from the inputs of `core` alone; one that is of some Python, of the Python that was asked for.
fn derivation(request: &Request, core: &[Input], context: &Context<'_>) -> Result<Option<Derivation>, Failure> {
    let from = |kept: &[Input]| {
        let spared = inputs(request).into_iter().filter(|input| !core.contains(input) && !kept.contains(input));
        let reduced = spared.fold(request.clone(), |request, input| without(&request, &input));
        Ok(attempt(&reduced, context)?.err().map(|derivation| *derivation))
    };
    match from(&[])? {
        Some(found) if found.python.is_some() && request.stack.python.is_some() => from(&[Input::Python]),
        found => Ok(found),
    }
}

/// No single change is enough, so there is a second conflict, apart from the first: explains it too.
fn also(request: &Request, first: &[Input], context: &Context<'_>, conflict: &mut Conflict) -> Result<(), Failure> {
    // The GPUs are what they are; the conflict without something that can be changed tells more.
    let changeable = first.iter().filter(|input| !matches!(input, Input::Gpu(_)));
    for input in changeable.chain(first) {
        let relaxed = without(request, input);
        if attempt(&relaxed, context)?.is_ok() {
            continue;
        }
        let second = core(&relaxed, context)?;
        if let Some(derivation) = derivation(&relaxed, &second, context)? {
            conflict
                .explanation
                .push_str(&format!("\nWith another {input} there is still none:\n{}", derivation.text()));
            conflict.facts.extend(derivation.facts);
            conflict.facts.sort();
            conflict.facts.dedup();
        }
        return Ok(());
    }
    Ok(())
}

/// Inputs of which none can be spared for the conflict.
fn core(request: &Request, context: &Context<'_>) -> Result<Vec<Input>, Failure> {
    let mut reduced = request.clone();
    let mut core = Vec::new();
    // Halves of what is left, the first one first: where many inputs can be spared, most go at once.
    let mut open = vec![inputs(request)];
    while let Some(mut some) = open.pop() {
        let smaller = some.iter().fold(reduced.clone(), |request, input| without(&request, input));
        match (attempt(&smaller, context)?, some.len()) {
            (Err(_), _) => reduced = smaller,
            (Ok(_), 1) => core.append(&mut some),
            (Ok(_), count) => {
                let second = some.split_off(count / 2);
                open.extend([second, some]);
            }
        }
    }
    Ok(core)
}

/// Tries a request. A change that leads to an index which cannot be asked is no repair, whatever it would give.
fn attempt(request: &Request, context: &Context<'_>) -> Result<Attempt, Failure> {
    match solve::attempt(request, context) {
        Err(failure) if failure.diagnostics.iter().any(|d| d.code.starts_with("index-")) => {
            Ok(Err(Box::new(Derivation::default())))
        }
        tried => tried,
    }
}

/// The request without one of its inputs.
pub(super) fn without(request: &Request, input: &Input) -> Request {
    let mut changed = request.clone();
    let stack = &mut changed.stack;
    match input {
        Input::Driver => changed.target.driver = None,
        Input::Gpu(name) => changed.target.gpus.retain(|gpu| gpu != name),
        Input::Glibc => changed.target.glibc = None,
        Input::Python => stack.python = None,
        Input::Cuda => stack.cuda = None,
        Input::Cudnn => stack.cudnn = None,
        Input::Nccl => stack.nccl = None,
        Input::Variant => stack.variant = None,
        Input::Torch => stack.torch = None,
        Input::Package(name) => {
            match name.as_str() {
                "torchvision" => stack.torchvision = None,
                "torchaudio" => stack.torchaudio = None,
                "triton" => stack.triton = None,
                _ => {}
            }
            changed.packages.retain(|ask| ask.package != *name);
        }
    }
    changed
}

/// A change that is enough.
struct Found {
    /// As it is written; `gives` is what comes of just that.
    change: Change,
    gives: Gives,
    /// The nearest value, and what it gives.
    nearest: (Change, Gives),
}

impl Found {
    fn repair(self) -> Repair {
        let at_bound = at_bound(&self.change, &self.gives, self.nearest.1);
        Repair { change: self.change.text, gives: self.gives, at_bound }
    }
}

/// What the driver in a lower bound gives, where the bound gives something else.
fn at_bound(change: &Change, gives: &Gives, nearest: Gives) -> Option<(Driver, Gives)> {
    let driver = change.lowest_driver()?;
    (nearest != *gives).then(|| (driver.clone(), nearest))
}

/// The nearest changes of one input that are enough.
fn single(request: &Request, input: &Input, context: &Context<'_>) -> Result<Vec<Found>, Failure> {
    // Forward compatibility and the platform are not got by leaving the driver or the GPU out.
    let by_itself = matches!(input, Input::Driver | Input::Gpu(_));
    if !by_itself && attempt(&without(request, input), context)?.is_err() {
        return Ok(Vec::new());
    }
    let candidates = candidates(&without(request, input), context)?;
    let mut found = Vec::new();
    for direction in changes(request, input, &candidates, context)? {
        let mut failed = None;
        for change in direction.into_iter().take(MOST_TRIES) {
            let Ok(solution) = attempt(&change.request, context)? else {
                failed = Some(change);
                continue;
            };
            let nearest = (change.clone(), solution.gives());
            // The loosest way to write it, if that holds too.
            let loose = match change.loosened(request, input, failed.as_ref()) {
                Some(loose) => attempt(&loose.request, context)?.ok().map(|solution| (loose, solution.gives())),
                None => None,
            };
            let (change, gives) = loose.unwrap_or_else(|| nearest.clone());
            found.push(Found { change, gives, nearest });
            break;
        }
    }
    Ok(found)
}

/// Two changes that are enough together.
fn pairs(request: &Request, core: &[Input], context: &Context<'_>) -> Result<Vec<Repair>, Failure> {
    let all = inputs(request);
    let mut repairs: Vec<Repair> = Vec::new();
    for first in core {
        // Without the first, what is left of the conflict has to be touched by the second.
        let rest = without(request, first);
        let left = if attempt(&rest, context)?.is_err() { self::core(&rest, context)? } else { all.clone() };
        for second in left.iter().filter(|second| *second != first) {
            if repairs.len() == MOST_PAIRS {
                return Ok(repairs);
            }
            let relaxed = without(request, second);
            for found in single(&relaxed, first, context)? {
                // Under a lower bound of the driver any newer one would do; the bound itself has to.
                let carried = if found.change.lowest_driver().is_some() { &found.nearest.0 } else { &found.change };
                let with_second = carried.carried_to(request, first);
                let Some(other) = single(&with_second, second, context)?.into_iter().next() else { continue };
                let Ok(both) = attempt(&found.change.carried_to(&other.change.request, first), context)? else {
                    continue;
                };
                let gives = both.gives();
                let text = format!("{} and {}", found.change.text, other.change.text);
                let swapped = format!("{} and {}", other.change.text, found.change.text);
                if repairs.iter().all(|known| known.change != swapped && known.change != text) {
                    let at_bound = at_bound(&found.change, &gives, other.gives)
                        .or_else(|| at_bound(&other.change, &gives, other.nearest.1));
                    repairs.push(Repair { change: text, gives, at_bound });
                }
                break;
            }
        }
    }
    Ok(repairs)
}
