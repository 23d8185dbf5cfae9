//! Where the loader finds libraries: LD_LIBRARY_PATH, DT_RPATH and DT_RUNPATH, and folders of packages that are two.

use super::image::Image;
use super::torch::{Torch, torch};
use super::{assert_healthy, problems};
use crate::check::venv::{NVJITLINK, Question, TORCH_PATH, Venv, assert_error, install, stores, the_problem, words};
use crate::link::fixture::Elf;

/// nvJitLink of a minor: it has its functions under a name for each minor up to its own.
fn nvjitlink(minor: u32) -> Elf {
    let version = [stores(12), stores(minor)].concat();
    let elf = Elf::library("libnvJitLink.so.12").holds("nvJitLinkVersion@@libnvJitLink.so.12", version);
    let names = (0..=minor).map(|minor| format!("__nvJitLinkComplete_12_{minor}@@libnvJitLink.so.12"));
    names.fold(elf, |elf, name| elf.defines(&[&name]))
}

/// LD_LIBRARY_PATH is stronger than the DT_RUNPATH by which cuSPARSE finds its own.
#[test]
fn ld_01_nvjitlink_via_ld_library_path() {
    let job = |rpath: bool, path: bool| {
        let mut venv = torch("2.5.1", 12040).venv();
        let asks = ["__nvJitLinkComplete_12_4@libnvJitLink.so.12/libnvJitLink.so.12"];
        let cusparse = Elf::library("libcusparse.so.12").needed(&["libnvJitLink.so.12"]).asks(&asks);
        let own = "$ORIGIN/../../nvjitlink/lib";
        let cusparse = if rpath { cusparse.rpath(own) } else { cusparse.runpath(own) };
        let pin = ["nvidia-nvjitlink-cu12==12.4.127"];
        let files = [("nvidia/cusparse/lib/libcusparse.so.12", cusparse)];
        venv.install("nvidia-cusparse-cu12", "12.3.1.170", &pin, &files);
        venv.install("nvidia-nvjitlink-cu12", "12.4.127", &[], &[(NVJITLINK, nvjitlink(4))]);
        let needed = ["libc10.so", "libcudart.so.12", "libnccl.so.2", "libcusparse.so.12"];
        venv.put("torch/lib/libtorch_cuda.so", &Elf::library("libtorch_cuda.so").needed(&needed).rpath(TORCH_PATH));
        let folder = venv.beside("usr/local/cuda-12.2/lib64/libnvJitLink.so.12", &nvjitlink(2));
        if path {
            venv.set("LD_LIBRARY_PATH", &folder);
        }
        (venv.check(), folder)
    };
    let (findings, folder) = job(false, true);
    let fix = format!("take {folder} out of LD_LIBRARY_PATH");
    let said = [
        "nvJitLink 12.2 is loaded and lacks __nvJitLinkComplete_12_4, which nvidia/cusparse/lib/libcusparse.so.12 needs",
        "`import torch` fails",
        "found by LD_LIBRARY_PATH",
        fix.as_str(),
    ];
    assert_error(the_problem(&findings, "nvjitlink-mismatch"), &format!("{folder}/libnvJitLink.so.12"), &said);
    assert_healthy(&job(false, false).0);
    // DT_RPATH comes first.
    assert_healthy(&job(true, true).0);
}

