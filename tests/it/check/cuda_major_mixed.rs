//! Two majors of the CUDA runtime in one process.

use gpulock::diag::Severity;

use super::venv::{Venv, assert_finding, assert_quiet, cudart, module, the_problem};

const CODE: &str = "cuda-major-mixed";

fn with_extension_that_brings(name: &str, version: u32, requires: &[&str]) -> Venv {
    let venv = Venv::with_torch();
    let path = format!("ext/lib/{name}");
    let extension = module("_C").needed(&[name, "libc10.so"]).rpath("$ORIGIN/lib");
    venv.install("ext", "1.0", requires, &[("ext/_C.abi3.so", extension), (&path, cudart(name, version))]);
    venv
}

#[test]
fn fires() {
    let findings = with_extension_that_brings("libcudart.so.11.0", 11080, &["torch"]).check();
    let said = ["ext 1.0 brings CUDA 11 into a process in which torch runs CUDA 12", "built for CUDA 12"];
    assert_finding(the_problem(&findings, CODE), Severity::Warning, "ext/lib/libcudart.so.11.0", &said);
}

/// Another minor under a name of its own; libraries of one major serve each other.
#[test]
fn stays_quiet() {
    let venv = with_extension_that_brings("libcudart-e8e8b82a.so.12", 12040, &["torch"]);
    assert_quiet(&venv.check(), CODE);
}
