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
        "pip install --force-reinstall --no-deps nvidia-nvjitlink-cu12==12.8.93",
    ];
    assert_error(the_problem(&venv.check(), CODE), NVJITLINK, &said);
}

/// The one that asks for it names no release, and another package does.
#[test]
fn the_release_that_any_package_requires_is_the_fix() {
    let venv = Venv::with_torch();
    venv.forget("nvidia-nvjitlink-cu12");
    venv.install("nvidia-nvjitlink-cu12", "12.1.105", &[], &[(NVJITLINK, nvjitlink(12, 1))]);
    let said = ["pip install 'nvidia-nvjitlink-cu12==12.8.93'"];
    assert_error(the_problem(&venv.check(), CODE), NVJITLINK, &said);
}

/// A later one has the functions of all minors before it.
#[test]
fn stays_quiet() {
    let venv = Venv::with_torch();
    venv.put(NVJITLINK, &nvjitlink(12, 9));
    assert_quiet(&venv.check(), CODE);
}
