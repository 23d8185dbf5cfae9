//! A library of a running process that is not its environment's.

use std::path::Path;

use gpulock::diag::Severity;

use super::process::{Process, TORCH};
use super::venv::{
    NCCL, TORCH_PATH, Venv, assert_error, assert_finding, assert_quiet, cudnn, nccl, the_problem, torch_cuda,
};

const CODE: &str = "loaded-from-elsewhere";

/// A process in which another NCCL has the place of the environment's.
fn with_foreign_nccl(venv: &Venv, version: u32) -> (Process, String) {
    let folder = venv.beside("opt/nccl/lib/libnccl.so.2", &nccl(version).defines(&["ncclGroupSimulateEnd"]));
    let mut process = Process::of(venv);
    for path in TORCH.iter().filter(|path| **path != NCCL) {
        process.maps(&venv.site().join(path));
    }
    process.maps(&Path::new(&folder).join("libnccl.so.2"));
    (process, folder)
}

#[test]
fn fires() {
    for (version, severity) in [(22005, Severity::Error), (22703, Severity::Warning)] {
        let venv = Venv::with_torch();
        venv.put("torch/lib/libtorch_cuda.so", &torch_cuda().runpath(TORCH_PATH));
        let (process, folder) = with_foreign_nccl(&venv, version);
        process.variables(&format!("LD_LIBRARY_PATH={folder}\nHOME=/"));
        let (taken, fix) = (
            format!("libnccl.so.2 is taken from {folder} by LD_LIBRARY_PATH"),
            format!("take {folder} out of LD_LIBRARY_PATH"),
        );
        let said = [taken.as_str(), fix.as_str(), NCCL, "asked for by torch/lib/libtorch_cuda.so"];
        let findings = process.check();
        assert_finding(the_problem(&findings, CODE), severity, &format!("{folder}/libnccl.so.2"), &said);
    }
}

/// Nobody's search leads there.
#[test]
fn fires_where_it_was_opened_by_its_path() {
    let venv = Venv::with_torch();
    let (process, folder) = with_foreign_nccl(&venv, 22005);
    let said = ["by its path", "the search of torch/lib/libtorch_cuda.so leads to nvidia/nccl/lib/libnccl.so.2"];
    assert_error(the_problem(&process.check(), CODE), &format!("{folder}/libnccl.so.2"), &said);
}

/// Parts that are in use and those that would be opened next are one finding.
#[test]
fn all_parts_of_a_folder_are_one_finding() {
    let venv = Venv::with_torch();
    let mut folder = String::new();
    for part in ["graph", "ops", "cnn", "adv", "engines_precompiled", "engines_runtime_compiled", "heuristic"] {
        let (path, elf) = cudnn(part, [9, 11, 0]);
        folder = venv.beside(&format!("opt/{path}"), &elf);
    }
    let mut process = Process::with_torch(&venv);
    process.maps(&Path::new(&folder).join("libcudnn_graph.so.9"));
    process.variables(&format!("LD_LIBRARY_PATH={folder}"));
    let said = ["and 6 more are taken from", "9.11.0 in place of 9.10.2"];
    assert_error(the_problem(&process.check(), CODE), &format!("{folder}/libcudnn_graph.so.9"), &said);
}

/// A library that the environment has none of is where it belongs.
#[test]
fn stays_quiet() {
    let venv = Venv::with_torch();
    venv.forget("nvidia-nccl-cu12");
    let (process, _) = with_foreign_nccl(&venv, 22703);
    assert_quiet(&process.check(), CODE);
}
