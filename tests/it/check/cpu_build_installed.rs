//! A torch without CUDA where a GPU is the target.

use super::venv::{Question, Venv, assert_error, assert_quiet, the_problem};

const CODE: &str = "cpu-build-installed";

#[test]
fn fires() {
    let findings = Venv::with_cpu_torch().ask(&Question { gpus: &["H100"], ..Question::default() });
    let said = [
        "torch 2.8.0+cpu is a CPU build",
        "`torch.cuda.is_available()` is false on H100",
        "no libtorch_cuda.so",
        "gpulock resolve --gpu \"H100\" --torch '==2.8.0'",
    ];
    assert_error(the_problem(&findings, CODE), "torch", &said);
}

/// One that lost its library for CUDA is no CPU build: the package recorded it.
#[test]
fn stays_quiet_where_a_cuda_build_is_incomplete() {
    let venv = Venv::with_torch();
    venv.remove("torch/lib/libtorch_cuda.so");
    let findings = venv.ask(&Question { gpus: &["H100"], ..Question::default() });
    let said = ["libtorch_cuda.so is not found", "pip install --force-reinstall --no-deps torch==2.8.0"];
    assert_error(the_problem(&findings, "unresolved-needed"), "torch/_C.cpython-311-x86_64-linux-gnu.so", &said);
}

#[test]
fn stays_quiet() {
    assert_quiet(&Venv::with_torch().ask(&Question { gpus: &["H100"], ..Question::default() }), CODE);
    // Without a GPU a CPU build is right; the rule says that nothing was asked of it.
    let findings = Venv::with_cpu_torch().check();
    assert!(findings.skipped.contains(&(CODE, "no GPU declared".into())) && findings.findings.is_empty());
}
