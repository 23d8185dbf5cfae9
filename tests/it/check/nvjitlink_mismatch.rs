//! An nvJitLink that is older than cuSPARSE asks for.

use super::venv::{NVJITLINK, Venv, assert_error, assert_quiet, nvjitlink, the_problem};

const CODE: &str = "nvjitlink-mismatch";

#[test]
fn fires() {
    let venv = Venv::with_torch();
    venv.put(NVJITLINK, &nvjitlink(12, 1));
    let said = [
        "nvJitLink 12.1 is loaded and lacks __nvJitLinkGetErrorLog_12_8, which nvidia/cusparse/lib/libcusparse.so.12 needs",
        "`import torch` fails",
        "pip install 'nvidia-nvjitlink-cu12==12.8.93'",
    ];
    assert_error(the_problem(&venv.check(), CODE), NVJITLINK, &said);
}

/// A later one has the functions of all minors before it.
#[test]
fn stays_quiet() {
    let venv = Venv::with_torch();
    venv.put(NVJITLINK, &nvjitlink(12, 9));
    assert_quiet(&venv.check(), CODE);
}
