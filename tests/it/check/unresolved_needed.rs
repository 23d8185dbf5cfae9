//! Libraries that are needed and not found.

use gpulock::diag::Severity;

use super::venv::{
    TORCH_MODULE, Venv, assert_error, assert_finding, assert_quiet, module, the_finding, the_problem, words,
};
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

/// Two libraries of a package that is required and not installed are one finding, which installs what is required of it by
/// all: torch names a release, cuDNN does not.
#[test]
fn a_package_that_is_not_installed_is_one_finding() {
    let venv = Venv::with_torch();
    let requires = ["nvidia-cublas-cu12", "torch"];
    let extension = module("_C").needed(&["libcublas.so.12", "libcublasLt.so.12"]);
    venv.install("ext", "1.0", &requires, &[(MODULE, extension)]);
    venv.install("other", "1.0", &["nvidia-cublas-cu12==12.8.4.1"], &[]);
    let said = [
        "libcublas.so.12 and libcublasLt.so.12 are not found, which ext/_C.abi3.so needs: `import ext._C` fails",
        "nvidia-cublas-cu12==12.8.4.1 is required and not installed",
        "pip install 'nvidia-cublas-cu12==12.8.4.1'",
    ];
    assert_error(the_problem(&venv.check(), CODE), MODULE, &said);
}

/// pip's leavings are no library, and a file that a package recorded is the package's to bring again, whatever is near.
#[test]
fn a_file_that_is_gone_comes_from_its_package() {
    let gone = |near: &str| {
        let venv = with_extension_that_needs("libblend.so.2");
        venv.install("blend", "2.0", &[], &[("blend/lib/libblend.so.2", Elf::library("libblend.so.2"))]);
        venv.remove("blend/lib/libblend.so.2");
        venv.put(near, &Elf::library("libblend.so.2"));
        venv.check()
    };
    for near in ["~lend/lib/libblend.so.2", "other/lib/libblend.so"] {
        let findings = gone(near);
        let finding = the_problem(&findings, CODE);
        assert_error(finding, MODULE, &["pip install --force-reinstall --no-deps blend==2.0"]);
        assert!(!words(finding).contains(near), "{finding:#?}");
    }
}

#[test]
fn names_a_link_that_leads_to_nothing() {
    let venv = with_extension_that_needs("libblend.so.2");
    venv.put("ext/libs/libblend.so.1", &Elf::library("libblend.so.1"));
    venv.link("ext/libs/libblend.so.2", "libblend.so.2.5");
    let said = ["ext/libs/libblend.so.2 is a link to libblend.so.2.5, which is not there"];
    assert_error(the_problem(&venv.check(), CODE), MODULE, &said);
}

/// Libraries without their run paths: one package, one finding, and not a path for the job.
#[test]
fn a_package_that_lost_its_run_paths_is_one_finding() {
    let venv = Venv::with_torch();
    let stray = module("_C").needed(&["libtorch_cpu.so", "libtorch_cuda.so"]);
    venv.put(TORCH_MODULE, &stray);
    let said = [
        "libtorch_cpu.so and libtorch_cuda.so are not found",
        "where the loader does not look for it",
        "pip install --force-reinstall --no-deps torch==2.8.0",
    ];
    assert_error(the_problem(&venv.check(), CODE), TORCH_MODULE, &said);
}

/// The installed release is of another major, and a requirement says which is wanted.
#[test]
fn another_major_is_put_right_by_the_requirement() {
    let venv = with_extension_that_needs("libblend.so.2");
    venv.install("blend", "1.0", &[], &[("blend/lib/libblend.so.1", Elf::library("libblend.so.1"))]);
    venv.install("user", "1.0", &["blend==2.0"], &[]);
    let said = ["the environment has blend/lib/libblend.so.1", "pip install 'blend==2.0'"];
    assert_error(the_problem(&venv.check(), CODE), MODULE, &said);

    // The installed release is the one that is required: it is the extension that does not fit.
    let venv = with_extension_that_needs("libcudart.so.13");
    venv.install("user", "1.0", &["nvidia-cuda-runtime-cu12==12.8.90"], &[]);
    let said = ["the environment has nvidia/cuda_runtime/lib/libcudart.so.12", "install a ext that is built for what"];
    assert_error(the_problem(&venv.check(), CODE), MODULE, &said);
}

/// torch's own module for another Python than the environment's.
#[test]
fn a_module_of_another_python_is_none() {
    let venv = Venv::with_torch();
    // That others do not find torch's libraries either is its consequence.
    venv.install("ext", "1.0", &["torch"], &[(MODULE, module("_C").needed(&["libtorch_cpu.so"]))]);
    venv.rename(TORCH_MODULE, "torch/_C.cpython-310-x86_64-linux-gnu.so");
    let said = [
        "torch/_C.cpython-310-x86_64-linux-gnu.so is for another Python, and torch has no module for this one",
        "import torch fails",
        "pip install --force-reinstall --no-deps torch==2.8.0",
    ];
    assert_error(the_problem(&venv.check(), CODE), "Python", &said);
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
