//! Libraries that are needed and not found.

use gpulock::diag::Severity;

use super::venv::{Venv, assert_error, assert_finding, assert_quiet, module, the_finding, the_problem};
use crate::link::fixture::Elf;

const CODE: &str = "unresolved-needed";
const MODULE: &str = "ext/_C.abi3.so";

fn with_extension_that_needs(name: &str) -> Venv {
    let venv = Venv::with_torch();
    venv.install("ext", "1.0", &["torch"], &[(MODULE, module("_C").needed(&[name]).runpath("$ORIGIN/libs"))]);
    venv
}

#[test]
fn fires() {
    let findings = with_extension_that_needs("libcusparseLt.so.0").check();
    let said = [
        "libcusparseLt.so.0 is not found, which ext/_C.abi3.so needs: `import ext",
        "cannot open shared object file",
        "ext/libs",
        "pip install 'nvidia-cusparselt-cu12==0.7.1'",
    ];
    assert_error(the_problem(&findings, CODE), MODULE, &said);
}

#[test]
fn names_a_file_that_is_near() {
    let venv = with_extension_that_needs("libblend.so.2");
    venv.install("other", "1.0", &[], &[("other/lib/libblend.so.2", Elf::library("libblend.so.2"))]);
    let said =
        ["other/lib/libblend.so.2 is there, where the loader does not look for it", "put other/lib on LD_LIBRARY_PATH"];
    assert_error(the_problem(&venv.check(), CODE), MODULE, &said);

    let venv = with_extension_that_needs("libblend.so.2");
    venv.put("ext/libs/libblend.so.1", &Elf::library("libblend.so.1"));
    assert_error(the_problem(&venv.check(), CODE), MODULE, &["the environment has ext/libs/libblend.so.1"]);

    let venv = with_extension_that_needs("libblend.so.2");
    let arm = Elf { machine: Some(183), ..Elf::library("libblend.so.2") };
    venv.put("ext/libs/libblend.so.2", &arm);
    assert_error(the_problem(&venv.check(), CODE), MODULE, &["is for another processor", "passes over it"]);
}

/// A package that requires the one with the library, and has no run path to it, may open it first; one that has a run path
/// relies on that.
#[test]
fn what_a_package_may_open_first_is_a_note() {
    let with = |requires: &[&str], runpath: &str| {
        let venv = Venv::with_torch();
        let module = module("_C").needed(&["libblend.so.2"]).runpath(runpath);
        venv.install("ext", "1.0", requires, &[(MODULE, module)]);
        venv.install("other", "1.0", &[], &[("other/lib/libblend.so.2", Elf::library("libblend.so.2"))]);
        venv.check()
    };
    let said = ["`import ext._C` fails unless Python code opens it", "other/lib/libblend.so.2", "is not known"];
    for requires in [&["other"][..], &["other==1.0; extra == \"gpu\""]] {
        let findings = with(requires, "$ORIGIN/libs");
        assert_finding(the_finding(&findings, CODE), Severity::Note, MODULE, &said);
    }
    for (requires, runpath) in [(&[][..], "$ORIGIN/libs"), (&["other"], "$ORIGIN/../other/lib64")] {
        let said = ["other/lib/libblend.so.2 is there, where the loader does not look for it"];
        assert_error(the_problem(&with(requires, runpath), CODE), MODULE, &said);
    }
}

/// Found by its RUNPATH; or the driver's, which no environment has.
#[test]
fn stays_quiet() {
    let venv = with_extension_that_needs("libblend.so.2");
    venv.put("ext/libs/libblend.so.2", &Elf::library("libblend.so.2"));
    assert_quiet(&venv.check(), CODE);
    assert_quiet(&with_extension_that_needs("libcuda.so.1").check(), CODE);
}

/// What a library of an unknown version opens has an unknown name.
#[test]
fn names_that_are_not_known_are_not_missing() {
    let venv = Venv::with_torch();
    venv.put("nvidia/cuda_nvrtc/lib/libnvrtc.so.12", &Elf::library("libnvrtc.so.12"));
    assert_quiet(&venv.check(), CODE);
}
