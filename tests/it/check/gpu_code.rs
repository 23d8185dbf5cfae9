//! GPU code that a GPU of the machines lacks, or that its driver has to compile.

use gpulock::check::Findings;
use gpulock::diag::Severity;

use super::venv::{
    Question, TORCH_PATH, Venv, assert_error, assert_finding, assert_quiet, the_finding, the_problem, torch_cuda,
};
use crate::elf::fatbin::{container, piece};
use crate::link::fixture::Elf;

const TORCH_CUDA: &str = "torch/lib/libtorch_cuda.so";

/// Machine code.
pub fn sass(architecture: u32) -> Vec<u8> {
    piece(2, architecture, 0x11, (1, 7), 64)
}

/// PTX of an ISA.
pub fn ptx(architecture: u32, isa: (u16, u16)) -> Vec<u8> {
    piece(1, architecture, 0x11, isa, 64)
}

/// Containers, each so many times.
pub fn code(containers: &[(usize, &[Vec<u8>])]) -> Vec<u8> {
    containers.iter().flat_map(|(count, pieces)| container(pieces).repeat(*count)).collect()
}

fn torch_with(containers: &[(usize, &[Vec<u8>])]) -> Venv {
    let venv = Venv::with_torch();
    venv.put(TORCH_CUDA, &torch_cuda().rpath(TORCH_PATH).section(".nv_fatbin", code(containers)));
    venv
}

/// A library of NVIDIA's beside a torch that is built for all.
fn library_with(name: &str, containers: &[(usize, &[Vec<u8>])]) -> Venv {
    let venv = torch_with(&[(10, &[sass(80), sass(90), sass(120)])]);
    let path = format!("nvidia/blend/lib/{name}");
    venv.install(
        "nvidia-blend-cu12",
        "1.0",
        &[],
        &[(&path, Elf::library(name).section(".nv_fatbin", code(containers)))],
    );
    venv
}

fn on(venv: &Venv, gpu: &str, driver: Option<&str>) -> Findings {
    venv.ask(&Question { gpus: &[gpu], driver, ..Question::default() })
}

mod missing {
    use super::*;

    const CODE: &str = "gpu-code-missing";

    #[test]
    fn fires() {
        let findings = on(&torch_with(&[(10, &[sass(80), sass(90)])]), "RTX 5090", None);
        let said = [
            "torch 2.8.0 has no code for RTX 5090 (sm_120)",
            "no kernel image is available",
            "sm_80, sm_90",
            "RTX 5090 has compute capability 12.0",
            "gpulock resolve --dry-run --gpu \"RTX 5090\" --python 3.11 --torch",
        ];
        assert_error(the_problem(&findings, CODE), TORCH_CUDA, &said);
    }

    #[test]
    fn stays_quiet() {
        assert_quiet(&on(&torch_with(&[(10, &[sass(80), sass(90), sass(120)])]), "RTX 5090", None), CODE);
        // A cubin of the same major runs on later minors.
        assert_quiet(&on(&torch_with(&[(10, &[sass(80)])]), "sm_86", None), CODE);
    }

    /// A few kernels are written for one architecture; with more of them a part is left out, and with most of them missing
    /// the library was not built for the GPU.
    #[test]
    fn nine_of_ten_containers_serve() {
        let (served, other) = ([sass(90), sass(120)], [sass(90)]);
        assert_quiet(&on(&torch_with(&[(9, &served), (1, &other)]), "RTX 5090", None), CODE);
        let findings = on(&torch_with(&[(8, &served), (2, &other)]), "RTX 5090", None);
        let said = ["serves RTX 5090 (sm_120) in part: 8 of 10 containers"];
        assert_finding(the_finding(&findings, CODE), Severity::Note, TORCH_CUDA, &said);
        let findings = on(&torch_with(&[(4, &served), (6, &other)]), "RTX 5090", None);
        assert_error(
            the_problem(&findings, CODE),
            TORCH_CUDA,
            &["has no code for RTX 5090", "4 of 10 containers serve it"],
        );
    }

    /// Where each architecture has containers of its own, one that serves is enough.
    #[test]
    fn a_container_for_each_architecture() {
        let containers: [(usize, &[Vec<u8>]); 3] = [(5, &[sass(80)]), (4, &[sass(90)]), (1, &[sass(120)])];
        assert_quiet(&on(&library_with("libcublasLt.so.12", &containers), "RTX 5090", None), CODE);
        let findings = on(&library_with("libcublasLt.so.12", &containers[..2]), "RTX 5090", None);
        let said = ["libcublasLt.so.12", "nvidia-blend-cu12 1.0", "sm_80, sm_90"];
        assert_error(the_problem(&findings, CODE), "nvidia/blend/lib/libcublasLt.so.12", &said);
        // The same containers in a library that keeps the whole list in each.
        let findings = on(&library_with("libblend.so.12", &containers), "RTX 5090", None);
        assert_error(the_problem(&findings, CODE), "nvidia/blend/lib/libblend.so.12", &["1 of 10 containers serve it"]);
    }

