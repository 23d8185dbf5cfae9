//! The driver's stub at run time.

use gpulock::check::Findings;

use super::venv::{Venv, assert_error, assert_quiet, module, the_problem};
use crate::link::fixture::Elf;

const CODE: &str = "cuda-stub-linked";

/// What is said where LD_LIBRARY_PATH leads to a libcuda.so.1 in this folder; gives the folder too.
fn with_driver_library_in(folder: &str) -> (Findings, String) {
    let mut venv = Venv::with_torch();
    venv.install("ext", "1.0", &["torch"], &[("ext/_C.abi3.so", module("_C").needed(&["libcuda.so.1"]))]);
    let folder = venv.beside(&format!("{folder}/libcuda.so.1"), &Elf::library("libcuda.so.1"));
    venv.set("LD_LIBRARY_PATH", &folder);
    (venv.check(), folder)
}

#[test]
fn fires() {
    let (findings, folder) = with_driver_library_in("cuda/lib64/stubs");
    let fix = format!("take {folder} out of LD_LIBRARY_PATH");
    let said = ["is the stub that CUDA has for linking", "CUDA driver is a stub library", fix.as_str()];
    assert_error(the_problem(&findings, CODE), &format!("{folder}/libcuda.so.1"), &said);
}

#[test]
fn stays_quiet() {
    assert_quiet(&with_driver_library_in("cuda/lib64").0, CODE);
}
