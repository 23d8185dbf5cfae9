//! Files that are no libraries, though their names say so.

use gpulock::diag::Severity;

use super::venv::{NCCL, Venv, assert_error, assert_finding, assert_quiet, module, nccl, the_finding, the_problem};

const CODE: &str = "library-unreadable";

/// As after a copy that ended early. That torch cannot be imported is its consequence, not a finding of its own.
#[test]
fn fires() {
    let venv = Venv::with_torch();
    let whole = nccl(22703).defines(&["ncclGroupSimulateEnd"]).bytes();
    venv.put_bytes(NCCL, &whole[..40]);
    let said = ["cannot be read as a library", "`import torch`", "nvidia-nccl-cu12==2.27.3"];
    assert_error(the_problem(&venv.check(), CODE), NCCL, &said);
    venv.put_bytes(NCCL, &whole);
    assert_quiet(&venv.check(), CODE);
}

/// A library for 32-bit programs hurts nobody.
#[test]
fn other_word_sizes_are_a_note() {
    let venv = Venv::empty();
    let mut bytes = module("_C").bytes();
    bytes[4] = 1;
    venv.put_bytes("ext/lib32/libblend.so.1", &bytes);
    let said = ["is not for a 64-bit machine"];
    assert_finding(the_finding(&venv.check(), CODE), Severity::Note, "ext/lib32/libblend.so.1", &said);
}

#[test]
fn stays_quiet() {
    assert_quiet(&Venv::with_torch().check(), CODE);
}
