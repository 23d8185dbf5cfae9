//! A package for another major of cuDNN than the environment has.

use super::venv::{Venv, assert_error, assert_quiet, module, the_problem};
use crate::link::fixture::Elf;

const CODE: &str = "cudnn-major-mismatch";

fn with_extension_for(cudnn: &str) -> Venv {
    let venv = Venv::with_torch();
    venv.install("ext", "1.0", &["torch"], &[("ext/_C.abi3.so", module("_C").needed(&[cudnn]))]);
    venv
}

#[test]
fn fires() {
    let findings = with_extension_for("libcudnn.so.8").check();
    let said =
        ["ext 1.0 wants cuDNN 8 and the environment has cuDNN 9", "libcudnn.so.8 cannot be opened", "`import ext"];
    assert_error(the_problem(&findings, CODE), "ext/_C.abi3.so", &said);
}

#[test]
fn stays_quiet() {
    assert_quiet(&with_extension_for("libcudnn.so.9").check(), CODE);
}

/// Both majors are there, and the loader does not look where the wanted one is: another fault.
#[test]
fn leaves_what_is_there_to_another_rule() {
    let venv = with_extension_for("libcudnn.so.8");
    for name in ["libcudnn.so.8", "libcudnn_ops_infer.so.8"] {
        venv.put(&format!("other/lib/{name}"), &Elf::library(name).runpath("$ORIGIN"));
    }
    let said = ["other/lib/libcudnn.so.8 is there, where the loader does not look for it"];
    assert_error(the_problem(&venv.check(), "unresolved-needed"), "ext/_C.abi3.so", &said);
}
