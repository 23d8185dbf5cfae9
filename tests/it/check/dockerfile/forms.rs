//! The same fault in every form in which people write it, and files that no build would take.

use std::time::{Duration, Instant};

use gpulock::check::dockerfile::{Context, judge};
use gpulock::diag::{Diagnostic, Severity, SourceText};
use gpulock::matrix::Matrix;

use super::{findings, line};

const BASE: &str = "FROM nvidia/cuda:11.8.0-runtime-ubuntu22.04\n";

/// Codes and lines of what is found in a file on [`BASE`], beside which is a requirements file.
fn found(text: &str) -> Vec<(&'static str, usize)> {
    let requirements = "--extra-index-url https://pypi.org/simple  # a comment\n# torch==1.13.1\n\nnumpy==2.1.0 \\\n    \
                        --hash=sha256:00\ntorch==2.8.0 ; python_version > \"3\" \\\n    --hash=sha256:11 \\\n    --hash=sha256:22\n";
    let nested = "numpy\n-r gpu.txt\n-r ../other.txt\n-r base/torch.txt\n";
    let read = |path: &str| match path {
        "/tmp/requirements.txt" | "nested/base/torch.txt" => Some(requirements.to_owned()),
        "nested/gpu.txt" => Some(nested.to_owned()),
        "nested/../other.txt" => Some("scipy\n".to_owned()),
        _ => None,
    };
    let context = Context { matrix: &Matrix::embedded(), lock: None, read: &read, variables: Default::default() };
    let text = format!("{BASE}{text}");
    let found = judge(SourceText::new("Dockerfile", &text), &context).unwrap();
    found.iter().map(|one| (one.code, line(one))).collect()
}

#[test]
fn torch_is_found_however_it_is_installed() {
    for run in [
        "pip install torch==2.8.0",
        "pip --no-cache-dir --cache-dir /x install -U 'torch == 2.8.0'",
        "pip install torch===2.8.0 # it's the newest",
        "pip install -r /tmp/requirements.txt",
        "pip install --requirement=/tmp/requirements.txt",
        "pip install https://files.example/torch-2.8.0%2Bcu128-cp311-cp311-manylinux_2_28_x86_64.whl#sha256=00",
        "--mount=type=cache,target=/x uv pip install --system torch==2.8.0",
        "sudo -H /opt/venv/bin/python3 -m pip install torch==2.8.0",
        "poetry run pip install torch==2.8.0",
        "conda run -n x pip install torch==2.8.0",
        "bash -lc \"set -e; pip install torch==2.8.0\"",
        "[\"/bin/bash\", \"-c\", \"pip install torch==2.8.0\"]",
        "[\"pip\", \"install\", \"torch==2.8.0\"]",
        "(cd /x && pip install torch==2.8.0)",
        "if [ -f x ]; then pip install torch==2.8.0; fi",
        "V=2.8.0 && pip install torch==$V",
        "set -e; deps=' \\\n  torch==2.8.0 \\\n  numpy \\\n ' && pip install $deps",
        "if [ -z \"\" ]; then export V=2.8.0; fi; pip install torch==${V}",
        "pip install -r nested/gpu.txt",
        "[ -f x ] && pip install 'numpy>=1,<3' torch==2.8.0",
        "echo it\\'s $((1<<3)) && pip install torch==2.8.0",
        "echo a \\\n  # don't\n\n && pip install \\  \n    torch==2.8.0",
        "<<EOF\nset -e\npip install torch==2.8.0\nEOF",
        "cat <<A >/x && cat <<-'B' >/y\nFROM ubuntu:latest\nB\nA\nFROM ubuntu:latest\n\tB\nRUN pip install torch==2.8.0",
    ] {
        let text = format!("RUN {run}\nENV NCCL_TIMEOUT=1\n");
        let last = text.lines().count() + 1;
        let wanted = [("dockerfile-base-cuda", 1), ("env-variable-unknown", last)];
        assert_eq!(found(&text), wanted, "{run}");
        assert_eq!(found(&format!("ONBUILD {}", text.replace("\nENV", "\nONBUILD ENV"))), wanted, "ONBUILD {run}");
    }
}

