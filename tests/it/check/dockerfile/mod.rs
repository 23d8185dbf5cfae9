//! Dockerfiles of public kinds, with faults and without, each held to what is said of it and at which line.

mod forms;
mod judged;

use gpulock::check::dockerfile::{ALL, Context, judge};
use gpulock::diag::{Diagnostic, Evidence, Severity, SourceText};
use gpulock::lock::{Lock, Target};
use gpulock::matrix::Matrix;
use gpulock::render::dockerfile::{Template, render};

use crate::lock::SAMPLE;

/// What is found: the code, its line and what else is said.
type Said = (&'static str, usize, &'static str);

/// Each file with what is found.
const FAULTY: [(&str, &str, &[Said]); 15] = [
    (
        "torch-base",
        include_str!("faulty/torch-base.Dockerfile"),
        &[
            ("dockerfile-base-torch", 1, "the base has torch 2.3.0, and pip installs torch ==2.8.0 besides"),
            ("dockerfile-base-torch", 3, "the base has NVIDIA's own build of torch"),
            ("dockerfile-base-torch", 5, "pip installs torch ==2.3.0+cu118 besides"),
        ],
    ),
    (
        "no-index",
        include_str!("faulty/no-index.Dockerfile"),
        &[
            ("dockerfile-image-deleted", 1, "nvidia/cuda has no tag `latest` any more"),
            ("dockerfile-image-deleted", 4, "nvidia/cuda has no tag `latest` any more"),
            ("dockerfile-index-unknown", 2, "no build `cu125`"),
            ("dockerfile-index-unknown", 3, "no build `cu127`"),
            ("dockerfile-index-unknown", 5, "no build `cu122`"),
        ],
    ),
    (
        "computed-cudnn",
        include_str!("faulty/computed-cudnn.Dockerfile"),
        &[
            ("dockerfile-cudnn-base", 2, "nvidia/cuda:12.1.1-runtime-ubuntu22.04"),
            ("dockerfile-arg-unused", 1, "CUDA_VERSION"),
            ("env-variable-unknown", 5, "did you mean NCCL_SOCKET_IFNAME?"),
            ("env-variable-unknown", 5, "did you mean PYTORCH_CUDA_ALLOC_CONF?"),
            ("env-variable-unknown", 5, "did you mean TORCH_NCCL_BLOCKING_WAIT?"),
        ],
    ),
    (
        "arguments",
        include_str!("faulty/arguments.Dockerfile"),
        &[
            ("dockerfile-index-computed", 11, "write cu121"),
            (
                "dockerfile-arg-unused",
                4,
                "nothing uses CUDNN_VERSION: 8.9.7 has no effect, torch 2.3.0 (cu121) pins 8.9.2.26",
            ),
        ],
    ),
    (
        "cudnn-base",
        include_str!("faulty/cudnn-base.Dockerfile"),
        &[("dockerfile-cudnn-base", 1, "nvidia/cuda:12.1.1-runtime-ubuntu22.04")],
    ),
    (
        "old-base",
        include_str!("faulty/old-base.Dockerfile"),
        &[("dockerfile-base-cuda", 3, "the base brings CUDA 11.8, and torch 2.8.0 (cu128) its own CUDA 12.8")],
    ),
    (
        "devel-minor",
        include_str!("faulty/devel-minor.Dockerfile"),
        &[("dockerfile-base-cuda", 1, "nvidia/cuda:12.1.1-devel-ubuntu22.04")],
    ),
    (
        "newer-base",
        include_str!("faulty/newer-base.Dockerfile"),
        &[("dockerfile-base-cuda", 1, "asks for a newer driver than torch does")],
    ),
    (
        "floating",
        include_str!("faulty/floating.Dockerfile"),
        &[
            ("dockerfile-floating-tag", 1, "pytorch/pytorch:latest"),
            ("dockerfile-floating-tag", 5, "ubuntu has no tag"),
            ("dockerfile-floating-tag", 2, "ghcr.io/astral-sh/uv:latest"),
        ],
    ),
    (
        "deleted",
        include_str!("faulty/deleted.Dockerfile"),
        &[("dockerfile-image-deleted", 1, "nvidia/cuda:11.4.3-cudnn8-devel-ubuntu20.04")],
    ),
    (
        "shell-index",
        include_str!("faulty/shell-index.Dockerfile"),
        &[
            ("dockerfile-index-computed", 5, "`cu${CU}` is computed"),
            ("dockerfile-index-computed", 6, "`cu$(echo $CUDA | cut -d. -f1,2 | tr -d .)`"),
            ("dockerfile-index-computed", 7, "`cu${CUDA//./}` gives cu1211, which is no index or build"),
        ],
    ),
    (
        "nccl",
        include_str!("faulty/nccl.Dockerfile"),
        &[("dockerfile-arg-disagrees", 2, "NCCL_VERSION is 2.18.3-1+cuda12.1, and torch 2.3.0 (cu121) brings 2.20.5")],
    ),
    (
        "variables",
        include_str!("faulty/variables.Dockerfile"),
        &[
            ("env-variable-unknown", 3, "pass timeout= to torch.distributed.init_process_group"),
            ("env-variable-unknown", 5, "NCCL_SOCKET_RETRY_CNT"),
            ("env-variable-renamed", 6, "TORCH_NCCL_ASYNC_ERROR_HANDLING"),
            ("env-variable-renamed", 7, "PYTORCH_CUDA_ALLOC_CONF"),
        ],
    ),
    (
        "old-torch",
        include_str!("faulty/old-torch.Dockerfile"),
        &[
            ("dockerfile-base-cuda", 5, "the base brings CUDA 11.8, and torch 2.1.2 (cu121) its own CUDA 12.1"),
            ("env-variable-renamed", 7, "torch 2.2.0 is the first"),
        ],
    ),
    (
        "unused",
        include_str!("faulty/unused.Dockerfile"),
        &[("dockerfile-arg-unused", 2, "nothing uses PYTHON_VERSION"), ("dockerfile-arg-unused", 4, "pins 9.10.2.21")],
    ),
];

