//! What each input of the user allows: for every torch candidate a verdict, and the facts behind it.

mod asked;
mod driver;
mod gpu;

pub use driver::tier;
pub use gpu::service;

use super::candidate::{Candidate, summary};
use super::{Context, Machine, Request};
use crate::diag::Failure;
use crate::manifest::PythonAsk;
use crate::matrix::TorchBuild;
use crate::python::{PackageName, PythonVersion};
use crate::version::Specifiers;

/// An input of the user: what a repair may change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Input {
    /// The target's driver.
    Driver,
    /// One GPU of the target, by its name as typed.
    Gpu(String),
    /// The target's glibc.
    Glibc,
    /// `python`
    Python,
    /// `cuda`
    Cuda,
    /// `cudnn`
    Cudnn,
    /// `nccl`
    Nccl,
    /// `variant`
    Variant,
    /// `torch`
    Torch,
    /// `torchvision`, `torchaudio`, `triton` or an entry of `[packages]`.
    Package(PackageName),
}

impl std::fmt::Display for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Driver => f.write_str("driver"),
            Self::Gpu(name) => f.write_str(name),
            Self::Glibc => f.write_str("glibc"),
            Self::Python => f.write_str("python"),
            Self::Cuda => f.write_str("cuda"),
            Self::Cudnn => f.write_str("cudnn"),
            Self::Nccl => f.write_str("nccl"),
            Self::Variant => f.write_str("variant"),
            Self::Torch => f.write_str("torch"),
            Self::Package(name) => name.fmt(f),
        }
    }
}

/// Whether an input allows a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Yes.
    Yes,
    /// The matrix does not know.
    Unknown,
    /// No.
    No,
}

/// A fact with its source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fact {
    /// The fact.
    pub claim: String,
    /// Where it is from.
    pub source: String,
}

/// What one input allows.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The input.
    pub input: Input,
    /// One verdict a candidate.
    pub verdicts: Vec<Verdict>,
    /// "driver 470.57.02", what the input is called in a sentence.
    pub subject: String,
    /// Why, when nothing at all is allowed: "CUDA 12.7 was never released ...".
    pub nothing: Option<String>,
    /// The facts that it rests on.
    pub facts: Vec<Fact>,
    /// GPUs that the driver does not support, each with its reason.
    pub refuses: Vec<(Input, String)>,
}

impl Rule {
    /// A sentence: "driver 470.57.02 allows torch cu118 (2.0.0 to 2.7.1)".
    pub fn sentence(&self, candidates: &[Candidate]) -> String {
        let allowed = candidates.iter().zip(&self.verdicts).filter(|(_, verdict)| **verdict != Verdict::No);
        match (allowed.clone().count(), &self.nothing) {
            (0, Some(nothing)) => nothing.clone(),
            (0, None) => format!("{} allows no build of torch", self.subject),
            _ => format!("{} allows only torch {}", self.subject, summary(allowed.map(|(candidate, _)| candidate))),
        }
    }
}

