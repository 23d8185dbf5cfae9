//! Broken (or wrongly accused) GPU environments that people reported in public, each with its healthy neighbour: what is
//! said of the first, and that nothing is said of the second. `table.toml` has all of them by name.

mod abi;
mod arch;
mod container;
mod cpu;
mod cudnn;
mod driver;
mod glibc;
mod image;
mod loader;
mod nccl;
mod python;
mod table;
mod torch;

use gpulock::check::Findings;
use gpulock::diag::{Diagnostic, Severity};
use gpulock::resolve::{Conflict, Outcome, Request, Solution};

use crate::check::venv::{Question, Venv};
use crate::resolve::{answer, request};

/// What is said of an environment on a machine with this GPU and driver.
fn on(venv: &Venv, gpu: &str, driver: &str) -> Findings {
    let driver = (!driver.is_empty()).then_some(driver);
    venv.ask(&Question { gpus: &[gpu], driver, ..Question::default() })
}

/// Errors and warnings.
fn problems(findings: &Findings) -> Vec<&Diagnostic> {
    findings.findings.iter().filter(|finding| finding.severity > Severity::Note).collect()
}

/// Nothing worse than a note.
fn assert_healthy(findings: &Findings) {
    assert!(problems(findings).is_empty(), "{:#?}", problems(findings));
}

/// A request for one GPU; the rest is set by the test.
fn asking(gpu: &str, driver: &str, set: impl FnOnce(&mut Request)) -> Request {
    let mut request = request(&[gpu], driver);
    set(&mut request);
    request
}

/// The stack that the matrix as a whole gives.
fn solved(request: &Request) -> Solution {
    match answer(request, true) {
        Outcome::Solved(solution) => *solution,
        Outcome::Conflict(conflict) => panic!("{}", conflict.explanation),
    }
}

/// `2.12.0+cu126`
fn build(request: &Request) -> String {
    let stack = solved(request).stack;
    format!("{}+{}", stack.torch, stack.variant.unwrap_or_default())
}

/// Why there is none, and what would work.
fn conflict(request: &Request) -> (Conflict, Vec<String>) {
    match answer(request, true) {
        Outcome::Solved(solution) => panic!("{:?}", solution.stack),
        Outcome::Conflict(conflict) => {
            let changes =
                conflict.repairs.iter().map(|repair| format!("{} -> {}", repair.change, repair.gives.words()));
            let changes = changes.collect();
            (*conflict, changes)
        }
    }
}
