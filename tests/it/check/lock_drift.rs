//! Environments that are not what the lock says.

use gpulock::check::Findings;
use gpulock::diag::Severity;
use gpulock::lock::Lock;

use super::venv::{Question, Venv, assert_error, assert_finding, assert_quiet, the_finding, the_problem};
use crate::link::fixture::Elf;

const CODE: &str = "lock-drift";
const C10: &str = "torch/lib/libc10.so";

/// What is said of these packages; the lock has filelock 3.20.0, and torch 2.8.0 with one library.
fn with_packages(packages: &[(&str, &str)], libraries: &[(&str, Elf)]) -> Findings {
    let venv = Venv::empty();
    for (name, version) in packages {
        venv.install(name, version, &[], if *name == "torch" { libraries } else { &[] });
    }
    let size = Elf::library("libc10.so").bytes().len();
    let text = crate::lock::SAMPLE.replace(", size = 1 }", &format!(", size = {size} }}"));
    let lock = Lock::parse(&text, "gpulock.lock").unwrap();
    venv.ask(&Question { lock: Some(&lock), ..Question::default() })
}

fn c10() -> [(&'static str, Elf); 1] {
    [(C10, Elf::library("libc10.so"))]
}

#[test]
fn fires() {
    let findings = with_packages(&[("torch", "2.7.1")], &c10());
    let said = [
        "2 packages of ",
        "not installed; the lock has 3.20.0",
        "2.7.1 is installed; the lock has 2.8.0",
        "gpulock export requirements",
    ];
    assert_error(the_problem(&findings, CODE), "", &said);
}

#[test]
fn fires_for_a_library_that_is_gone() {
    let findings = with_packages(&[("torch", "2.8.0"), ("filelock", "3.20.0")], &[]);
    let said = ["1 library of ", C10, "not there; torch 2.8.0 has it"];
    assert_error(the_problem(&findings, CODE), "", &said);
}

/// What the lock does not name may be the user's own.
#[test]
fn more_of_the_gpu_stack_is_a_note() {
    let packages = [("torch", "2.8.0"), ("filelock", "3.20.0"), ("triton", "3.4.0"), ("attrs", "25.1.0")];
    let findings = with_packages(&packages, &c10());
    assert_finding(
        the_finding(&findings, CODE),
        Severity::Note,
        "triton",
        &["triton 3.4.0 is installed and not in the lock"],
    );
}

#[test]
fn stays_quiet() {
    assert_quiet(&with_packages(&[("torch", "2.8.0"), ("filelock", "3.20.0")], &c10()), CODE);
}