/// The rules of a request, in the order in which they read best.
pub fn rules(
    request: &Request,
    machine: &Machine,
    candidates: &[Candidate],
    context: &Context<'_>,
) -> Result<Vec<Rule>, Failure> {
    let matrix = context.matrix;
    let mut rules = Vec::new();
    for gpu in &machine.gpus {
        rules.push(gpu::rule(gpu, request.target.platform, machine, candidates, matrix)?);
    }
    rules.extend(driver::rule(machine, candidates, matrix)?);
    let stack = &request.stack;
    let by_build = |input: Input, subject: String, verdict: &dyn Fn(&Candidate) -> Verdict| Rule {
        input,
        verdicts: candidates.iter().map(verdict).collect(),
        subject,
        nothing: None,
        facts: Vec::new(),
        refuses: Vec::new(),
    };
    let known = |fact: Option<bool>| match fact {
        Some(true) => Verdict::Yes,
        Some(false) => Verdict::No,
        None => Verdict::Unknown,
    };
    // A CPU build has no CUDA, cuDNN or NCCL of any version.
    let known_or_cpu = |candidate: &Candidate, fact: Option<bool>| match &candidate.build {
        Some(build) if build.row().cuda.is_none() => Verdict::No,
        _ => known(fact),
    };
    if let Some(specifiers) = &stack.torch {
        let mut rule = by_build(Input::Torch, format!("torch {specifiers}"), &|candidate| {
            if matches_labelled(specifiers, candidate) { Verdict::Yes } else { Verdict::No }
        });
        rule.nothing = Some(asked::no_such_torch(specifiers, candidates, request.target.platform));
        rule.facts = asked::newest(candidates, &rule.verdicts, Verdict::Yes, &asked::cuda_of).into_iter().collect();
        rules.push(rule);
    }
    if let Some(variant) = &stack.variant {
        let mut rule = by_build(Input::Variant, format!("variant {variant}"), &|candidate| {
            known(candidate.variant().map(|known| known == *variant))
        });
        rule.nothing = Some(asked::no_such_variant(variant, candidates));
        rule.facts = asked::newest(candidates, &rule.verdicts, Verdict::Yes, &asked::cuda_of).into_iter().collect();
        rules.push(rule);
    }
    if let Some(constraint) = &stack.cuda {
        let mut rule = by_build(Input::Cuda, format!("CUDA {constraint}"), &|candidate| {
            known_or_cpu(candidate, candidate.cuda().map(|cuda| constraint.allows(&cuda)))
        });
        rule.nothing = asked::never_released(constraint.exact(), matrix)?;
        rule.facts = asked::examples(candidates, &rule.verdicts, &asked::cuda_of);
        rule.facts.extend(asked::unknown_to_cuda(constraint, machine, matrix)?);
        rules.push(rule);
    }
    if let Some(constraint) = &stack.cudnn {
        let mut rule = by_build(Input::Cudnn, format!("cuDNN {constraint}"), &|candidate| {
            let cudnn = candidate.build.as_ref().and_then(|build| build.row().cudnn.as_ref());
            known_or_cpu(candidate, cudnn.map(|cudnn| constraint.allows(cudnn)))
        });
        let pin = |build: &TorchBuild| Some(format!("pins cuDNN {}", build.row().cudnn.as_ref()?));
        rule.facts = asked::examples(candidates, &rule.verdicts, &pin);
        rule.facts.extend(asked::pins(candidates, stack.torch.as_ref(), &pin));
        rules.push(rule);
    }
    if let Some(constraint) = &stack.nccl {
        let mut rule = by_build(Input::Nccl, format!("NCCL {constraint}"), &|candidate| {
            let nccl = candidate.build.as_ref().and_then(|build| build.row().nccl.as_ref());
            known_or_cpu(candidate, nccl.map(|nccl| constraint.allows(nccl)))
        });
        let pin = |build: &TorchBuild| Some(format!("pins NCCL {}", build.row().nccl.as_ref()?));
        rule.facts = asked::examples(candidates, &rule.verdicts, &pin);
        rule.facts.extend(asked::pins(candidates, stack.torch.as_ref(), &pin));
        rules.push(rule);
    }
    if let Some(glibc) = &request.target.glibc {
        let mut rule = by_build(Input::Glibc, format!("glibc {glibc}"), &|candidate| {
            known(candidate.build.as_ref().and_then(|build| build.row().glibc.as_ref()).map(|floor| floor <= glibc))
        });
        rule.facts = asked::examples(candidates, &rule.verdicts, &|build: &TorchBuild| {
            Some(format!("needs glibc {}", build.row().glibc.as_ref()?))
        });
        rules.push(rule);
    }
    Ok(rules)
}

/// What these Pythons allow: the builds with wheels for one of them.
pub fn python_rule(request: &Request, pythons: &[PythonVersion], candidates: &[Candidate]) -> Rule {
    let subject = match (&request.stack.python, pythons) {
        (Some(PythonAsk::Range(range)), [_, _, ..]) => format!("Python {range}"),
        (_, [python]) => format!("Python {python}"),
        _ => "any Python".into(),
    };
    let verdict = |candidate: &Candidate| match candidate.build.as_ref().and_then(|build| build.row().pythons()) {
        Some(has) if pythons.iter().any(|python| has.contains(python)) => Verdict::Yes,
        Some(_) => Verdict::No,
        None => Verdict::Unknown,
    };
    let verdicts: Vec<Verdict> = candidates.iter().map(verdict).collect();
    let tags = |build: &TorchBuild| Some(format!("has wheels for {}", build.row().python.as_ref()?.join(", ")));
    Rule {
        input: Input::Python,
        facts: asked::examples(candidates, &verdicts, &tags),
        verdicts,
        nothing: Some(format!("no known build of torch has wheels for {subject}")),
        subject,
        refuses: Vec::new(),
    }
}

/// Whether the user's specifier accepts a candidate. A local label in it names the variant, whichever index has it.
fn matches_labelled(specifiers: &Specifiers, candidate: &Candidate) -> bool {
    let has_label = specifiers.iter().any(|specifier| specifier.version().is_local());
    match &candidate.build {
        Some(build) if has_label => specifiers.contains(&build.labelled()),
        _ => specifiers.contains(&candidate.version),
    }
}
