//! A package for GPUs that goes on without: ONNX Runtime and its CUDA provider.

use gpulock::diag::Severity;

use super::run::Trace;
use super::venv::{Question, Venv, assert_finding, assert_quiet, module, the_finding, the_problem, words};
use crate::link::fixture::Elf;

const CODE: &str = "cpu-fallback";
const PROVIDER: &str = "onnxruntime/capi/libonnxruntime_providers_cuda.so";
const H100: Question<'_> = Question {
    gpus: &["H100"],
    driver: None,
    glibc: None,
    forward: false,
    lock: None,
    digests: &[],
    checks: std::collections::BTreeMap::new(),
};

/// onnxruntime-gpu whose provider needs these, with the extras that its wheels have.
fn with_onnxruntime(venv: Venv, needed: &[&str]) -> Venv {
    let extras =
        ["numpy>=1.21.6", "nvidia-cuda-runtime~=13.0; extra == \"cuda\"", "nvidia-cudnn-cu13~=9.0; extra == \"cudnn\""];
    let provider = Elf::library("libonnxruntime_providers_cuda.so").needed(needed).asks(&["Provider_GetHost"]);
    let shared = Elf::library("libonnxruntime_providers_shared.so").defines(&["Provider_GetHost"]);
    let files = [
        ("onnxruntime/capi/libonnxruntime_providers_shared.so", shared),
        (PROVIDER, provider),
        (
            "onnxruntime/capi/onnxruntime_pybind11_state.cpython-311-x86_64-linux-gnu.so",
            module("onnxruntime_pybind11_state"),
        ),
    ];
    venv.install("onnxruntime-gpu", "1.31.1", &extras, &files);
    venv
}

#[test]
fn fires() {
    let said = [
        "onnxruntime-gpu 1.31.1 computes on the CPU, and says so in its log alone",
        "libcudart.so.13: cannot open shared object file",
        "pip install 'onnxruntime-gpu[cuda,cudnn]'",
    ];
    let needed = ["libcudart.so.13", "libcuda.so.1"];
    let alone = with_onnxruntime(Venv::empty(), &needed).ask(&H100);
    assert_finding(the_problem(&alone, CODE), Severity::Warning, PROVIDER, &said);
    // torch for another CUDA is of no help.
    let beside = with_onnxruntime(Venv::with_torch(), &needed).ask(&H100);
    assert_finding(the_problem(&beside, CODE), Severity::Warning, PROVIDER, &said);
}

/// NVIDIA's packages are there, and nothing leads the loader to them.
#[test]
fn a_preload_that_is_needed_is_a_note() {
    let venv = with_onnxruntime(Venv::empty(), &["libcudart.so.12"]);
    venv.put(super::venv::CUDART, &super::venv::cudart("libcudart.so.12", 12080));
    let findings = venv.ask(&H100);
    let note = the_finding(&findings, CODE);
    assert_finding(note, Severity::Note, PROVIDER, &["computes on the CPU unless"]);
    assert!(words(note).contains("`onnxruntime.preload_dlls()`"), "{note:#?}");
}

/// A process that opened the provider in vain computes on the CPU, whatever machines are declared.
#[test]
fn a_run_shows_it() {
    let venv = with_onnxruntime(Venv::empty(), &["libcudart.so.13", "libcuda.so.1"]);
    let opens = |missing: &[&str]| {
        let mut trace = Trace::of(&venv);
        trace.opens(&venv.site().join("onnxruntime/capi/libonnxruntime_providers_shared.so"), &[]);
        trace.opens(
            &venv.site().join("onnxruntime/capi/onnxruntime_pybind11_state.cpython-311-x86_64-linux-gnu.so"),
            &[],
        );
        trace.opens(&venv.site().join(PROVIDER), missing);
        trace.check()
    };
    let findings = opens(&["libcudart.so.13"]);
    let said = ["onnxruntime-gpu 1.31.1 computes on the CPU", "libcudart.so.13: cannot open shared object file"];
    assert_finding(the_problem(&findings, CODE), Severity::Warning, PROVIDER, &said);
    // Without a driver there is no GPU to compute on.
    assert_eq!(opens(&["libcuda.so.1"]).findings, []);
}

#[test]
fn stays_quiet() {
    // torch has loaded what the provider needs.
    assert_quiet(&with_onnxruntime(Venv::with_torch(), &["libcudart.so.12", "libcudnn.so.9"]).ask(&H100), CODE);
    // Nobody has a GPU.
    let findings = with_onnxruntime(Venv::empty(), &["libcudart.so.13"]).check();
    assert!(findings.skipped.contains(&(CODE, "no GPU declared".into())) && findings.findings.is_empty());
}