#[test]
fn a_directive_says_how_lines_go_on() {
    let text =
        format!("# syntax=docker/dockerfile:1\n# escape=`\n{BASE}RUN dir C:\\ && `\n  pip install torch==2.8.0\n");
    assert_eq!(findings(&text, None).iter().map(line).collect::<Vec<_>>(), [3]);
}

/// The builder's platform is most often the one that is built for, and both are x86-64 unless somebody says otherwise.
#[test]
fn a_platform_may_be_the_builders() {
    let of = |platform: &str| {
        let text = format!(
            "FROM --platform={platform} nvidia/cuda:11.8.0-runtime-ubuntu22.04\nRUN pip install torch==2.8.0\n"
        );
        findings(&text, None).iter().map(line).collect::<Vec<_>>()
    };
    for same in ["$BUILDPLATFORM", "${TARGETPLATFORM}", "linux/amd64"] {
        assert_eq!(of(same), [1], "{same}");
    }
    for other in ["linux/${TARGETARCH}", "linux/arm/v7", "$OTHER"] {
        assert_eq!(of(other), [0; 0], "{other}");
    }
}

/// Where a condition chooses between builds, the one of the base is meant.
#[test]
fn what_a_condition_chooses_is_not_said() {
    let other = "pip install torch==2.7.0 --index-url https://download.pytorch.org/whl/cu118";
    assert_eq!(found(&format!("RUN if x; then pip install torch==2.8.0; else {other}; fi\n")), []);
    for sound in [
        "UV_TORCH_BACKEND=cu118 uv pip install torch==2.7.0",
        "export PIP_INDEX_URL=https://x.invalid && pip install torch==2.8.0",
        "pip install torch==2.8.0+cpu -f https://x.invalid",
        "pip install -r other.txt",
        "pip uninstall -y torch==2.8.0",
        "V=12.8.1; if [ \"$V\" = 11.8.0 ]; then pip install torch==2.8.0; fi",
        "if [ -n \"\" ]; then pip install torch==2.8.0; else pip install torch; fi",
        "V=2.8.0; V=$(latest); pip install torch==$V",
        "pip download torch==2.8.0; pip install --dry-run torch==2.8.0",
    ] {
        assert_eq!(found(&format!("RUN {sound}\n")), [], "{sound}");
    }
}

#[test]
fn files_that_no_build_has_take_no_time() {
    let many = |text: &str| text.repeat(20_000);
    let numbered = |text: &str, count: usize| (0..count).map(|n| text.replace('N', &n.to_string())).collect::<String>();
    let torch = "RUN pip install torch==2.8.0\n";
    let doubling = format!(
        "{BASE}ENV A0=xxxxxxxxxx\n{}",
        (0..12).map(|n| format!("ENV A{}=$A{n}$A{n}\n", n + 1)).collect::<String>()
    );
    let start = Instant::now();
    for text in [
        format!("{}{BASE}{torch}", many("ARG A=${A}$A\n")),
        format!("{BASE}{}{torch}", many("ARG CUDA_VERSION=12.8.1\n")),
        format!("{BASE}RUN CU=${{CUDA//./}} http {}\n", many("cu$CU ")),
        format!("{}{BASE}{}", many("# a=b\n"), many("RUN a\n")),
        format!("{BASE}RUN {}\n{}", many("<<A "), many("A\n")),
        format!("{BASE}RUN {}{}{}", many("(\\ "), many("\"'"), many("#\\\n")),
        // Values that double at each step, held by many variables and by many words.
        format!("{doubling}{}{}{torch}", numbered("ENV BN=$A12\n", 5000), many("RUN a\n")),
        format!("{doubling}RUN pip install {}\n", many("$A12 ")),
        format!("{BASE}ENV {}\n{}", numbered("AN=1 ", 5000), "RUN A1=2; export A2=3; pip install $A1\n".repeat(2000)),
    ] {
        findings(&text, None);
    }
    let stages =
        format!("FROM python:3.11 AS s0\n{}", numbered("FROM sN AS sN\nENV A=N\nRUN pip install torch==2.8.0\n", 5000));
    let all: Vec<Diagnostic> = findings(&stages, None);
    assert_eq!((all.len(), all[0].code, all[0].severity), (1, "file-unchecked", Severity::Note));
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}
