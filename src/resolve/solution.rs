//! A solution: the stack, what serves each GPU, and the closure of packages.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::candidate::Candidate;
use super::machine::first_driver;
use super::package::{Artefact, Packages};
use super::provider::Node;
use super::rule::service;
use super::{Machine, Request};
use crate::diag::{Diagnostic, Failure};
use crate::matrix::schema::Basis;
use crate::matrix::{Matrix, Served, Tier};
use crate::python::{Extra, PackageName, Platform, PythonVersion, Wheel};
use crate::version::{Cuda, Driver, Glibc, GpuCode, Pep440};

/// What was found for a target.
#[derive(Debug, Clone)]
pub struct Solution {
    /// Name of the target.
    pub target: String,
    /// Its platform.
    pub platform: Platform,
    /// Least glibc that the wheels need; absent when none says.
    pub glibc: Option<Glibc>,
    /// The stack.
    pub stack: Stack,
    /// Driver.
    pub driver: DriverUse,
    /// GPUs, in the order given.
    pub gpus: Vec<GpuService>,
    /// Facts that are inferred, by name.
    pub inferred: Vec<String>,
    /// The closure, by name.
    pub packages: Vec<Chosen>,
    /// What else is to be said.
    pub notes: Vec<Diagnostic>,
}

/// The versions that make the stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stack {
    /// Python.
    pub python: PythonVersion,
    /// torch, without local label.
    pub torch: Pep440,
    /// `cu128`; absent for a version that the matrix does not know.
    pub variant: Option<String>,
    /// CUDA.
    pub cuda: Option<Cuda>,
    /// cuDNN.
    pub cudnn: Option<String>,
    /// NCCL.
    pub nccl: Option<String>,
}

/// How the driver supports the stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverUse {
    /// As given.
    pub given: Option<String>,
    /// Least driver of the CUDA family.
    pub floor: Option<Driver>,
    /// Least driver with native support.
    pub native: Option<Driver>,
    /// How; absent when no driver was given or the CUDA is unknown.
    pub tier: Option<Tier>,
}

/// What serves a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuService {
    /// As the user named it.
    pub name: String,
    /// `sm_120`
    pub sm: String,
    /// The code that serves it; absent when the build's code is not known.
    pub code: Option<GpuCode>,
}

/// One package of the closure.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// Its name.
    pub package: PackageName,
    /// Its version, with local label.
    pub version: Pep440,
    /// Its index.
    pub index: Arc<str>,
    /// The wheel; absent while pending.
    pub wheel: Option<Arc<Wheel>>,
    /// Packages that ask for it; empty when the manifest does.
    pub needed_by: Vec<PackageName>,
    /// The manifest asks for it.
    pub asked: bool,
    /// Its extras that are asked for.
    pub extras: Vec<Extra>,
}

/// What a repair would give, and how solutions are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gives {
    /// torch, without local label.
    pub torch: String,
    /// `cu128`
    pub variant: Option<String>,
    /// CUDA.
    pub cuda: Option<Cuda>,
}

impl Gives {
    /// `torch 2.8.0, cu128`
    pub fn words(&self) -> String {
        match &self.variant {
            Some(variant) => format!("torch {}, {variant}", self.torch),
            None => format!("torch {}", self.torch),
        }
    }
}

impl Solution {
    /// Its torch.
    pub fn gives(&self) -> Gives {
        Gives { torch: self.stack.torch.to_string(), variant: self.stack.variant.clone(), cuda: self.stack.cuda }
    }

    pub(super) fn build(
        selected: &BTreeMap<PackageName, Pep440>,
        extras: &BTreeMap<PackageName, Vec<Extra>>,
        asks: &[PackageName],
        packages: &Packages<'_>,
        machine: &Machine,
    ) -> Result<Self, Failure> {
        let request = packages.request;
        let matrix = packages.context.matrix;
        let torch = &selected[&packages.torch];
        let candidate = packages.candidate(torch).cloned().unwrap_or_else(|| Candidate {
            version: torch.clone(),
            index: packages.context.default_index.into(),
            build: None,
        });
        let chosen = closure(selected, extras, asks, packages)?;
        let row = candidate.build.as_ref().map(|build| build.row());
        let family = candidate.cuda().map(|cuda| cuda.major);
        let library = |name: &str| {
            let wanted = format!("{name}-cu{}", family?);
            chosen.iter().find(|c| c.package.as_str() == wanted).map(|c| c.version.to_string())
        };
        let stack = Stack {
            python: packages.runtime.python,
            torch: candidate.public(),
            variant: candidate.variant(),
            cuda: candidate.cuda(),
            cudnn: library("nvidia-cudnn").or_else(|| row.and_then(|row| row.cudnn.as_ref()).map(ToString::to_string)),
            nccl: library("nvidia-nccl").or_else(|| row.and_then(|row| row.nccl.as_ref()).map(ToString::to_string)),
        };
        let mut gpus = Vec::new();
        for gpu in &machine.gpus {
            let code = match service(gpu, &candidate, machine, matrix)? {
                Some(Served::Sass(code) | Served::Ptx(code) | Served::PtxTooNew(code)) => Some(code),
                Some(Served::No) | None => None,
            };
            gpus.push(GpuService { name: gpu.name.clone(), sm: gpu.capability.sm(), code });
        }
        let machine_name = packages.runtime.platform.machine();
        let tagged = chosen.iter().filter_map(|c| c.wheel.as_ref()?.name.tags.glibc(machine_name));
        let glibc = tagged.chain(row.and_then(|row| row.glibc.clone())).max();
        Ok(Self {
            target: request.target.name.clone(),
            platform: packages.runtime.platform,
            glibc,
            driver: driver_use(request, &candidate, machine, matrix)?,
            inferred: inferred(&candidate, machine, matrix)?,
            stack,
            gpus,
            packages: chosen,
            notes: machine.warnings.clone(),
        })
    }
}

