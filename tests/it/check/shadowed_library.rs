//! A library of the environment whose place another file takes.

use gpulock::diag::Severity;

use super::venv::{
    NCCL, TORCH_PATH, Venv, assert_error, assert_finding, assert_quiet, nccl, the_finding, the_problem, torch_cuda,
    words,
};
use crate::link::fixture::Elf;

const CODE: &str = "shadowed-library";

/// A job with another NCCL on LD_LIBRARY_PATH; gives its folder too.
fn with_foreign_nccl(version: u32, torch_cuda: &Elf) -> (Venv, String) {
    let mut venv = Venv::with_torch();
    venv.put("torch/lib/libtorch_cuda.so", torch_cuda);
    let folder = venv.beside("opt/nccl/lib/libnccl.so.2", &nccl(version).defines(&["ncclGroupSimulateEnd"]));
    venv.set("LD_LIBRARY_PATH", &folder);
    (venv, folder)
}

#[test]
fn fires() {
    for (version, severity, versions) in
        [(22005, Severity::Error, "2.20.5 in place of 2.27.3"), (22703, Severity::Warning, "2.27.3 in place of 2.27.3")]
    {
        let (venv, folder) = with_foreign_nccl(version, &torch_cuda().runpath(TORCH_PATH));
        let (taken, fix) = (
            format!("libnccl.so.2 is taken from {folder} by LD_LIBRARY_PATH"),
            format!("take {folder} out of LD_LIBRARY_PATH"),
        );
        let findings = venv.check();
        let said = [taken.as_str(), versions, NCCL, fix.as_str()];
        assert_finding(the_problem(&findings, CODE), severity, &format!("{folder}/libnccl.so.2"), &said);
    }
}

/// Where another rule names the one that wins as the cause, nothing more is said; what to do is the same.
#[test]
fn what_another_rule_names_is_left_to_it() {
    let mut venv = Venv::with_torch();
    venv.put("torch/lib/libtorch_cuda.so", &torch_cuda().runpath(TORCH_PATH));
    let folder = venv.beside("opt/nccl/lib/libnccl.so.2", &nccl(22005));
    venv.set("LD_LIBRARY_PATH", &folder);
    let findings = venv.check();
    let fix = format!("take {folder} out of LD_LIBRARY_PATH");
    let said = ["NCCL 2.20.5 is loaded and lacks ncclGroupSimulateEnd", fix.as_str()];
    assert_error(the_problem(&findings, "nccl-mismatch"), &format!("{folder}/libnccl.so.2"), &said);
}

/// DT_RPATH comes before LD_LIBRARY_PATH, DT_RUNPATH after it.
#[test]
fn stays_quiet() {
    let (venv, _) = with_foreign_nccl(22005, &torch_cuda().rpath(TORCH_PATH));
    assert_quiet(&venv.check(), CODE);
}

/// What a package brings for itself alone stands in for nothing: torch that was built on a system has no cupti of a package.
#[test]
fn a_private_copy_is_not_what_was_meant() {
    let mut venv = Venv::with_torch();
    venv.put("torch/lib/libtorch_cuda.so", &torch_cuda().needed(&["libcupti.so.12"]).rpath(TORCH_PATH));
    let cupti = Elf::library("libcupti.so.12");
    let own = "triton/backends/nvidia/lib/cupti/libcupti.so.12";
    venv.install("triton", "3.4.0", &[], &[(own, cupti.clone())]);
    let folder = venv.beside("usr/local/cuda/lib64/libcupti.so.12", &cupti);
    venv.set("LD_LIBRARY_PATH", &folder);
    assert_quiet(&venv.check(), CODE);
    let own = "nvidia/cuda_cupti/lib/libcupti.so.12";
    venv.install("nvidia-cuda-cupti-cu12", "12.8.90", &[], &[(own, cupti)]);
    assert!(words(the_finding(&venv.check(), CODE)).contains(own));
}

/// Of a process that has not opened it yet.
#[test]
fn fires_for_what_a_process_would_open() {
    let venv = Venv::with_torch();
    let mut folder = String::new();
    for part in super::venv::CUDNN_PARTS {
        let (path, elf) = super::venv::cudnn(part, [9, 11, 0]);
        folder = venv.beside(&format!("opt/{path}"), &elf);
    }
    let process = super::process::Process::with_torch(&venv);
    process.variables(&format!("LD_LIBRARY_PATH={folder}"));
    let said = ["and 6 more are taken from", "9.11.0 in place of 9.10.2"];
    assert_error(the_problem(&process.check(), CODE), &format!("{folder}/libcudnn_graph.so.9"), &said);
}
