//! A torch without CUDA where a GPU was promised.

use gpulock::lock::Lock;

use super::abi::conda;
use super::torch::torch;
use super::{assert_healthy, problems};
use crate::check::venv::{Question, Venv, ask, assert_error, c10, module, words};
use crate::link::fixture::Elf;

const CODE: &str = "cpu-build-installed";

/// A lock of torch and filelock; the library that it lists is there in this size.
fn lock(torch: &str) -> Lock {
    let (release, variant) = torch.split_once('+').unwrap();
    let size = c10().bytes().len();
    let text = crate::lock::SAMPLE.replace(", size = 1 }", &format!(", size = {size} }}"));
    let (first, rest) = text.split_once("[[target]]\nname = \"edge\"").unwrap();
    let (_, wheels) = rest.split_once("[wheel]").unwrap();
    let text = format!("{first}[wheel]{wheels}").replace("torch = \"2.8.0\"", &format!("torch = \"{release}\""));
    let text = text.replace("\"cu128\"", &format!("\"{variant}\"")).replace("torch-2.8.0-", &format!("torch-{torch}-"));
    let text =
        text.replace("name = \"torch\", version = \"2.8.0\"", &format!("name = \"torch\", version = \"{torch}\""));
    Lock::parse(&text, "gpulock.lock").unwrap()
}

fn cpu_torch(version: &str) -> Venv {
    let venv = Venv::empty();
    let files = [
        ("torch/lib/libtorch_global_deps.so", Elf::library("libtorch_global_deps.so")),
        ("torch/lib/libc10.so", c10()),
        ("torch/lib/libtorch_cpu.so", Elf::library("libtorch_cpu.so").needed(&["libc10.so"]).rpath("$ORIGIN")),
        ("torch/_C.cpython-311-x86_64-linux-gnu.so", module("_C").needed(&["libtorch_cpu.so"]).rpath("$ORIGIN/lib")),
    ];
    venv.install("torch", version, &[], &files);
    venv.install("filelock", "3.20.0", &[], &[]);
    venv
}

fn against(venv: &Venv, lock: &Lock, gpu: &str) -> gpulock::check::Findings {
    venv.ask(&Question { gpus: &[gpu], lock: Some(lock), ..Question::default() })
}

/// What a tool put in place of the CUDA build.
fn assert_said(findings: &gpulock::check::Findings, said: &[&str]) {
    let codes: Vec<&str> = problems(findings).iter().map(|one| one.code).collect();
    assert_eq!(codes, [CODE, "lock-drift"], "{:#?}", problems(findings));
    assert_error(problems(findings)[0], "torch", said);
}

#[test]
fn cpu_01_uv_run_resets() {
    let findings = against(&cpu_torch("2.8.0+cpu"), &lock("2.8.0+cu128"), "RTX 5090");
    let said = [
        "torch 2.8.0+cpu is a CPU build: `torch.cuda.is_available()` is false on RTX 5090",
        "install what the lock says",
        "--force-reinstall --no-deps",
    ];
    assert_said(&findings, &said);
    assert!(words(problems(&findings)[1]).contains("2.8.0+cpu is installed; the lock has 2.8.0+cu128"));
    let right = torch("2.8.0+cu128", 12080).venv();
    right.install("filelock", "3.20.0", &[], &[]);
    assert_healthy(&against(&right, &lock("2.8.0+cu128"), "RTX 5090"));
}

/// By its build string and by its files: conda's packages have names of their own.
#[test]
fn cpu_03_conda_solver_picks_cpu() {
    let with_build = |build: &str| {
        let prefix = tempfile::tempdir().unwrap();
        conda(prefix.path(), &torch("2.6.0", 12060), build);
        let site = prefix.path().join("lib/python3.11/site-packages");
        let question = Question { gpus: &["A100"], ..Question::default() };
        ask(prefix.path(), &Default::default(), &site, &question)
    };
    let findings = with_build("cpu_generic_py311h1234567_0");
    let said = [
        "torch 2.6.0 is a CPU build: `torch.cuda.is_available()` is false on A100",
        "build cpu_generic_py311h1234567_0",
        "conda install 'pytorch=*=cuda*'",
    ];
    let finding = crate::check::venv::the_problem(&findings, CODE);
    assert_error(finding, "torch", &said);
    assert_healthy(&with_build("cuda126_py311h1234567_200"));
}

/// A CPU build satisfies the version that a CUDA build is asked by.
#[test]
fn cpu_05_already_satisfied() {
    let findings = against(&cpu_torch("2.1.0+cpu"), &lock("2.1.0+cu121"), "RTX 4090");
    let said = ["torch 2.1.0+cpu is a CPU build", "a CPU build satisfies `torch==2.1.0` too"];
    assert_said(&findings, &said);
    let right = torch("2.1.0+cu121", 12010).venv();
    right.install("filelock", "3.20.0", &[], &[]);
    assert_healthy(&against(&right, &lock("2.1.0+cu121"), "RTX 4090"));
}
