//! Versions of symbols that a library lacks.

use super::venv::{Venv, assert_error, assert_quiet, module, the_problem};
use crate::link::fixture::Elf;

const CODE: &str = "symbol-version-missing";

fn with_library_that_defines(symbols: &[&str]) -> Venv {
    let venv = Venv::empty();
    let extension = module("_C").needed(&["libblend.so.1"]).versions(&["BLEND_2/libblend.so.1"]).rpath("$ORIGIN");
    let library = Elf::library("libblend.so.1").defines(symbols);
    venv.install("ext", "1.0", &[], &[("ext/_C.abi3.so", extension), ("ext/libblend.so.1", library)]);
    venv
}

#[test]
fn fires() {
    let findings = with_library_that_defines(&["blend@@BLEND_1"]).check();
    let said = [
        "ext/libblend.so.1 has no version BLEND_2, which ext/_C.abi3.so needs",
        "`import ext._C` fails",
        "version `BLEND_2' not found",
    ];
    assert_error(the_problem(&findings, CODE), "ext/libblend.so.1", &said);
}

/// ld.so takes a library without any versions as it is.
#[test]
fn stays_quiet() {
    assert_quiet(&with_library_that_defines(&["blend"]).check(), CODE);
    assert_quiet(&with_library_that_defines(&["old@BLEND_1", "blend@@BLEND_2"]).check(), CODE);
}
