//! Libraries that a running process lacks.

use gpulock::lock::Lock;

use super::process::Process;
use super::venv::{Question, Venv, assert_error, assert_quiet, the_finding, the_problem};
use crate::link::fixture::Elf;

const CODE: &str = "not-loaded";

#[test]
fn fires() {
    let venv = Venv::with_torch();
    let mut process = Process::of(&venv);
    for path in super::process::TORCH.iter().filter(|path| !path.contains("libcudnn")) {
        process.maps(&venv.site().join(path));
    }
    let said = ["libcudnn.so.9, which torch/lib/libtorch_cpu.so needs", "not mapped in process 4242"];
    assert_error(the_problem(&process.check(), CODE), "libcudnn.so.9", &said);
}

/// torch for processors only, where the lock has one for GPUs.
#[test]
fn fires_for_what_the_lock_has() {
    let venv = Venv::with_cpu_torch();
    venv.put("torch/lib/libtorch_python.so", &Elf::library("libtorch_python.so"));
    let mut process = Process::of(&venv);
    for path in ["torch/lib/libtorch_python.so", "torch/lib/libtorch_cpu.so", "torch/lib/libc10.so"] {
        process.maps(&venv.site().join(path));
    }
    let text = crate::lock::SAMPLE.replace("torch/lib/libc10.so", "torch/lib/libtorch_cuda.so");
    let lock = Lock::parse(&text, "gpulock.lock").unwrap();
    let findings = process.ask(&Question { lock: Some(&lock), ..Question::default() });
    let said = ["torch is up in process 4242 without libtorch_cuda.so, which the lock has"];
    assert_error(the_finding(&findings, CODE), "libtorch_cuda.so", &said);
    let lock = Lock::parse(crate::lock::SAMPLE, "gpulock.lock").unwrap();
    let findings = process.ask(&Question { lock: Some(&lock), ..Question::default() });
    assert!(findings.findings.iter().all(|finding| finding.code != CODE), "{findings:#?}");
}

/// The parts of cuDNN are opened when they are first used.
#[test]
fn stays_quiet() {
    let venv = Venv::with_torch();
    assert_quiet(&Process::with_torch(&venv).check(), CODE);
}