/// The packages that the manifest reaches, each with those that ask for it.
fn closure(
    selected: &BTreeMap<PackageName, Pep440>,
    extras: &BTreeMap<PackageName, Vec<Extra>>,
    asks: &[PackageName],
    packages: &Packages<'_>,
) -> Result<Vec<Chosen>, Failure> {
    let none = Vec::new();
    let mut needed_by: BTreeMap<&PackageName, BTreeSet<PackageName>> = BTreeMap::new();
    for (package, version) in selected {
        let asked = extras.get(package).unwrap_or(&none);
        for requirement in &packages.metadata(package, version)?.requires {
            let applies = requirement.applies(&packages.env, &[])
                || asked.iter().any(|extra| requirement.applies(&packages.env, std::slice::from_ref(extra)));
            if let Some((name, _)) = selected.get_key_value(&requirement.package).filter(|_| applies)
                && name != package
            {
                needed_by.entry(name).or_default().insert(package.clone());
            }
        }
    }
    let mut chosen = Vec::with_capacity(selected.len());
    for (package, version) in selected {
        let artefact = packages.chosen(package, version)?;
        let index = artefact.as_ref().map_or_else(|| packages.context.default_index.into(), |a| Arc::clone(a.index()));
        chosen.push(Chosen {
            package: package.clone(),
            version: version.clone(),
            index,
            wheel: match artefact {
                Some(Artefact::Wheel(wheel)) => Some(wheel),
                _ => None,
            },
            needed_by: needed_by.remove(package).unwrap_or_default().into_iter().collect(),
            asked: asks.contains(package),
            extras: extras.get(package).cloned().unwrap_or_default(),
        });
    }
    Ok(chosen)
}

fn driver_use(
    request: &Request,
    candidate: &Candidate,
    machine: &Machine,
    matrix: &Matrix,
) -> Result<DriverUse, Failure> {
    let facts = matrix.cuda()?;
    let floor = candidate.cuda().and_then(|cuda| facts.floor(cuda)).map(|row| row.driver);
    let native = candidate.cuda().and_then(|cuda| facts.native(cuda)).map(|row| row.driver);
    let mut tier = None;
    if let (Some(ask), Some(cuda)) = (&machine.driver, candidate.cuda()) {
        let mut driver = ask.decides.clone();
        if ask.controlled {
            // The user may choose: what counts is the oldest driver that will do.
            let mut least = ask.lowest.clone().into_iter().chain(floor.clone()).collect::<Vec<_>>();
            for gpu in &machine.gpus {
                least.extend(first_driver(matrix, gpu)?.map(|(driver, ..)| driver));
            }
            driver = least.into_iter().max().unwrap_or(driver);
        }
        tier = facts.tier(&driver, cuda, machine.forward);
    }
    Ok(DriverUse { given: request.target.driver.as_ref().map(ToString::to_string), floor, native, tier })
}

/// The inferred facts that a choice rests on. A GPU's inferred first driver is one only inside that driver's branch: a
/// later branch supports a CUDA that is documented to know the GPU.
fn inferred(candidate: &Candidate, machine: &Machine, matrix: &Matrix) -> Result<Vec<String>, Failure> {
    let mut facts = Vec::new();
    if let Some(build) = &candidate.build {
        let row = build.row();
        facts.extend(row.inferred.iter().map(|field| format!("{field} of torch {}", candidate.label())));
        if row.basis == Basis::Inferred {
            facts.push(format!("torch {} as a whole", candidate.label()));
        }
    }
    for gpu in &machine.gpus {
        let Some(ask) = &machine.driver else { continue };
        if let Some((first, .., true)) = first_driver(matrix, gpu)?
            && first.major() == ask.decides.major()
        {
            facts.push(format!("first driver of {}", gpu.name));
        }
    }
    Ok(facts)
}

/// The Python packages among the solver's nodes, and the extras of them.
pub fn python_packages(
    nodes: impl IntoIterator<Item = (Node, Pep440)>,
) -> (BTreeMap<PackageName, Pep440>, BTreeMap<PackageName, Vec<Extra>>) {
    let mut packages = BTreeMap::new();
    let mut extras: BTreeMap<PackageName, Vec<Extra>> = BTreeMap::new();
    for (node, version) in nodes {
        match node {
            Node::Package(name) => drop(packages.insert(name, version)),
            Node::Extra(name, extra) => extras.entry(name).or_default().push(extra),
            Node::Root | Node::Input(_) => {}
        }
    }
    extras.values_mut().for_each(|list| list.sort());
    (packages, extras)
}
