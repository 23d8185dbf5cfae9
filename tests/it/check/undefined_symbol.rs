//! Symbols that nothing defines, and no rule knows why.

use super::venv::{Venv, assert_error, assert_quiet, module, the_problem};

const CODE: &str = "undefined-symbol";

fn with_extension_that_asks(symbols: &[&str]) -> Venv {
    let venv = Venv::with_torch();
    venv.install("ext", "1.0", &["torch"], &[("ext/_C.abi3.so", module("_C").needed(&["libc10.so"]).asks(symbols))]);
    venv
}

#[test]
fn fires() {
    let findings = with_extension_that_asks(&["blend_rows", "blend_columns"]).check();
    let said = ["nothing defines blend_", "and 1 more", "blend_rows", "blend_columns", "`import ext", "ext 1.0"];
    assert_error(the_problem(&findings, CODE), "ext/_C.abi3.so", &said);
}

/// A weak symbol may be missing.
#[test]
fn stays_quiet() {
    assert_quiet(&with_extension_that_asks(&["blend_rows?"]).check(), CODE);
}