const SOUND: [(&str, &str); 20] = [
    ("torch-base", include_str!("sound/torch-base.Dockerfile")),
    ("ngc", include_str!("sound/ngc.Dockerfile")),
    ("by-argument", include_str!("sound/by-argument.Dockerfile")),
    ("stages", include_str!("sound/stages.Dockerfile")),
    ("conda", include_str!("sound/conda.Dockerfile")),
    ("rocm", include_str!("sound/rocm.Dockerfile")),
    ("nightly", include_str!("sound/nightly.Dockerfile")),
    ("jax", include_str!("sound/jax.Dockerfile")),
    ("extensions", include_str!("sound/extensions.Dockerfile")),
    ("serving", include_str!("sound/serving.Dockerfile")),
    ("slim", include_str!("sound/slim.Dockerfile")),
    ("same-cuda", include_str!("sound/same-cuda.Dockerfile")),
    ("extra-index", include_str!("sound/extra-index.Dockerfile")),
    ("cpu", include_str!("sound/cpu.Dockerfile")),
    ("system-cudnn", include_str!("sound/system-cudnn.Dockerfile")),
    ("source-build", include_str!("sound/source-build.Dockerfile")),
    ("script", include_str!("sound/script.Dockerfile")),
    ("unknown", include_str!("sound/unknown.Dockerfile")),
    ("web", include_str!("sound/web.Dockerfile")),
    ("document", include_str!("sound/document.Dockerfile")),
];

fn findings(text: &str, lock: Option<&Lock>) -> Vec<Diagnostic> {
    findings_by(&Matrix::embedded(), text, lock)
}

fn findings_by(matrix: &Matrix, text: &str, lock: Option<&Lock>) -> Vec<Diagnostic> {
    let context = Context { matrix, lock, read: &|_| None, variables: Default::default() };
    judge(SourceText::new("Dockerfile", text), &context).unwrap()
}

fn line(finding: &Diagnostic) -> usize {
    match finding.evidence[0] {
        Evidence::Span { line, .. } => line,
        _ => panic!("{finding:?} is at no line"),
    }
}

#[test]
fn fires() {
    for (name, text, expected) in FAULTY {
        let found = findings(text, None);
        let places: Vec<(&str, usize)> = found.iter().map(|one| (one.code, line(one))).collect();
        let wanted: Vec<(&str, usize)> = expected.iter().map(|(code, line, _)| (*code, *line)).collect();
        assert_eq!(places, wanted, "{name}: {found:#?}");
        for (finding, (_, _, says)) in std::iter::zip(&found, expected) {
            assert!(format!("{finding:?}").contains(says), "{name}: `{says}` is not in {finding:#?}");
            assert!(finding.fix.is_some() && finding.subject.is_some(), "{finding:#?}");
        }
    }
}

#[test]
fn stays_quiet() {
    for (name, text) in SOUND {
        assert_eq!(findings(text, None), [], "{name}");
    }
}

