//! A libstdc++ without the versions that are asked of it.

use super::venv::{Venv, assert_error, assert_quiet, c10, module, the_problem};
use crate::link::fixture::Elf;

const CODE: &str = "libstdcxx-too-old";
const LIBRARY: &str = "torch/lib/libstdc++.so.6";

/// torch brings a libstdc++ whose newest version is this; an extension needs GLIBCXX_3.4.30 of what is loaded by then.
fn with_libstdcxx(newest: &str) -> Venv {
    let venv = Venv::with_torch();
    venv.put("torch/lib/libc10.so", &c10().needed(&["libstdc++.so.6"]).rpath("$ORIGIN"));
    let library = Elf::library("libstdc++.so.6").defines(&["old@@GLIBCXX_3.4.20", &format!("new@@{newest}")]);
    venv.put(LIBRARY, &library);
    let extension = module("_C").needed(&["libstdc++.so.6"]).asks(&["new@GLIBCXX_3.4.30/libstdc++.so.6"]);
    venv.install("ext", "1.0", &["torch"], &[("ext/_C.abi3.so", extension)]);
    venv
}

#[test]
fn fires() {
    let said = [
        "torch/lib/libstdc++.so.6 is older than ext/_C.abi3.so needs: it has no GLIBCXX_3.4.30",
        "`import ext._C` fails",
        "found by DT_RPATH",
        "undefined symbol: new",
    ];
    assert_error(the_problem(&with_libstdcxx("GLIBCXX_3.4.29").check(), CODE), LIBRARY, &said);
}

#[test]
fn stays_quiet() {
    assert_quiet(&with_libstdcxx("GLIBCXX_3.4.30").check(), CODE);
}