/// The libcupti of a toolkit that is installed beside lacks what torch asks of its own.
#[test]
fn ld_04_cupti_local_toolkit() {
    let job = |own_first: bool| {
        let mut venv = torch("2.8.0", 12080).venv();
        let asks = ["cuptiActivityEnableDriverApi@libcupti.so.12/libcupti.so.12"];
        let cpu = Elf::library("libtorch_cpu.so").needed(&["libc10.so", "libcupti.so.12"]).asks(&asks);
        let path = format!("{}:$ORIGIN/../../nvidia/cuda_cupti/lib", super::torch::PATH);
        venv.put("torch/lib/libtorch_cpu.so", &if own_first { cpu.rpath(&path) } else { cpu.runpath(&path) });
        let cupti = Elf::library("libcupti.so.12");
        let own = cupti.clone().defines(&["cuptiActivityEnableDriverApi@@libcupti.so.12"]);
        let files = [("nvidia/cuda_cupti/lib/libcupti.so.12", own)];
        venv.install("nvidia-cuda-cupti-cu12", "12.8.90", &[], &files);
        let older = cupti.defines(&["cuptiGetVersion@@libcupti.so.12"]);
        let folder = venv.beside("usr/local/cuda-12.4/extras/CUPTI/lib64/libcupti.so.12", &older);
        venv.set("LD_LIBRARY_PATH", &folder);
        (venv.check(), folder)
    };
    let (findings, folder) = job(false);
    let taken = format!("libcupti.so.12 is taken from {folder} by LD_LIBRARY_PATH, not from the environment");
    let fix = format!("take {folder} out of LD_LIBRARY_PATH");
    let said = [
        taken.as_str(),
        "`import torch` fails",
        "undefined symbol: cuptiActivityEnableDriverApi",
        "nvidia/cuda_cupti/lib/libcupti.so.12",
        fix.as_str(),
    ];
    assert_error(the_problem(&findings, "shadowed-library"), &format!("{folder}/libcupti.so.12"), &said);
    // As torch's wheels have it.
    assert_healthy(&job(true).0);
}

/// torch goes where libraries for one processor go, what it pins where others go; its DT_RPATH leads to the wrong one.
#[test]
fn ld_05_lib_vs_lib64_site_packages() {
    let image_with = |torch: Torch, one: bool| {
        let image = Image::debian();
        let pinned = image.path("usr/local/lib/python3.11/site-packages");
        let site = if one { pinned.clone() } else { image.path("usr/local/lib64/python3.11/site-packages") };
        torch.install(&site, &pinned);
        // The rest of what torch preloads, as the packages for CUDA 12.4 have it.
        let parts = [
            ("cublas", "libcublas.so.12"),
            ("cuda_nvrtc", "libnvrtc.so.12"),
            ("cuda_cupti", "libcupti.so.12"),
            ("cufft", "libcufft.so.11"),
            ("curand", "libcurand.so.10"),
            ("nvjitlink", "libnvJitLink.so.12"),
            ("cusparse", "libcusparse.so.12"),
            ("cusolver", "libcusolver.so.11"),
            ("nvtx", "libnvToolsExt.so.1"),
        ];
        for (part, name) in parts {
            let path = format!("nvidia/{part}/lib/{name}");
            install(&pinned, &format!("nvidia-{part}-cu12"), "12.4.127", &[], &[(&path, Elf::library(name))]);
        }
        let builtins = "nvidia/cuda_nvrtc/lib/libnvrtc-builtins.so.12.4";
        Elf::library("libnvrtc-builtins.so.12.4").write(&pinned.join(builtins));
        image.put("usr/bin/python3.11", &Elf::program().defines(&["PyModule_Create2"]));
        image.ask(&Question::default())
    };
    let torch_2_5 = || torch("2.5.0", 12040).cudnn([9, 1, 0]);
    let findings = image_with(torch_2_5(), false);
    let all = problems(&findings);
    assert!(!all.is_empty() && all.iter().all(|one| one.code == "unresolved-needed"), "{all:#?}");
    let runtime = all.iter().find(|one| one.message.starts_with("libcudart.so.12 is not found")).expect("the runtime");
    let there = "lib/python3.11/site-packages/nvidia/cuda_runtime/lib/libcudart.so.12 is there, where the loader does not \
                 look for it";
    assert!(words(runtime).contains(there), "{runtime:#?}");
    assert!(words(runtime).contains("lib64/python3.11/site-packages/torch/lib/../../nvidia/cuda_runtime/lib"));
    // In one folder; and torch 2.4.1, which finds its libraries itself after the loader did not.
    assert_healthy(&image_with(torch_2_5(), true));
    assert_healthy(&image_with(torch("2.4.1", 12040).cudnn([9, 1, 0]), false));
}

#[test]
fn a_healthy_torch_is_healthy() {
    for (version, cuda) in [("1.13.1", 11070), ("2.0.1", 11070), ("2.4.1", 12040), ("2.8.0", 12080), ("2.15.0", 13020)]
    {
        let findings = torch(version, cuda).cudnn([9, 1, 0]).venv().check();
        assert!(findings.findings.is_empty(), "{version}: {:#?}", findings.findings);
    }
    assert_healthy(&Venv::with_torch().check());
}
