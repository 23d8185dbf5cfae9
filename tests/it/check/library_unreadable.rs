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

/// What the loader reads is there, and not all of what it maps: it loads, and fails when it is used.
#[test]
fn fires_on_a_file_that_is_cut_short() {
    let venv = Venv::with_torch();
    let whole = nccl(22703).defines(&["ncclGroupSimulateEnd"]).bytes();
    let mut long = whole.clone();
    // The loadable segment, which is the second entry, claims one page more than the file has.
    for size in [64 + 56 + 32, 64 + 56 + 40] {
        let claimed = u64::from_le_bytes(long[size..][..8].try_into().unwrap()) + 4096;
        long[size..][..8].copy_from_slice(&claimed.to_le_bytes());
    }
    venv.put_bytes(NCCL, &long);
    let said = ["is cut short", "SIGBUS", "beyond the file's", "nvidia-nccl-cu12==2.27.3"];
    assert_error(the_problem(&venv.check(), CODE), NCCL, &said);
    long.resize(long.len() + 4096, 0);
    venv.put_bytes(NCCL, &long);
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
