//! What each input of the user allows: for every torch candidate a verdict, and the facts behind it.

use super::candidate::{Candidate, summary};
use super::machine::first_driver;
use super::{Context, Machine, Request};
use crate::diag::Failure;
use crate::manifest::PythonAsk;
use crate::matrix::{Gpu, Matrix, Served, Tier};
use crate::python::{PackageName, PythonVersion};
use crate::version::{Capability, Cuda, Cudnn, PtxIsa, Specifiers};

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
        rules.push(gpu_rule(gpu, machine, candidates, matrix)?);
    }
    rules.extend(driver_rule(machine, candidates, matrix)?);
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
        let newest = candidates.iter().map(Candidate::public).max();
        rule.nothing = newest.map(|newest| {
            format!("no torch {specifiers} exists for {} (the newest known is {newest})", request.target.platform)
        });
        rules.push(rule);
    }
    if let Some(variant) = &stack.variant {
        let mut rule = by_build(Input::Variant, format!("variant {variant}"), &|candidate| {
            known(candidate.variant().map(|known| known == *variant))
        });
        let mut labels: Vec<String> = candidates.iter().filter_map(Candidate::variant).collect();
        labels.sort();
        labels.dedup();
        rule.nothing = Some(format!("there is no torch variant {variant}; those that exist: {}", labels.join(", ")));
        rules.push(rule);
    }
    if let Some(constraint) = &stack.cuda {
        let mut rule = by_build(Input::Cuda, format!("CUDA {constraint}"), &|candidate| {
            known_or_cpu(candidate, candidate.cuda().map(|cuda| constraint.allows(&cuda)))
        });
        rule.nothing = never_released(constraint.exact(), matrix)?;
        rule.facts.extend(unknown_to_cuda(constraint, machine, matrix)?);
        rules.push(rule);
    }
    if let Some(constraint) = &stack.cudnn {
        let mut rule = by_build(Input::Cudnn, format!("cuDNN {constraint}"), &|candidate| {
            let cudnn = candidate.build.as_ref().and_then(|build| build.row().cudnn.as_ref());
            known_or_cpu(candidate, cudnn.map(|cudnn| constraint.allows(cudnn)))
        });
        rule.facts.extend(pins(candidates, stack.torch.as_ref(), "cuDNN", |build| {
            build.row().cudnn.as_ref().map(ToString::to_string)
        }));
        rules.push(rule);
    }
    if let Some(constraint) = &stack.nccl {
        let mut rule = by_build(Input::Nccl, format!("NCCL {constraint}"), &|candidate| {
            let nccl = candidate.build.as_ref().and_then(|build| build.row().nccl.as_ref());
            known_or_cpu(candidate, nccl.map(|nccl| constraint.allows(nccl)))
        });
        rule.facts.extend(pins(candidates, stack.torch.as_ref(), "NCCL", |build| {
            build.row().nccl.as_ref().map(ToString::to_string)
        }));
        rules.push(rule);
    }
    if let Some(glibc) = &request.target.glibc {
        rules.push(by_build(Input::Glibc, format!("glibc {glibc}"), &|candidate| {
            known(candidate.build.as_ref().and_then(|build| build.row().glibc.as_ref()).map(|floor| floor <= glibc))
        }));
    }
    Ok(rules)
}

/// What a Python allows: the builds with wheels for it.
pub fn python_rule(request: &Request, python: PythonVersion, candidates: &[Candidate]) -> Rule {
    let subject = match &request.stack.python {
        Some(PythonAsk::Range(range)) => format!("Python {range}"),
        _ => format!("Python {python}"),
    };
    let verdict = |candidate: &Candidate| match candidate.build.as_ref().and_then(|build| build.row().pythons()) {
        Some(pythons) if pythons.contains(&python) => Verdict::Yes,
        Some(_) => Verdict::No,
        None => Verdict::Unknown,
    };
    Rule {
        input: Input::Python,
        verdicts: candidates.iter().map(verdict).collect(),
        subject,
        nothing: Some(format!("no known build of torch has wheels for Python {python}")),
        facts: Vec::new(),
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

fn gpu_rule(gpu: &Gpu, machine: &Machine, candidates: &[Candidate], matrix: &Matrix) -> Result<Rule, Failure> {
    let facts = matrix.gpu()?;
    let row = facts.get(gpu.capability);
    let mut rule = Rule {
        input: Input::Gpu(gpu.name.clone()),
        verdicts: Vec::with_capacity(candidates.len()),
        subject: if gpu.name.parse::<Capability>().is_ok() {
            format!("a GPU of {}", gpu.capability.sm())
        } else {
            format!("{} ({})", gpu.name, gpu.capability.sm())
        },
        nothing: Some(format!(
            "no known build of torch carries code that runs on {} ({})",
            gpu.name,
            gpu.capability.sm()
        )),
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
        let verdict = if candidate.cuda().is_none() || too_new || not_for_tegra {
            Verdict::No
        } else {
            let own = match service(gpu, candidate, machine, matrix)? {
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
    use crate::python::Platform;
    let on_x86 = candidate.build.as_ref().is_some_and(|build| build.row().platform == Platform::LinuxX86_64);
    let family = candidate.cuda().map(|cuda| cuda.major);
    let releases = matrix.cudnn()?.iter().flat_map(|file| &file.releases);
    let build = releases.filter(|release| release.version == *cudnn).flat_map(|release| &release.builds);
    let code = build.filter(|build| Some(build.cuda) == family).find_map(|build| build.code.as_ref());
    // The lists were read from x86_64 wheels; for another platform, and for a GPU newer than the matrix, they say nothing.
    let (Some(code), true, true) = (code, on_x86, gpu.known) else { return Ok(true) };
    let served = matrix.gpu()?.serve(code, gpu.capability, candidate.cuda(), None, driver_isa(machine));
    Ok(matches!(served, Served::Sass(_) | Served::Ptx(_)))
}

fn driver_rule(machine: &Machine, candidates: &[Candidate], matrix: &Matrix) -> Result<Option<Rule>, Failure> {
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

/// The sentence for a CUDA minor inside the known range that was never released.
fn never_released(asked: Option<&Cuda>, matrix: &Matrix) -> Result<Option<String>, Failure> {
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
fn unknown_to_cuda(
    constraint: &crate::version::Constraint<Cuda>,
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
fn pins(
    candidates: &[Candidate],
    torch: Option<&Specifiers>,
    library: &str,
    pin: impl Fn(&crate::matrix::TorchBuild) -> Option<String>,
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

/// How the driver of a machine supports a candidate.
pub fn tier(candidate: &Candidate, machine: &Machine, matrix: &Matrix) -> Result<Option<Tier>, Failure> {
    match (&machine.driver, candidate.cuda()) {
        (Some(driver), Some(cuda)) => Ok(matrix.cuda()?.tier(&driver.decides, cuda, machine.forward)),
        _ => Ok(None),
    }
}
