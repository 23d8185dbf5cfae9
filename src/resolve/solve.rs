//! Runs the solver: over the Pythons that may be chosen, then over the targets.

use pubgrub::PubGrubError;

use super::candidate::{Candidate, candidates, summary};
use super::explain::{Conflict, Derivation, Repair};
use super::note::notes;
use super::package::Packages;
use super::provider::{Node, Provider, only};
use super::rank::ranked;
use super::rule::{Input, Rule, Verdict, python_rule, rules};
use super::solution::{Solution, python_packages};
use super::{Context, Machine, Request, repair};
use crate::diag::Failure;
use crate::manifest::PythonAsk;
use crate::python::{PackageName, PythonVersion, Runtime};
use crate::version::pep440::{VersionSpecifier, to_set};

/// What came of a request.
#[derive(Debug)]
pub enum Outcome {
    /// A stack.
    Solved(Box<Solution>),
    /// There is none, why, and what would give one.
    Conflict(Box<Conflict>),
}

/// Resolves one target.
///
/// # Errors
/// What cannot be answered: unknown GPU names, catalogs that fail.
pub fn resolve(request: &Request, context: &Context<'_>) -> Result<Outcome, Failure> {
    if !context.offline && request.variant_is_unknown(context.matrix)? {
        // No index has what was never built: the matrix answers, and no index is asked.
        let snapshot = context.matrix.snapshot();
        return answer(request, &Context { catalog: &snapshot, offline: true, pending: true, ..*context });
    }
    answer(request, context)
}

fn answer(request: &Request, context: &Context<'_>) -> Result<Outcome, Failure> {
    match attempt(request, context)? {
        Ok(solution) => Ok(Outcome::Solved(solution)),
        Err(derivation) => repair::conflict(request, context, *derivation).map(|c| Outcome::Conflict(Box::new(c))),
    }
}

