//! What an image demands of the machine it is started on, and which GPUs it has code for: takes a case without machines,
//! gives an [`Answer`]. The question that `gpulock inspect image:FILE` answers.

use std::cell::OnceCell;

use super::coverage::Verdict;
use super::device_code::offers;
use super::{Case, stack};
use crate::diag::Failure;
use crate::matrix::Gpu;
use crate::matrix::requirement::{branches, least_driver};
use crate::python::Platform;
use crate::resolve::Machine;
use crate::version::{Capability, Cuda, Driver};

/// What an image demands.
#[derive(Debug, Default)]
pub struct Answer {
    /// The stack in words: `torch 2.8.0`, `CUDA 12.8`.
    pub stack: Vec<String>,
    /// The least driver that its libraries run on; absent where they load no CUDA, or one that is not known.
    pub libraries: Option<Floor>,
    /// What it requires before it is started, by the name of the variable.
    pub requirements: Vec<Requirement>,
    /// GPUs that it has machine code for.
    pub sass: Vec<Capability>,
    /// GPUs that it has only PTX for, which the driver compiles.
    pub ptx: Vec<Capability>,
    /// GPUs that it has no code for.
    pub none: Vec<Capability>,
}

/// A least driver.
#[derive(Debug)]
pub struct Floor {
    /// The CUDA that decides.
    pub cuda: Cuda,
    /// The least driver, under minor-version compatibility.
    pub driver: Driver,
    /// The least driver that knows this CUDA; absent where that is not known.
    pub native: Option<Driver>,
}

/// What a variable requires.
#[derive(Debug)]
pub struct Requirement {
    /// `NVIDIA_REQUIRE_CUDA`.
    pub variable: String,
    /// As it is written.
    pub text: String,
    /// The least driver from which on every GPU meets it, as far as drivers are known; absent where none does, or every
    /// one.
    pub driver: Option<Driver>,
    /// Branches of older drivers that it allows for some brands of GPU.
    pub branches: Vec<u32>,
}

impl Answer {
    /// The least driver that any GPU needs for the image to be started and its libraries to run.
    pub fn driver(&self) -> Option<&Driver> {
        let required = self.requirements.iter().filter_map(|one| one.driver.as_ref());
        self.libraries.as_ref().map(|floor| &floor.driver).into_iter().chain(required).max()
    }
}

/// Answers for the environment of `case`; its machines are not looked at.
///
/// # Errors
/// When the matrix cannot be read.
pub fn answer(case: &Case<'_>) -> Result<Answer, Failure> {
    let facts = case.matrix.cuda()?;
    let mut answer = Answer { stack: stack::words(case.inventory, case.links), ..Answer::default() };
    let floors = stack::runtimes(case.inventory, case.links).into_keys().filter_map(|cuda| {
        let driver = facts.floor(cuda)?.driver;
        Some(Floor { cuda, driver, native: facts.native_driver(cuda) })
    });
    answer.libraries = floors.max_by(|a, b| (&a.driver, a.cuda).cmp(&(&b.driver, b.cuda)));
    for (variable, text) in case.image_requirements() {
        let driver = least_driver(&text, facts);
        let branches = branches(&text);
        answer.requirements.push(Requirement { variable: variable.to_owned(), text, driver, branches });
    }
    code(case, &mut answer)?;
    Ok(answer)
}

/// Sorts the GPUs that are known by the code that serves them.
fn code(case: &Case<'_>, answer: &mut Answer) -> Result<(), Failure> {
    // Systems on chip have processors of their own.
    let arm = case.inventory.loader.platform == Some(Platform::LinuxAarch64);
    let known = case.matrix.gpu()?.file().gpus.iter().filter(|row| arm || !row.tegra);
    let gpus = known.map(|row| Gpu { name: row.capability.sm(), capability: row.capability, class: None, known: true });
    let machine = Machine { gpus: gpus.collect(), driver: None, forward: false, warnings: Vec::new() };
    let all = Case {
        inventory: case.inventory,
        links: case.links,
        matrix: case.matrix,
        machine: Some(&machine),
        glibc: None,
        digests: None,
        locked: None,
        offers: OnceCell::new(),
    };
    let offers = offers(&all)?;
    if offers.is_empty() {
        return Ok(());
    }
    for gpu in &machine.gpus {
        let needed = || offers.iter().filter(|offer| offer.gpu == gpu && offer.is_needed());
        let missing = |verdict| matches!(verdict, Verdict::Missing | Verdict::PtxTooNew);
        let list = if needed().any(|offer| missing(offer.verdict)) {
            &mut answer.none
        } else if needed().any(|offer| offer.verdict == Verdict::Jit) {
            &mut answer.ptx
        } else {
            &mut answer.sass
        };
        list.push(gpu.capability);
    }
    Ok(())
}