/// Line ends and the name of the instruction in small letters change nothing.
#[test]
fn the_form_of_a_file_does_not_count() {
    for (name, text, expected) in FAULTY {
        let small: Vec<String> = text
            .lines()
            .map(|line| match line.split_once(' ') {
                Some((word, rest)) if word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase()) => {
                    format!("{} {rest}", word.to_lowercase())
                }
                _ => line.to_owned(),
            })
            .collect();
        for text in [text.replace('\n', "\r\n"), small.join("\n")] {
            let found = findings(&text, None);
            let places: Vec<(&str, usize)> = found.iter().map(|one| (one.code, line(one))).collect();
            let wanted: Vec<(&str, usize)> = expected.iter().map(|(code, line, _)| (*code, *line)).collect();
            assert_eq!(places, wanted, "{name}: {found:#?}");
        }
    }
}

/// Every lint fires on one of the files, but for those that need a lock.
#[test]
fn every_lint_has_a_file() {
    let found: Vec<&str> = FAULTY.iter().flat_map(|(.., expected)| expected.iter().map(|(code, ..)| *code)).collect();
    let without: Vec<&str> = ALL.iter().map(|lint| lint.code).filter(|code| !found.contains(code)).collect();
    assert_eq!(without, ["dockerfile-without-hashes", "dockerfile-torch-not-locked"]);
}

#[test]
fn with_a_lock_torch_is_not_installed_by_name() {
    let lock = Lock::parse(SAMPLE, "gpulock.lock").unwrap();
    let install = |arguments: &str| {
        let text = format!("FROM python:3.11-slim\nRUN pip install {arguments}\n");
        findings(&text, Some(&lock)).iter().map(|one| (one.code, line(one))).collect::<Vec<_>>()
    };
    for by_name in ["torch==2.8.0", "--upgrade torch", "torch -r requirements.txt"] {
        assert_eq!(install(by_name), [("dockerfile-without-hashes", 2)], "{by_name}");
    }
    for sound in [
        "--require-hashes -r requirements.txt",
        "-r requirements.txt",
        "numpy",
        "torch==2.8.0 --require-hashes",
        "torch==2.8.0 --index-url https://download.pytorch.org/whl/cpu",
        "torch==2.8.0 --index-url https://download.pytorch.org/whl/rocm6.4",
        "--pre torch --index-url https://download.pytorch.org/whl/nightly/xpu",
        "torch==2.8.0+rocm6.4",
        "--dry-run torch==2.8.0",
    ] {
        assert_eq!(install(sound), [], "{sound}");
    }
    assert_eq!(findings("FROM python:3.11\nRUN pip install torch==2.8.0\n", None), []);
}

/// Where the version is the lock's, the hashes alone are missed.
#[test]
fn what_is_not_the_locks_is_said() {
    let mut lock = Lock::parse(SAMPLE, "gpulock.lock").unwrap();
    lock.targets.retain(|target| target.torch.to_string() == "2.8.0");
    let read = |path: &str| match path {
        "/tmp/ours.txt" => {
            Some("# Written by `gpulock export constraints`; change gpulock.toml.\ntorch==2.8.0\n".to_owned())
        }
        _ => Some("torch==2.8.0\n".to_owned()),
    };
    let matrix = Matrix::embedded();
    let context = Context { matrix: &matrix, lock: Some(&lock), read: &read, variables: Default::default() };
    for (run, is_locks) in [
        ("pip install torch==2.8.0", true),
        ("pip install torch==2.7.0", false),
        ("pip install torch", false),
        ("pip install -c /tmp/ours.txt torch", true),
        ("PIP_CONSTRAINT=/tmp/ours.txt pip install torch", true),
        ("pip install --constraint=other.txt torch", false),
    ] {
        let text = format!("FROM python:3.11-slim\nRUN {run}\n");
        let found = judge(SourceText::new("Dockerfile", &text), &context).unwrap();
        assert!(found.len() == 1 && found[0].code == "dockerfile-without-hashes", "{run}: {found:#?}");
        assert_eq!(
            found[0].message.contains("against the hashes of the lock"),
            is_locks,
            "{run}: {}",
            found[0].message
        );
        assert_eq!(found[0].message.contains("neither its version"), !is_locks, "{run}: {}", found[0].message);
    }
}

/// Without a pinned torch, the lock's decides which names are read.
#[test]
fn variables_are_judged_for_the_locked_torch() {
    let text = "FROM nvidia/cuda:12.8.1-base-ubuntu22.04\nENV PYTORCH_ALLOC_CONF=expandable_segments:True\n";
    assert_eq!(findings(text, None), []);
    let mut lock = Lock::parse(SAMPLE, "gpulock.lock").unwrap();
    lock.targets.retain(|target| target.torch.to_string() == "2.8.0");
    let found = findings(text, Some(&lock));
    assert_eq!(found.iter().map(|one| one.code).collect::<Vec<_>>(), ["env-variable-renamed"]);
}