/// Resolves all targets of a manifest, in order. With `same-torch`, to the newest torch version that serves them all.
///
/// # Errors
/// As [`resolve`].
pub fn resolve_all(requests: &[Request], contexts: &[Context<'_>]) -> Result<Vec<Outcome>, Failure> {
    let alone: Vec<Outcome> =
        requests.iter().zip(contexts).map(|(request, context)| resolve(request, context)).collect::<Result<_, _>>()?;
    let solved = |outcome: &Outcome| match outcome {
        Outcome::Solved(solution) => Some(solution.stack.torch.clone()),
        Outcome::Conflict(_) => None,
    };
    let versions: Vec<_> = alone.iter().map(solved).collect();
    let same = versions.windows(2).all(|pair| pair[0] == pair[1]);
    let wanted = requests.first().is_some_and(|request| request.stack.same_torch);
    if !wanted || same || versions.iter().any(Option::is_none) {
        return Ok(alone);
    }
    together(requests, contexts)
}

/// The newest torch version with which every target has a stack.
fn together(requests: &[Request], contexts: &[Context<'_>]) -> Result<Vec<Outcome>, Failure> {
    let mut versions = Vec::new();
    for (request, context) in requests.iter().zip(contexts) {
        versions.extend(candidates(request, context)?.iter().map(Candidate::public));
    }
    versions.sort();
    versions.dedup();
    for version in versions.into_iter().rev() {
        let accepted = |request: &&Request| request.stack.torch.as_ref().is_none_or(|asked| asked.contains(&version));
        if !requests.iter().all(|request| accepted(&request)) {
            continue;
        }
        let mut outcomes = Vec::new();
        for (request, context) in requests.iter().zip(contexts) {
            let mut pinned = request.clone();
            pinned.stack.torch = Some(VersionSpecifier::equals_version(version.clone()).into());
            match attempt(&pinned, context)? {
                Ok(solution) => outcomes.push(Outcome::Solved(solution)),
                Err(_) => break,
            }
        }
        if outcomes.len() == requests.len() {
            return Ok(outcomes);
        }
    }
    apart(requests, contexts).map(|conflict| vec![Outcome::Conflict(Box::new(conflict))])
}

/// Every target has a stack, but no torch version serves all.
fn apart(requests: &[Request], contexts: &[Context<'_>]) -> Result<Conflict, Failure> {
    let mut premises = Vec::new();
    let mut warnings = Vec::new();
    let mut gives = None;
    for (request, context) in requests.iter().zip(contexts) {
        let machine = Machine::of(request, context.matrix)?;
        let candidates = candidates(request, context)?;
        let rules = rules(request, &machine, &candidates, context)?;
        let allowed = |i: &usize| rules.iter().all(|rule| rule.verdicts[*i] != Verdict::No);
        let allowed = (0..candidates.len()).filter(allowed).map(|i| &candidates[i]);
        warnings.extend(machine.warnings);
        premises.push(format!("target `{}` allows only torch {}", request.target.name, summary(allowed)));
        if let Ok(solution) = attempt(request, context)? {
            gives.get_or_insert(solution.gives());
        }
    }
    let derivation = Derivation { premises, ..Derivation::default() };
    let change = "same-torch = false (each target gets its own torch)".to_owned();
    Ok(Conflict {
        target: requests.iter().map(|request| request.target.name.as_str()).collect::<Vec<_>>().join(", "),
        explanation: derivation.text(),
        facts: Vec::new(),
        repairs: gives.map(|gives| Repair { change, gives, at_bound: None }).into_iter().collect(),
        warnings,
    })
}

/// A solution, or the derivation that there is none.
pub(super) type Attempt = Result<Box<Solution>, Box<Derivation>>;

/// Tries to solve a request as it is.
pub(super) fn attempt(request: &Request, context: &Context<'_>) -> Result<Attempt, Failure> {
    let machine = Machine::of(request, context.matrix)?;
    let candidates = candidates(request, context)?;
    if candidates.is_empty() {
        return Ok(Err(Box::new(Derivation::no_torch(request, context.default_index))));
    }
    let base = rules(request, &machine, &candidates, context)?;

    // The Pythons by what they could give at best, so that the first success is mostly the answer.
    let mut options = Vec::new();
    let pythons = pythons(request, context)?;
    for &python in &pythons {
        let mut rules = base.clone();
        rules.push(python_rule(request, &[python], &candidates));
        let order = ranked(&candidates, &rules, &machine, context)?;
        let best = order.iter().position(|&i| rules.iter().all(|rule| rule.verdicts[i] != Verdict::No));
        options.push((best.map(|at| order[at]), python, rules, order));
    }
    let overall = ranked(&candidates, &base, &machine, context)?;
    let place = |i: Option<usize>| i.and_then(|i| overall.iter().position(|&other| other == i)).unwrap_or(usize::MAX);
    options.sort_by_key(|(best, python, ..)| {
        let kept = context.keep.python == Some(*python);
        (!kept, place(*best), std::cmp::Reverse(*python))
    });

    let trial = Trial { request, context, machine: &machine, candidates: &candidates };
    let mut found: Option<(usize, Box<Solution>)> = None;
    let mut failed: Vec<Derivation> = Vec::new();
    for (best, python, rules, order) in options {
        if found.as_ref().is_some_and(|(reached, solution)| {
            *reached <= place(best) || context.keep.python == Some(solution.stack.python)
        }) {
            break;
        }
        match trial.with(python, rules, &order)? {
            Ok(solution) => {
                let torch = candidates
                    .iter()
                    .position(|c| c.public() == solution.stack.torch && c.variant() == solution.stack.variant);
                let reached = place(torch);
                if found.as_ref().is_none_or(|(other, _)| reached < *other) {
                    found = Some((reached, solution));
                }
            }
            Err(derivation) => failed.push(*derivation),
        }
    }
    if let Some((_, solution)) = found {
        return Ok(Ok(solution));
    }
    if failed.is_empty() {
        return Ok(Err(Box::new(Derivation::no_python(request))));
    }
    // What holds for all Pythons together says most; else that of the Python which lacks the fewest wheels.
    let mut all = base.clone();
    all.push(python_rule(request, &pythons, &candidates));
    if pythons.len() > 1 && (0..candidates.len()).all(|i| all.iter().any(|rule| rule.verdicts[i] == Verdict::No)) {
        if request.stack.python.is_none() {
            all.pop();
        }
        let every = (0..candidates.len()).collect::<Vec<_>>();
        if let Err(derivation) = trial.run(pythons[0], &all, &every, &every)? {
            return Ok(Err(derivation));
        }
    }
    let best = failed
        .into_iter()
        .min_by_key(|derivation| (!derivation.unreadable, derivation.wheels_missing))
        .unwrap_or_default();
    Ok(Err(Box::new(best)))
}

/// The Pythons that may be chosen: what is asked for, else every one that some torch has wheels for.
fn pythons(request: &Request, context: &Context<'_>) -> Result<Vec<PythonVersion>, Failure> {
    if let Some(PythonAsk::Exact(python)) = request.stack.python {
        return Ok(vec![python]);
    }
    let builds = context.matrix.torch()?.builds(request.target.platform);
    let mut pythons: Vec<PythonVersion> = builds.filter_map(|build| build.row().pythons()).flatten().collect();
    pythons.extend(context.keep.python);
    pythons.sort();
    pythons.dedup();
    pythons.retain(|python| {
        let free_threaded = python.free_threaded && context.keep.python != Some(*python);
        !free_threaded && request.stack.python.as_ref().is_none_or(|asked| asked.allows(*python))
    });
    Ok(pythons)
}

/// What all runs for one request share.
struct Trial<'t> {
    request: &'t Request,
    context: &'t Context<'t>,
    machine: &'t Machine,
    candidates: &'t [Candidate],
}

impl Trial<'_> {
    /// One Python, whose rule is the last. One that was not asked for is no input of the user; it still has to fit, and
    /// the order sees to that.
    fn with(&self, python: PythonVersion, mut rules: Vec<Rule>, order: &[usize]) -> Result<Attempt, Failure> {
        if self.request.stack.python.is_some() {
            return self.run(python, &rules, order, order);
        }
        let fits = |i: &&usize| rules.last().is_none_or(|rule| rule.verdicts[**i] != Verdict::No);
        let fitting: Vec<usize> = order.iter().filter(fits).copied().collect();
        rules.pop();
        self.run(python, &rules, &fitting, order)
    }

    /// Runs the solver; `order` are the candidates that may be chosen, `all` those that are compared with.
    fn run(&self, python: PythonVersion, rules: &[Rule], order: &[usize], all: &[usize]) -> Result<Attempt, Failure> {
        let Self { request, context, machine, candidates } = *self;
        let runtime = Runtime { platform: request.target.platform, python, glibc: request.target.glibc.clone() };
        let packages = Packages::new(context, request, runtime, candidates, order);
        let provider = Provider { packages, rules, asks: asks(request) };
        match pubgrub::resolve(&provider, Node::Root, only()) {
            Ok(selected) => {
                let (selected, extras) = python_packages(selected);
                let mut asked: Vec<PackageName> = provider.asks.iter().map(|(_, name, ..)| name.clone()).collect();
                asked.push(provider.packages.torch.clone());
                let mut solution = Solution::build(&selected, &extras, &asked, &provider.packages, machine)?;
                let more = notes(&solution, &provider.packages, rules, all, machine)?;
                solution.notes.extend(more);
                Ok(Ok(Box::new(solution)))
            }
            Err(PubGrubError::NoSolution(tree)) => {
                let mut derivation = Derivation::new(tree, &provider, request)?;
                let exact = matches!(request.stack.python, Some(PythonAsk::Exact(_)));
                derivation.python = (!exact && derivation.wheels_missing > 0).then_some(python);
                Ok(Err(Box::new(derivation)))
            }
            Err(
                PubGrubError::ErrorRetrievingDependencies { source, .. }
                | PubGrubError::ErrorChoosingVersion { source, .. }
                | PubGrubError::ErrorInShouldCancel(source),
            ) => Err(source),
        }
    }
}

/// What the user asks of Python packages other than torch.
fn asks(request: &Request) -> Vec<(Input, PackageName, Vec<PackageName>, super::provider::Set)> {
    let stack = &request.stack;
    let named = [("torchvision", &stack.torchvision), ("torchaudio", &stack.torchaudio), ("triton", &stack.triton)];
    let of_stack = named.into_iter().filter_map(|(name, specifiers)| {
        let name: PackageName = name.parse().ok()?;
        Some((Input::Package(name.clone()), name, Vec::new(), to_set(specifiers.as_ref()?)))
    });
    let further = request.packages.iter().map(|ask| {
        (Input::Package(ask.package.clone()), ask.package.clone(), ask.extras.clone(), to_set(&ask.specifiers))
    });
    of_stack.chain(further).collect()
}
