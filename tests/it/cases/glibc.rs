//! The C library, and stacks that it does not make executable.

use gpulock::check::Findings;
use gpulock::diag::Severity;

use super::image::Image;
use super::torch::{Torch, torch};
use super::{asking, assert_healthy, build, conflict, problems};
use crate::check::gpu_code::{code, sass};
use crate::check::venv::{Question, Venv, assert_error, assert_finding, module, the_problem, words};
use crate::link::fixture::Elf;

const TOO_NEW: &str = "glibc-too-new";

fn on_glibc(venv: &Venv, glibc: &str) -> Findings {
    venv.ask(&Question { glibc: Some(glibc), ..Question::default() })
}

/// The tag of a wheel promises less than its files need; and only the file that is loaded counts.
#[test]
fn glibc_01_platform_tag_lies() {
    let with_bitsandbytes = |torch: Torch| {
        let venv = torch.venv();
        let library = |runtime: &str, glibc: &str| {
            Elf::default().needed(&[runtime]).versions(&[&format!("GLIBC_{glibc}/libc.so.6")])
        };
        let files = [
            ("bitsandbytes/libbitsandbytes_cpu.so", Elf::default()),
            ("bitsandbytes/libbitsandbytes_cuda118.so", library("libcudart.so.11.0", "2.14")),
            ("bitsandbytes/libbitsandbytes_cuda124.so", library("libcudart.so.12", "2.14")),
            ("bitsandbytes/libbitsandbytes_cuda126.so", library("libcudart.so.12", "2.34")),
            ("bitsandbytes/libbitsandbytes_cuda128.so", library("libcudart.so.12", "2.34")),
        ];
        venv.install("bitsandbytes", "0.45.5", &["torch<3,>=2.0", "numpy>=1.17"], &files);
        venv
    };
    let findings = on_glibc(&with_bitsandbytes(torch("2.7.0", 12060)), "2.31");
    let finding = the_problem(&findings, TOO_NEW);
    let said = ["bitsandbytes 0.45.5 needs glibc 2.34 and the machines have 2.31", "version GLIBC_2.34' not found"];
    assert_error(finding, "bitsandbytes/libbitsandbytes_cuda126.so", &said);
    assert!(!words(finding).contains("cuda128"), "never loaded: {finding:#?}");
    assert_healthy(&on_glibc(&with_bitsandbytes(torch("2.7.0", 12060)), "2.35"));
    // torch for another CUDA loads another file.
    assert_healthy(&on_glibc(&with_bitsandbytes(torch("2.6.0", 12040)), "2.31"));
    assert_healthy(&on_glibc(&with_bitsandbytes(torch("2.7.1", 11080)), "2.31"));

    // What stays closed needs no code for the GPU either.
    let venv = with_bitsandbytes(torch("2.7.0", 12080));
    let kernels = Elf::default().needed(&["libcudart.so.11.0"]).section(".nv_fatbin", code(&[(3, &[sass(80)])]));
    venv.put("bitsandbytes/libbitsandbytes_cuda118.so", &kernels);
    let findings = venv.ask(&Question { gpus: &["RTX 5090"], ..Question::default() });
    assert!(findings.findings.iter().all(|one| one.code == "library-modified"), "{:#?}", findings.findings);

    let venv = torch("2.10.0+cu129", 12090).venv();
    let core = module("_C").needed(&["libc10.so"]).asks(&["dlsym@GLIBC_2.34/libc.so.6"]);
    venv.install("vllm", "0.20.0+cu129", &["torch==2.10.0"], &[("vllm/_C.abi3.so", core.needed(&["libc.so.6"]))]);
    let said = ["vllm 0.20.0+cu129 needs glibc 2.34 and the machines have 2.31"];
    assert_error(the_problem(&on_glibc(&venv, "2.31"), TOO_NEW), "vllm/_C.abi3.so", &said);
    assert_healthy(&on_glibc(&venv, "2.34"));
}

#[test]
fn glibc_03_torch_floor_2_28() {
    let on = |glibc: &'static str, torch: &'static str| {
        asking("A100", "", move |r| {
            r.target.glibc = Some(glibc.parse().unwrap());
            r.stack.python = crate::resolve::python("3.11");
            r.stack.torch = Some(torch.parse().unwrap());
        })
    };
    let (conflict, changes) = conflict(&on("2.27", ">=2.7"));
    assert!(conflict.facts.iter().any(|fact| fact.claim == "torch 2.15.0+cu132 needs glibc 2.28"));
    assert_eq!(changes, ["glibc >=2.28 -> torch 2.15.0, cu132", "torch <2.7 -> torch 2.6.0, cu124"]);
    assert_eq!(build(&on("2.28", "==2.7.0")), "2.7.0+cu126");
    let mut cu118 = on("2.27", ">=2.5");
    cu118.stack.variant = Some("cu118".into());
    assert_eq!(build(&cu118), "2.6.0+cu118");
}

/// From glibc 2.41 on dlopen refuses what glibc before made executable silently.
#[test]
fn exec_01_execstack_glibc_2_41() {
    let with_ctranslate2 = |version: &str, stack: u32| {
        let venv = Venv::empty();
        let name = format!("libctranslate2-bc15bf3f.so.{version}");
        let path = format!("ctranslate2.libs/{name}");
        let extension = module("_ext").needed(&[&name]).rpath("$ORIGIN/../ctranslate2.libs");
        let files = [
            ("ctranslate2/_ext.cpython-311-x86_64-linux-gnu.so", extension),
            (&path, Elf { stack: Some(stack), ..Elf::library(&name) }),
        ];
        venv.install("ctranslate2", version, &["numpy"], &files);
        venv
    };
    let old = with_ctranslate2("4.5.0", 7);
    let subject = "ctranslate2.libs/libctranslate2-bc15bf3f.so.4.5.0";
    let said = ["PT_GNU_STACK is executable", "glibc 2.41 refuses to load it", "a newer release of ctranslate2"];
    assert_error(the_problem(&on_glibc(&old, "2.41"), "executable-stack"), subject, &said);
    assert_finding(the_problem(&on_glibc(&old, "2.40"), "executable-stack"), Severity::Warning, subject, &[]);
    assert_healthy(&on_glibc(&with_ctranslate2("4.6.0", 6), "2.41"));
}

/// No CUDA library is built for musl.
#[test]
fn musl_01_alpine() {
    let in_image = |image: Image| {
        let site = image.venv("app/.venv");
        torch("2.5.1", 12040).install(&site, &site);
        image.ask(&Question::default())
    };
    let findings = in_image(Image::alpine());
    let finding = the_problem(&findings, TOO_NEW);
    assert!(finding.message.contains("the C library here is musl: no CUDA library is built for it"), "{finding:#?}");
    assert!(words(finding).contains("use a base with glibc"));
    assert_healthy(&in_image(Image::debian()));
    // Alpine without a GPU stack is nobody's business.
    let image = Image::alpine();
    image.venv("app/.venv");
    assert!(problems(&image.ask(&Question::default())).is_empty());
}
