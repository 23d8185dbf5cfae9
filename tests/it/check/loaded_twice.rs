//! Two files of one library in a running process.

use std::path::Path;

use gpulock::diag::Severity;

use super::process::Process;
use super::venv::{Venv, assert_error, assert_finding, assert_quiet, cudart, cudnn, the_finding, the_problem};
use crate::link::fixture::Elf;

const CODE: &str = "loaded-twice";

/// A process that has one more file, which no package of its environment has under that name.
fn with(venv: &Venv, name: &str, elf: &Elf) -> Process {
    let mut process = Process::with_torch(venv);
    let folder = venv.beside(&format!("other/{name}"), elf);
    process.maps(&Path::new(&folder).join(name));
    process
}

#[test]
fn fires() {
    let venv = Venv::with_torch();
    let process = with(&venv, "libcudart.so.11.0", &cudart("libcudart.so.11.0", 11080));
    let findings = process.check();
    let said = ["process 4242 has cudart 2 times", "other/libcudart.so.11.0", "11.8", "12.8"];
    assert_error(the_problem(&findings, CODE), "libcudart.so.12", &said);
}

#[test]
fn openmp_is_a_note() {
    let venv = Venv::with_torch();
    let mut process = with(&venv, "libgomp.so.1", &Elf::library("libgomp.so.1"));
    let name = "libgomp-a34b3233.so.1";
    let folder = venv.beside(&format!("sklearn.libs/{name}"), &Elf::library(name));
    process.maps(&Path::new(&folder).join(name));
    let findings = process.check();
    assert_finding(
        the_finding(&findings, CODE),
        Severity::Note,
        "libgomp.so.1",
        &["threads of its own", "OMP_NUM_THREADS"],
    );
}

/// What a wheel renamed for itself, and parts of one library.
#[test]
fn stays_quiet() {
    let venv = Venv::with_torch();
    let mut process = with(&venv, "libcudart-e8e8b82a.so.12", &cudart("libcudart-e8e8b82a.so.12.8.90", 12080));
    for part in ["graph", "ops"] {
        process.maps(&venv.site().join(cudnn(part, [9, 10, 2]).0));
    }
    assert_quiet(&process.check(), CODE);
}
