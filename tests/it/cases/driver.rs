//! Drivers and the CUDA that they run.

use gpulock::diag::Severity;

use super::torch::torch;
use super::{asking, assert_healthy, build, conflict, on};
use crate::check::venv::{Venv, assert_error, cudart, module, the_finding, the_problem, words};
use crate::link::fixture::Elf;

const TOO_OLD: &str = "driver-too-old";

/// A plain install takes the newest CUDA, whatever the driver is.
#[test]
fn drv_01_cu13_by_default() {
    let driver = "565.57.01";
    let findings = on(&torch("2.12.0", 13000).venv(), "RTX 4090", driver);
    let said =
        ["driver 565.57.01 is too old for CUDA 13.0", "CUDA 13.x runs on driver 580 and later", "install driver 580"];
    assert_error(the_problem(&findings, TOO_OLD), "nvidia/cu13/lib/libcudart.so.13", &said);
    assert_healthy(&on(&torch("2.12.0", 12060).venv(), "RTX 4090", driver));

    let request = asking("RTX 4090", driver, |r| r.stack.torch = Some("==2.12.0".parse().unwrap()));
    assert_eq!(build(&request), "2.12.0+cu126");
    let mut other = request.clone();
    other.stack.variant = Some("cu130".into());
    let (conflict, changes) = conflict(&other);
    assert!(conflict.facts.iter().any(|fact| fact.claim == "CUDA 13.x needs driver 580 or later"));
    assert_eq!(changes, ["variant = \"cu126\" -> torch 2.12.0, cu126", "driver >=580 -> torch 2.12.0, cu130"]);
}

/// No minor-version compatibility across majors, and cuda-compat is for data-centre GPUs alone.
#[test]
fn drv_02_470_branch() {
    let (cu121, driver) = (torch("2.3.0", 12010).venv(), "470.86");
    let findings = on(&cu121, "RTX 3050", driver);
    let finding = the_problem(&findings, TOO_OLD);
    assert_error(finding, "nvidia/cuda_runtime/lib/libcudart.so.12", &["CUDA 12.x runs on driver 525.60.13 and later"]);
    assert!(!words(finding).contains("cuda-compat"), "{finding:#?}");
    let findings = on(&torch("2.9.0", 13000).venv(), "A100", "535.183.06");
    assert!(words(the_problem(&findings, TOO_OLD)).contains("cuda-compat-13-0"));
    assert_healthy(&on(&torch("2.7.1", 11080).venv(), "RTX 3050", driver));

    assert_eq!(build(&asking("RTX 3050", driver, |_| ())), "2.7.1+cu118");
    let (_, changes) = conflict(&asking("RTX 3050", driver, |r| r.stack.torch = Some(">=2.8".parse().unwrap())));
    assert_eq!(changes[0], "driver >=525.60.13 -> torch 2.15.0, cu132");
}

/// Before the job starts: its runner's driver cannot run what it is to test.
#[test]
fn drv_03_green_ci_that_ran_nothing() {
    let cu130 = torch("2.9.0", 13000).venv();
    let findings = on(&cu130, "L4", "570.124.06");
    let said = ["too old for CUDA 13.0", "every CUDA call will fail"];
    assert_error(the_problem(&findings, TOO_OLD), "nvidia/cu13/lib/libcudart.so.13", &said);
    assert_healthy(&on(&cu130, "L4", "580.82.07"));
}

/// 11.3 on the driver of 11.2, which is no fault.
#[test]
fn drv_04_minor_compat_is_fine() {
    let venv = Venv::empty();
    let name = "libcudart-a7b20f20.so.11.0";
    let files = [
        ("torch/lib/libtorch_global_deps.so", Elf::library("libtorch_global_deps.so").needed(&[name]).rpath("$ORIGIN")),
        ("torch/lib/libtorch_cpu.so", Elf::library("libtorch_cpu.so")),
        ("torch/lib/libtorch_cuda.so", Elf::library("libtorch_cuda.so").needed(&[name]).rpath("$ORIGIN")),
        ("torch/lib/libtorch_cuda_linalg.so", Elf::library("libtorch_cuda_linalg.so")),
        ("torch/lib/libcaffe2_nvrtc.so", Elf::library("libcaffe2_nvrtc.so")),
        ("torch/lib/libcudart-a7b20f20.so.11.0", cudart(name, 11030)),
        (
            "torch/_C.cpython-311-x86_64-linux-gnu.so",
            module("_C").needed(&["libtorch_cpu.so", "libtorch_cuda.so"]).rpath("$ORIGIN/lib"),
        ),
    ];
    venv.install("torch", "1.11.0+cu113", &[], &files);
    let findings = on(&venv, "T4", "460.32.03");
    assert_healthy(&findings);
    let note = the_finding(&findings, "driver-minor-version");
    assert_eq!(note.severity, Severity::Note);
    assert!(words(note).contains("PTX of this CUDA cannot be compiled"), "{note:#?}");
    // Below the family's floor it is one.
    the_problem(&on(&venv, "T4", "440.33.01"), TOO_OLD);
}
