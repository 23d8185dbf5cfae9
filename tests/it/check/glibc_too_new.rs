//! Libraries for a newer glibc than the machines have.

use gpulock::check::Findings;

use super::venv::{Question, Venv, assert_error, assert_quiet, module, the_problem};

const CODE: &str = "glibc-too-new";

/// What is said of an extension that needs glibc 2.17, which every machine that runs this test has.
fn on_glibc(declared: &str) -> Findings {
    let venv = Venv::empty();
    let extension = module("_C").versions(&["GLIBC_2.17/libc.so.6"]);
    venv.install("ext", "1.0", &[], &[("ext/_C.abi3.so", extension)]);
    venv.ask(&Question { glibc: Some(declared), ..Question::default() })
}

#[test]
fn fires() {
    let said = ["ext 1.0 needs glibc 2.17 and the machines have 2.12", "needs GLIBC_2.17", "built for glibc 2.12"];
    assert_error(the_problem(&on_glibc("2.12"), CODE), "ext/_C.abi3.so", &said);
}

/// The loader says two things of one cause: that the version is not there, and each symbol that has it.
#[test]
fn symbols_of_the_missing_version_are_its_evidence() {
    let venv = Venv::empty();
    let extension = module("_C").needed(&["libc.so.6"]).asks(&["__isoc23_strtoul@GLIBC_2.999/libc.so.6"]);
    venv.install("ext", "1.0", &[], &[("ext/_C.abi3.so", extension)]);
    let said = ["ext 1.0 needs glibc 2.999", "version `GLIBC_2.999' not found", "undefined symbol: __isoc23_strtoul"];
    assert_error(the_problem(&venv.check(), CODE), "ext/_C.abi3.so", &said);
}

#[test]
fn stays_quiet() {
    assert_quiet(&on_glibc("2.17"), CODE);
    // 2.9 is older than 2.17, and 2.100 is not.
    assert_quiet(&on_glibc("2.100"), CODE);
}
