//! GPUs and the code that libraries have for them.

use gpulock::python::Platform;

use super::image::Image;
use super::torch::{Torch, torch};
use super::{asking, assert_healthy, build, conflict, on, solved};
use crate::check::gpu_code::{code, ptx, sass};
use crate::check::venv::{Question, assert_error, module, the_problem};
use crate::link::fixture::Elf;

const MISSING: &str = "gpu-code-missing";
const KERNELS: &str = "torch/lib/libtorch_cuda.so";

fn built_for(version: &'static str, cuda: u32, architectures: &[u32]) -> Torch {
    torch(version, cuda).code(&architectures.iter().map(|one| sass(*one)).collect::<Vec<_>>())
}

/// Some kernels have PTX of compute_37, and most have none.
#[test]
fn arch_01_blackwell_old_wheel() {
    let list: Vec<Vec<u8>> = [37, 50, 60, 61, 70, 75, 80, 86, 90].map(sass).to_vec();
    let with_ptx = [list.clone(), vec![ptx(37, (7, 8))]].concat();
    let venv = torch("2.0.1", 11080).venv();
    let kernels = Elf::library("libtorch_cuda.so").section(".nv_fatbin", code(&[(8, &list), (2, &with_ptx)]));
    venv.put(KERNELS, &kernels);
    let findings = on(&venv, "RTX 5060 Ti", "");
    let said = [
        "torch 2.0.1 has no code for RTX 5060 Ti (sm_120)",
        "compute_37",
        "2 of 10 containers serve it",
        "2.7.0+cu128",
    ];
    assert_error(the_problem(&findings, MISSING), KERNELS, &said);
    let blackwell = built_for("2.7.0", 12080, &[75, 80, 86, 90, 100, 120]).venv();
    assert_healthy(&on(&blackwell, "RTX 5060 Ti", "570.124.06"));
    // The card's first driver.
    the_problem(&on(&blackwell, "RTX 5060 Ti", "560.35.05"), "driver-too-old");

    let (_, changes) = conflict(&asking("RTX 5060 Ti", "", |r| r.stack.torch = Some("==2.0.1".parse().unwrap())));
    assert_eq!(changes, ["torch >=2.7 -> torch 2.15.0, cu132"]);
}

/// torch has the card, a wheel on top of it does not.
#[test]
fn arch_02_torch_ok_extension_not() {
    let with_vllm = |architectures: &[Vec<u8>]| {
        let venv = built_for("2.7.0", 12080, &[75, 80, 86, 90, 100, 120]).venv();
        let kernels = module("_C").needed(&["libc10.so"]).section(".nv_fatbin", code(&[(10, architectures)]));
        venv.install("vllm", "0.9.2", &["torch==2.7.0"], &[("vllm/_C.abi3.so", kernels)]);
        on(&venv, "RTX 5090", "570.124.06")
    };
    let findings = with_vllm(&[sass(70), sass(75), sass(80), sass(86), sass(89), sass(90), sass(100)]);
    let said = ["vllm/_C.abi3.so of vllm 0.9.2 has no code for RTX 5090 (sm_120)", "sm_90, sm_100"];
    assert_error(the_problem(&findings, MISSING), "vllm/_C.abi3.so", &said);
    assert_healthy(&with_vllm(&[sass(80), sass(90), sass(100), sass(120)]));
}

#[test]
fn arch_04_volta_2_11() {
    let driver = "570.124.06";
    let findings = on(&built_for("2.11.0", 12080, &[75, 80, 86, 90, 100, 120]).venv(), "V100", driver);
    let said = ["torch 2.11.0 has no code for V100 (sm_70)", "such as 2.11.0+cu126"];
    assert_error(the_problem(&findings, MISSING), KERNELS, &said);
    let older = built_for("2.10.0", 12080, &[70, 75, 80, 86, 90, 100, 120]);
    assert_healthy(&on(&older.venv(), "V100", driver));

    let request = asking("V100", driver, |r| r.stack.torch = Some("==2.11.0".parse().unwrap()));
    assert_eq!(build(&request), "2.11.0+cu126");
    let mut other = request.clone();
    other.stack.variant = Some("cu128".into());
    let (_, changes) = conflict(&other);
    assert_eq!(changes, ["variant = \"cu126\" -> torch 2.11.0, cu126", "torch <2.11 -> torch 2.10.0, cu128"]);
}

