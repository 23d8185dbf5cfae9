//! Libraries that were replaced under a running process.

use gpulock::diag::Severity;

use super::process::Process;
use super::venv::{NCCL, Venv, assert_error, assert_finding, assert_quiet, cudnn, nccl, the_problem};
use crate::link::fixture::Elf;

const CODE: &str = "deleted-mapping";

/// cuDNN's graph part, which is in use, is of the old release; the parts that are not are of the new one.
#[test]
fn fires() {
    let venv = Venv::with_torch();
    let (path, old) = cudnn("graph", [9, 10, 2]);
    let kept = venv.beside("kept", &old);
    let mut process = Process::with_torch(&venv);
    venv.install_cudnn([9, 11, 0]);
    process.maps_deleted(&venv.site().join(&path), &std::path::Path::new(&kept).join("kept"));
    let said = ["replaced after process 4242 loaded it", "9.10.2 is mapped, 9.11.0 is on disk", "start the job again"];
    assert_error(the_problem(&process.check(), CODE), &path, &said);
}

#[test]
fn fires_for_a_file_that_is_gone() {
    let venv = Venv::with_torch();
    let kept = venv.beside("kept", &nccl(22703).defines(&["ncclGroupSimulateEnd"]));
    let mut process = Process::of(&venv);
    for path in super::process::TORCH.iter().filter(|path| **path != NCCL) {
        process.maps(&venv.site().join(path));
    }
    venv.remove(NCCL);
    process.maps_deleted(&venv.site().join(NCCL), &std::path::Path::new(&kept).join("kept"));
    assert_error(the_problem(&process.check(), CODE), NCCL, &["libnccl.so.2 was removed", "nothing is there now"]);
}

/// What a removed library would open is gone with it: one cause. A library is known by the name of its file too.
#[test]
fn a_removed_environment_is_one_finding() {
    let venv = Venv::with_torch();
    let (path, graph) = cudnn("graph", [9, 10, 2]);
    let renamed = Elf::library("libgomp.so.1");
    venv.put("torch/lib/libgomp-a34b3233.so.1", &renamed);
    venv.put("torch/lib/libc10.so", &super::venv::c10().needed(&["libgomp-a34b3233.so.1"]).runpath("$ORIGIN"));
    let kept: Vec<(String, std::path::PathBuf)> = super::process::TORCH
        .iter()
        .chain(&["torch/lib/libgomp-a34b3233.so.1", path.as_str()])
        .map(|place| {
            let bytes = std::fs::read(venv.site().join(place)).unwrap();
            let folder = venv.beside(&format!("kept/{place}"), &graph);
            let kept = std::path::Path::new(&folder).join(std::path::Path::new(place).file_name().unwrap());
            std::fs::write(&kept, bytes).unwrap();
            ((*place).to_owned(), kept)
        })
        .collect();
    let mut process = Process::of(&venv);
    for (place, _) in &kept {
        venv.remove(place);
    }
    for part in ["ops", "cnn", "adv", "engines_precompiled", "engines_runtime_compiled", "heuristic"] {
        venv.remove(&cudnn(part, [9, 10, 2]).0);
    }
    for (place, kept) in &kept {
        process.maps_deleted(&venv.site().join(place), kept);
    }
    let findings = process.check();
    let errors: Vec<&str> =
        findings.findings.iter().filter(|one| one.severity == Severity::Error).map(|one| one.code).collect();
    assert_eq!(errors, [CODE], "{findings:#?}");
}

#[test]
fn other_packages_are_a_warning() {
    let venv = Venv::with_torch();
    let path = "numpy/core.cpython-311-x86_64-linux-gnu.so";
    venv.install("numpy", "2.0.0", &[], &[(path, Elf::library("core"))]);
    let mut process = Process::with_torch(&venv);
    let kept = venv.beside("kept", &Elf::library("old"));
    process.maps_deleted(&venv.site().join(path), &std::path::Path::new(&kept).join("kept"));
    assert_finding(the_problem(&process.check(), CODE), Severity::Warning, path, &["goes on with the old file"]);
}

/// Something was compiled, loaded and removed; a file is really called so.
#[test]
fn stays_quiet() {
    let venv = Venv::with_torch();
    let mut process = Process::with_torch(&venv);
    let kept = venv.beside("kept", &Elf::library("compiled.so"));
    process.maps_deleted(&venv.path().join("compiled.so"), &std::path::Path::new(&kept).join("kept"));
    let named = venv.beside("libx.so (deleted)", &Elf::library("libx.so"));
    process.maps(&std::path::Path::new(&named).join("libx.so (deleted)"));
    assert_quiet(&process.check(), CODE);
}