/// What gpulock writes is sound, whatever it is built on.
#[test]
fn generated_files_are_sound() {
    let mut lock = Lock::parse(SAMPLE, "gpulock.lock").unwrap();
    lock.targets.retain(|target| target.pending().count() == 0);
    let matrix = Matrix::embedded();
    let mut seen = 0;
    for (os, flavor) in
        [("debian12", "slim"), ("ubuntu22.04", "base"), ("ubuntu24.04", "runtime"), ("ubuntu22.04", "devel")]
    {
        for target in &lock.targets {
            let wanted = [("os", os), ("flavor", flavor)].map(|(key, value)| (key.to_owned(), value.to_owned()));
            let image = gpulock::lock::choose_image(target, &wanted.into(), &matrix).unwrap().0;
            let target = Target { image: Some(image), ..target.clone() };
            let text = render(&lock, &target, "gpulock.lock", Template::default()).unwrap();
            assert_eq!(findings(&text, Some(&lock)), [], "{os} {flavor}");
            seen += 1;
        }
    }
    assert!(seen >= 4);
}

/// Whatever a file holds, it is read to its end.
#[test]
fn no_text_is_too_much() {
    let matrix = Matrix::embedded();
    let texts = FAULTY.iter().map(|(_, text, _)| *text).chain(SOUND.iter().map(|(_, text)| *text));
    for text in texts {
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            findings_by(&matrix, &text[..end], None);
            findings_by(&matrix, &text[end..], None);
        }
    }
    for text in [
        "FROM",
        "FROM a AS",
        "FROM a AS a\nFROM a AS a",
        "ARG",
        "ENV",
        "ENV A",
        "COPY --from=",
        "COPY --from=9 a b",
        "\u{feff}FROM é\nRUN cu$",
        "RUN http cu$",
        "RUN http cu${",
        "RUN http cu$(",
    ] {
        let found = findings(text, None);
        assert!(found.iter().all(|one| one.severity < Severity::Error));
    }
}

/// With a lock, the torch of the base and that of a requirements file are held against its.
#[test]
fn another_torch_than_the_locks_is_said() {
    let lock = Lock::parse(SAMPLE, "gpulock.lock").unwrap();
    let found = |text: &str, requirements: &str| {
        let read = |_: &str| Some(requirements.to_owned());
        let matrix = Matrix::embedded();
        let context = Context { matrix: &matrix, lock: Some(&lock), read: &read, variables: Default::default() };
        let found = judge(SourceText::new("Dockerfile", text), &context).unwrap();
        found.iter().map(|one| (one.code, line(one))).collect::<Vec<_>>()
    };
    let install = "FROM python:3.11-slim\nRUN pip install -r requirements.txt\n";
    for other in ["torch==2.7.0", "numpy\ntorch>=2.4,<2.8 # old", "torch==2.8.0+cu126"] {
        assert_eq!(found(install, other), [("dockerfile-torch-not-locked", 2)], "{other}");
    }
    for sound in [
        "torch==2.8.0",
        "torch==2.8.0+cu128",
        "torch",
        "torch>=2.4",
        "torch==2.7.0 ; sys_platform == 'darwin'",
        "--index-url https://download.pytorch.org/whl/cpu\ntorch==2.7.0",
        "# Written by `gpulock export requirements`; change gpulock.toml and export again.\ntorch==2.7.0",
        "numpy",
    ] {
        assert_eq!(found(install, sound), [], "{sound}");
    }
    for (base, wanted) in [
        ("pytorch/pytorch:2.3.0-cuda12.1-cudnn8-runtime", &[("dockerfile-base-torch", 1)][..]),
        ("nvcr.io/nvidia/pytorch:24.05-py3", &[("dockerfile-base-torch", 1)]),
        ("pytorch/pytorch:2.8.0-cuda12.8-cudnn9-runtime", &[]),
        ("registry.invalid/pytorch/pytorch:2.3.0-cuda12.1-cudnn8-runtime", &[]),
    ] {
        assert_eq!(found(&format!("FROM {base}\nRUN pip install -r requirements.txt\n"), "numpy"), wanted, "{base}");
    }
}

/// What a here-document may read is no use of an argument, and no use is no disagreement.
#[test]
fn an_argument_that_nothing_names_does_not_disagree() {
    let text = |run: &str| {
        format!("FROM python:3.11-slim\nARG CUDNN_VERSION=8.9.7\nRUN pip install torch==2.8.0\nRUN <<EOF\n{run}\nEOF\n")
    };
    assert_eq!(findings(&text("make all"), None), []);
    let named = findings(&text("apt-get install libcudnn9=$CUDNN_VERSION-1"), None);
    let codes: Vec<&str> = named.iter().map(|one| one.code).collect();
    assert_eq!(codes, ["dockerfile-cudnn-base", "dockerfile-arg-disagrees"]);
}
