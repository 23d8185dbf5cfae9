//! Two releases of one library in one process.

use gpulock::diag::Severity;

use super::venv::{CUDART, Venv, assert_finding, assert_quiet, cudart, module, the_problem};

const CODE: &str = "duplicate-soname";

/// An extension with a CUDA runtime of its own, found by path and not by the name under which torch's is loaded.
fn with_second_runtime(version: u32) -> Venv {
    let venv = Venv::with_torch();
    let name = "$ORIGIN/libcudart.so.12";
    let files =
        [("ext/_C.abi3.so", module("_C").needed(&[name])), ("ext/libcudart.so.12", cudart("libcudart.so.12", version))];
    venv.install("ext", "1.0", &["torch"], &files);
    venv
}

#[test]
fn fires() {
    let findings = with_second_runtime(12040).check();
    let said = ["two releases of libcudart.so.12 are loaded", "ext, after torch", "12.8", "12.4", CUDART];
    assert_finding(the_problem(&findings, CODE), Severity::Warning, "libcudart.so.12", &said);
}

/// A second copy of the same release.
#[test]
fn stays_quiet() {
    assert_quiet(&with_second_runtime(12080).check(), CODE);
}
