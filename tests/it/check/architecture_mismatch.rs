//! Packages for another processor.

use super::venv::{Question, Venv, assert_error, assert_quiet, module, the_problem};
use crate::link::fixture::Elf;

const CODE: &str = "architecture-mismatch";

/// torch 2.8.0 of this processor, by its number in the ELF header, as its wheel for ARM has it: without CUDA.
fn torch_for(machine: u16) -> Venv {
    let venv = Venv::empty();
    let name = if machine == 183 { "aarch64" } else { "x86_64" };
    let own = |elf: Elf| Elf { machine: Some(machine), ..elf };
    let path = format!("torch/_C.cpython-311-{name}-linux-gnu.so");
    let files = [
        ("torch/lib/libtorch_global_deps.so", own(Elf::library("libtorch_global_deps.so"))),
        ("torch/lib/libtorch_cpu.so", own(Elf::library("libtorch_cpu.so"))),
        (&path, own(module("_C").needed(&["libtorch_cpu.so"]).rpath("$ORIGIN/lib"))),
    ];
    venv.install("torch", "2.8.0", &[], &files);
    venv
}

#[test]
fn fires() {
    let (venv, question) = (torch_for(183), Question { gpus: &["H100"], ..Question::default() });
    let said =
        ["torch 2.8.0 is for aarch64, and the machines are x86_64", "libtorch_cpu.so", "install the wheel for x86_64"];
    // That it is a CPU build besides is not worth a word.
    assert_error(the_problem(&venv.ask(&question), CODE), "torch", &said);
}

#[test]
fn stays_quiet() {
    assert_quiet(&torch_for(62).check(), CODE);
    // Files for a device of another kind, beside those that Python imports.
    let venv = Venv::with_torch();
    let arm = Elf { machine: Some(183), ..Elf::library("libdevice.so") };
    venv.install("ext", "1.0", &[], &[("ext/_C.abi3.so", module("_C")), ("ext/arm/libdevice.so", arm.clone())]);
    venv.install("phone", "1.0", &[], &[("phone/assets/libdevice.so", arm)]);
    assert_quiet(&venv.check(), CODE);
}