/// sm_86 runs on 8.9; sm_89 is in no list.
#[test]
fn arch_05_ada_is_not_missing() {
    let venv = built_for("2.6.0", 12040, &[50, 60, 70, 75, 80, 86, 90]).venv();
    for gpu in ["RTX 4060", "RTX 4070 Ti", "RTX 4090"] {
        let findings = on(&venv, gpu, "550.54.15");
        assert!(findings.findings.is_empty(), "{:#?}", findings.findings);
    }
    let solution = solved(&asking("RTX 4090", "", |r| r.stack.torch = Some("==2.6.0".parse().unwrap())));
    assert_eq!(solution.gpus[0].code.map(|code| code.to_string()).as_deref(), Some("sm_86"));
}

/// What is built for servers does not run on Jetson, though the major is the same, before CUDA 13.2.
#[test]
fn arch_07_orin_is_not_ampere_desktop() {
    let with = |torch: Torch| {
        let image = Image::debian_arm();
        let site = image.venv("opt/venv");
        Torch { machine: Some(183), ..torch }.install(&site, &site);
        image.ask(&Question { gpus: &["Jetson AGX Orin"], ..Question::default() })
    };
    let findings = with(built_for("2.6.0", 12040, &[80, 90]));
    assert_error(
        the_problem(&findings, MISSING),
        KERNELS,
        &["has no code for Jetson AGX Orin (sm_87)", "sm_80, sm_90"],
    );
    assert_healthy(&with(built_for("2.6.0", 12040, &[80, 87, 90])));
    assert_healthy(&with(built_for("2.15.0", 13020, &[75, 80, 90])));

    let arm = |torch: &'static str| {
        asking("Jetson AGX Orin", "", move |r| {
            r.target.platform = Platform::LinuxAarch64;
            r.stack.torch = Some(torch.parse().unwrap());
        })
    };
    let (conflict, changes) = conflict(&arm("==2.6.0"));
    let claim = "packages for Arm servers run on Jetson AGX Orin (sm_87) from CUDA 13.2 on";
    assert!(conflict.facts.iter().any(|fact| fact.claim == claim), "{:#?}", conflict.facts);
    assert_eq!(changes, ["torch >=2.12 -> torch 2.15.0, cu132"]);
    assert_eq!(build(&arm(">=2.15")), "2.15.0+cu132");
}

/// The list of a build depends on release, CUDA and platform; and the file itself is worth more than any list.
#[test]
fn arch_11_arch_list_by_platform() {
    let asks = |torch: &'static str, cuda: &'static str, platform: Platform| {
        asking("V100", "", move |r| {
            r.target.platform = platform;
            r.stack.torch = Some(torch.parse().unwrap());
            r.stack.cuda = Some(cuda.parse().unwrap());
        })
    };
    assert_eq!(build(&asks("==2.8.0", "12.8", Platform::LinuxX86_64)), "2.8.0+cu128");
    conflict(&asks("==2.7.0", "12.8", Platform::LinuxX86_64));
    assert_eq!(build(&asks("==2.8.0", "12.9", Platform::LinuxX86_64)), "2.8.0+cu129");
    conflict(&asks("==2.8.0", "12.9", Platform::LinuxAarch64));

    // By the list of 2.8.0+cu128 there is no Pascal.
    conflict(&asking("GTX 1080 Ti", "", |r| {
        r.stack.torch = Some("==2.8.0".parse().unwrap());
        r.stack.variant = Some("cu128".into());
    }));
    assert_healthy(&on(&built_for("2.8.0", 12080, &[61, 70, 75, 80, 90]).venv(), "GTX 1080 Ti", ""));
    the_problem(&on(&built_for("2.8.0", 12080, &[70, 75, 80, 90]).venv(), "GTX 1080 Ti", ""), MISSING);
}
