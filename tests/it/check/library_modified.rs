//! Libraries that are not what their package or the lock says.

use gpulock::diag::Severity;
use gpulock::lock::Lock;

use super::venv::{
    NCCL, Question, Venv, assert_error, assert_finding, assert_quiet, cudnn, nccl, the_finding, the_problem,
};
use crate::link::fixture::Elf;

const CODE: &str = "library-modified";
const C10: &str = "torch/lib/libc10.so";

/// Its package's own record is no promise of the user's: a patched file may be meant.
#[test]
fn fires_as_a_note_by_the_packages_record() {
    let venv = Venv::with_torch();
    venv.put(NCCL, &nccl(22703).defines(&["ncclGroupSimulateEnd", "patched"]));
    let findings = venv.check();
    let said = ["is not the file that its package's RECORD names", "bytes, and", "nvidia-nccl-cu12==2.27.3"];
    assert_finding(the_finding(&findings, CODE), Severity::Note, NCCL, &said);
}

/// A part of cuDNN that does not say its version may be of another release.
#[test]
fn fires_as_an_error_for_a_silent_part_of_cudnn() {
    let venv = Venv::with_torch();
    let path = "nvidia/cudnn/lib/libcudnn_heuristic.so.9";
    venv.put(path, &Elf::library("libcudnn_heuristic.so.9").runpath("$ORIGIN"));
    let findings = venv.check();
    let said = ["does not tell its version", "(1002)", "nvidia-cudnn-cu12==9.10.2.21"];
    assert_finding(the_problem(&findings, CODE), Severity::Error, path, &said);
}

/// Where parts that tell their version are changed too, all of cuDNN was replaced: what they say is judged by other rules.
#[test]
fn a_whole_cudnn_of_another_release_is_a_note() {
    let venv = Venv::with_torch();
    let silent = "nvidia/cudnn/lib/libcudnn_heuristic.so.9";
    venv.put(silent, &Elf::library("libcudnn_heuristic.so.9").runpath("$ORIGIN"));
    let (telling, ops) = cudnn("ops", [9, 10, 2]);
    venv.put(&telling, &ops.defines(&["cudnnBlend"]));
    let said = ["libcudnn_heuristic.so.9 and 1 more are not the files"];
    assert_finding(the_finding(&venv.check(), CODE), Severity::Note, silent, &said);
}

fn lock_of(size: u64) -> Lock {
    let text = crate::lock::SAMPLE.replace(", size = 1 }", &format!(", size = {size} }}"));
    Lock::parse(&text, "gpulock.lock").unwrap()
}

fn with_locked_torch() -> (Venv, u64) {
    let venv = Venv::empty();
    let library = Elf::library("libc10.so");
    let size = library.bytes().len() as u64;
    venv.install("torch", "2.8.0", &[], &[(C10, library)]);
    venv.install("filelock", "3.20.0", &[], &[]);
    (venv, size)
}

#[test]
fn fires_as_an_error_by_the_lock() {
    let (venv, size) = with_locked_torch();
    let lock = lock_of(1);
    let findings = venv.ask(&Question { lock: Some(&lock), ..Question::default() });
    let bytes = format!("{size} bytes, and 1 are expected");
    let said = ["is not the file that the lock names", bytes.as_str(), "torch==2.8.0"];
    assert_finding(the_problem(&findings, CODE), Severity::Error, C10, &said);

    // The size is right, and the contents were read and are not.
    let lock = lock_of(size);
    let digests = [(C10, [0xaa; 32])];
    let findings = venv.ask(&Question { lock: Some(&lock), digests: &digests, ..Question::default() });
    let said = ["sha256 aaaaaaaa", "55555555", "is expected"];
    assert_finding(the_problem(&findings, CODE), Severity::Error, C10, &said);
}

#[test]
fn stays_quiet() {
    assert_quiet(&Venv::with_torch().check(), CODE);
    let (venv, size) = with_locked_torch();
    let lock = lock_of(size);
    let digests = [(C10, [0x55; 32])];
    assert_quiet(&venv.ask(&Question { lock: Some(&lock), digests: &digests, ..Question::default() }), CODE);
}

/// Two packages with files of the same names: the one that was installed last wrote over the other's.
#[test]
fn fires_for_a_package_that_wrote_over_another() {
    let venv = Venv::with_torch();
    let (path, elf) = cudnn("", [9, 10, 2]);
    venv.install("nvidia-cudnn-cu13", "9.26.0.51", &[], &[(&path, elf.section(".comment", vec![0; 4096]))]);
    let said = [
        "libcudnn.so.9 of nvidia-cudnn-cu12 9.10.2.21 was overwritten by nvidia-cudnn-cu13 9.26.0.51",
        "pip uninstall -y nvidia-cudnn-cu13 && pip install --force-reinstall --no-deps nvidia-cudnn-cu12==9.10.2.21",
    ];
    assert_error(the_problem(&venv.check(), CODE), &path, &said);
}

/// Modules of Python come with either package: cuda-python brings what cuda-bindings brings.
#[test]
fn modules_of_two_packages_are_a_note() {
    let venv = Venv::with_torch();
    let module = |size: usize| Elf::library("driver.so").section(".comment", vec![0; size]);
    venv.install("cuda-python", "12.6.2", &[], &[("cuda/bindings/driver.so", module(64))]);
    venv.install("cuda-bindings", "13.5.0", &[], &[("cuda/bindings/driver.so", module(4096))]);
    let said = ["was overwritten by cuda-bindings 13.5.0"];
    assert_finding(the_finding(&venv.check(), CODE), Severity::Note, "cuda/bindings/driver.so", &said);
}
