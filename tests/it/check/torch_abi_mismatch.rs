//! Extensions that were built for another torch.

use super::venv::{C10_FUNCTION, Venv, assert_error, assert_quiet, the_problem};
use crate::link::fixture::Elf;

const CODE: &str = "torch-abi-mismatch";

fn with_torchvision(version: &str, asks: &str) -> Venv {
    let venv = Venv::with_torch();
    let library = Elf::default().needed(&["libc10.so"]).asks(&[asks]);
    venv.install("torchvision", version, &["torch==2.5.0"], &[("torchvision/_C.so", library)]);
    venv
}

#[test]
fn fires() {
    let gone = "_ZN3c1015SmallVectorBaseIjE8grow_podEPKvmm";
    let said = [
        "torchvision 0.20.0 does not fit torch 2.8.0: `import torchvision`",
        gone,
        "built for another release of torch",
        "requires torch==2.5.0; 2.8.0 is installed",
        "pip install torchvision==0.23.0",
    ];
    let findings = with_torchvision("0.20.0", gone).check();
    assert_error(the_problem(&findings, CODE), "torchvision/_C.so", &said);
}

#[test]
fn tells_the_abi_of_before_cxx11() {
    let old = "_ZN3c106detail23torchInternalAssertFailEPKcS2_jS2_RKSs";
    let findings = with_torchvision("0.20.0", old).check();
    assert_error(the_problem(&findings, CODE), "torchvision/_C.so", &[old, "C++ ABI of before C++11"]);
}

/// Built for another release by what it says of itself, and torch has all that it asks for.
#[test]
fn stays_quiet() {
    assert_quiet(&with_torchvision("0.20.0", C10_FUNCTION).check(), CODE);
}