    /// The one container that the CUDA runtime leaves in a library holds no kernel of the library.
    #[test]
    fn a_stub_is_no_code() {
        assert_quiet(&on(&library_with("libcufftw.so.11", &[(1, &[sass(52)])]), "RTX 5090", None), CODE);
        let findings = on(&library_with("libcufftw.so.11", &[(2, &[sass(52)])]), "RTX 5090", None);
        assert_error(the_problem(&findings, CODE), "nvidia/blend/lib/libcufftw.so.11", &["sm_52"]);
    }

    /// A package with machine code for a GPU is built for it; another library of it may be for other GPUs. Torch without
    /// its kernels is not.
    #[test]
    fn a_part_for_other_gpus_is_a_note() {
        let with = |main: u32, part: u32| {
            let venv = torch_with(&[(10, &[sass(80), sass(90)])]);
            let library =
                |soname, count, arch| Elf::library(soname).section(".nv_fatbin", code(&[(count, &[sass(arch)])]));
            let files = [
                ("ext/libext.so", library("libext.so", 9, main)),
                ("ext/libext_hopper.so", library("libext_hopper.so", 3, part)),
            ];
            venv.install("ext", "1.0", &[], &files.each_ref().map(|(path, elf)| (*path, elf.clone())));
            on(&venv, "A100", None)
        };
        let said = ["has no code for A100 (sm_80), which the package has in other libraries"];
        assert_finding(the_finding(&with(80, 90), CODE), Severity::Note, "ext/libext_hopper.so", &said);
        assert_finding(the_finding(&with(90, 80), CODE), Severity::Note, "ext/libext.so", &said);
        let said = ["ext 1.0 has no code for A100", "libext_hopper.so"];
        assert_error(the_problem(&with(90, 90), CODE), "ext/libext.so", &said);

        let venv = Venv::empty();
        let files = ["libtorch_cuda", "libtorch_nvshmem"].map(|name| format!("torch/lib/{name}.so"));
        let library = |arch| Elf::library("libtorch.so").section(".nv_fatbin", code(&[(3, &[sass(arch)])]));
        venv.install("torch", "2.8.0", &[], &[(&files[0], library(90)), (&files[1], library(80))]);
        assert_error(the_problem(&on(&venv, "A100", None), CODE), TORCH_CUDA, &["torch 2.8.0 has no code for A100"]);
    }

    /// cuSPARSELt is of use from compute capability 8.0 on.
    #[test]
    fn what_a_gpu_does_without_is_a_note() {
        let venv = torch_with(&[(10, &[sass(75), sass(80)])]);
        let library = Elf::library("libcusparseLt.so.0").section(".nv_fatbin", code(&[(2, &[sass(80)])]));
        venv.install("nvidia-cusparselt-cu12", "0.7.1", &[], &[("nvidia/cusparselt/lib/libcusparseLt.so.0", library)]);
        let findings = on(&venv, "T4", None);
        let said = ["has no code for T4 (sm_75), which does without it", "structured sparsity"];
        let finding = the_finding(&findings, CODE);
        assert_finding(finding, Severity::Note, "nvidia/cusparselt/lib/libcusparseLt.so.0", &said);
    }
}

mod jit {
    use super::*;

    const CODE: &str = "gpu-code-jit";

    #[test]
    fn fires() {
        let venv = torch_with(&[(10, &[sass(80), ptx(80, (8, 7))])]);
        let findings = on(&venv, "RTX 5090", Some("570.124.06"));
        let said = ["serves RTX 5090 (sm_120) by PTX alone in 10 of 10 containers", "sm_80, compute_80"];
        assert_finding(the_finding(&findings, CODE), Severity::Note, TORCH_CUDA, &said);
    }

    #[test]
    fn stays_quiet() {
        let venv = torch_with(&[(10, &[sass(80), sass(120), ptx(80, (8, 7))])]);
        assert_quiet(&on(&venv, "RTX 5090", Some("570.124.06")), CODE);
    }
}

mod ptx_jit_unavailable {
    use super::*;

    const CODE: &str = "ptx-jit-unavailable";

    #[test]
    fn fires() {
        let findings = on(&torch_with(&[(10, &[sass(80), ptx(80, (8, 7))])]), "H100", Some("560.35.05"));
        let said = [
            "serves H100 (sm_90) by PTX alone, and driver 560.35.05 cannot compile PTX 8.7",
            "driver 560.35.05 compiles PTX up to 8.5",
            "install driver 570",
        ];
        assert_error(the_problem(&findings, CODE), TORCH_CUDA, &said);
    }

    #[test]
    fn stays_quiet() {
        // The newest PTX that this driver compiles.
        assert_quiet(&on(&torch_with(&[(10, &[sass(80), ptx(80, (8, 5))])]), "H100", Some("560.35.05")), CODE);
        // Machine code serves: nobody asks for the PTX.
        assert_quiet(&on(&torch_with(&[(10, &[sass(90), ptx(90, (8, 7))])]), "H100", Some("560.35.05")), CODE);
    }
}
