//! First manifests from what projects have.

use gpulock::diag::{Diagnostic, Evidence, Severity, SourceText};
use gpulock::manifest::init::{Machines, Proposal, Source, SystemPythons, gitattributes, includes, propose};
use gpulock::manifest::{parse, render};
use gpulock::report::human::{Style, diagnostics};

/// Two systems and their Pythons.
fn pythons() -> SystemPythons {
    [("ubuntu22.04", "3.10"), ("ubuntu:22.04", "3.10"), ("debian:bookworm", "3.11")]
        .map(|(name, python)| (name.to_owned(), python.parse().unwrap()))
        .into()
}

fn from_dockerfile(text: &str) -> Proposal {
    propose(&[Source::Dockerfile(SourceText::new("Dockerfile", text))], &Machines::default(), &pythons()).unwrap()
}

fn from_requirements(text: &str) -> Proposal {
    propose(&[Source::Requirements(SourceText::new("requirements.txt", text))], &Machines::default(), &pythons())
        .unwrap()
}

fn from_pyproject(text: &str) -> Proposal {
    propose(&[Source::Pyproject(SourceText::new("pyproject.toml", text))], &Machines::default(), &pythons()).unwrap()
}

/// The lines of the written manifest that say something.
fn lines(proposal: &Proposal) -> Vec<String> {
    if std::env::var_os("SHOW").is_some() {
        println!("{}\n{}", render(&proposal.manifest), diagnostics(&proposal.notes, Style::default()));
    }
    let written = render(&proposal.manifest);
    let said = |line: &&str| !line.is_empty() && !line.starts_with('#');
    written.lines().filter(said).map(|line| line.split(" #").next().unwrap().trim_end().to_owned()).collect()
}

/// Line of the source and message of each warning.
fn warnings(proposal: &Proposal) -> Vec<(usize, &str)> {
    let line = |note: &Diagnostic| match &note.evidence[0] {
        Evidence::Span { line, .. } => *line,
        other => panic!("{other:?}"),
    };
    let warning = |note: &&Diagnostic| note.severity == Severity::Warning;
    proposal.notes.iter().filter(warning).map(|note| (line(note), note.message.as_str())).collect()
}

/// Where nothing says which GPUs there are.
const UNFILLED: [&str; 3] = ["[target.default]", "platform = \"linux-x86_64\"", "gpus = []"];

fn with_target(stack: &[&str]) -> Vec<String> {
    stack.iter().chain(&UNFILLED).map(|line| (*line).to_owned()).collect()
}

#[test]
fn a_cuda_dockerfile() {
    let proposal = from_dockerfile(
        r#"# syntax=docker/dockerfile:1
ARG TORCH=2.3.0
FROM nvidia/cuda:12.1.1-cudnn8-runtime-ubuntu22.04 AS base
ENV NCCL_DEBUG=WARN \
    PYTHONUNBUFFERED=1
ENV TORCH_CUDA_ARCH_LIST="8.0;8.6 9.0+PTX"
RUN apt-get update && apt-get install -y python3.10 python3-pip && \
    # the framework
    rm -rf /var/lib/apt/lists/*

RUN pip install --no-cache-dir -U pip && python3 -m pip install \
      "torch==${TORCH}+cu121" 'torchvision>=0.18' \
      numpy<2 accelerate[test]==0.30.1 \
      --extra-index-url https://torch.invalid/whl/cu121 -r requirements.txt
FROM base
COPY . .
RUN pip3 install -e . ./wheels/x.whl "transformers==$HF"
"#,
    );
    assert_eq!(
        lines(&proposal),
        [
            "[stack]",
            "python = \"3.10\"",
            "torch = \"==2.3.0\"",
            "torchvision = \">=0.18\"",
            "cuda = \"12\"",
            "variant = \"cu121\"",
            "[packages]",
            "numpy = \"<2\"",
            "accelerate = { version = \"==0.30.1\", extras = [\"test\"] }",
            "[target.default]",
            "platform = \"linux-x86_64\"",
            "gpus = [\"sm_80\", \"sm_86\", \"sm_90\"]",
            "[image]",
            "flavor = \"runtime\"",
            "os = \"ubuntu22.04\"",
            "[env]",
            "NCCL_DEBUG = \"WARN\"",
        ]
    );
    let expected = [
        (14, "`requirements.txt` is installed here"),
        (17, "`./wheels/x.whl` is a file"),
        (17, "`transformers==$HF` has a variable without a value"),
    ];
    assert_eq!(warnings(&proposal), expected);
    assert!(parse(&render(&proposal.manifest), "gpulock.toml").is_ok());
}

/// Wheels of one CUDA on an image of another: what is asked for is what pip installs today.
#[test]
fn wheels_of_another_cuda_than_the_image() {
    let found = |image: &str, label: &str| {
        from_dockerfile(&format!(
            "FROM nvidia/cuda:{image}\nRUN pip install torch --index-url https://torch.invalid/whl/{label}\n"
        ))
    };
    let other = found("13.0.1-cudnn-devel-ubuntu22.04", "cu126");
    assert_eq!(lines(&other)[..4], ["[stack]", "torch = \"*\"", "variant = \"cu126\"", "[target.default]"]);
    assert_eq!(warnings(&other), [(1, "`cuda` of the image is left out again: the wheels are cu126")]);
    let same = found("12.4.1-cudnn8-devel-ubuntu22.04", "cu126");
    assert_eq!(lines(&same)[..4], ["[stack]", "torch = \"*\"", "cuda = \"12\"", "variant = \"cu126\""]);
    assert_eq!(warnings(&same), []);
}

#[test]
fn a_torch_image_and_a_here_document() {
    let proposal = from_dockerfile(
        "FROM --platform=linux/arm64 pytorch/pytorch:2.3.0-cuda12.1-cudnn8-devel\nRUN <<EOF\nset -e\npip install numpy\n\
         uv pip install sympy==1.12\nEOF\nRUN [\"pip\", \"install\", \"rich>=13\"]\n",
    );
    assert_eq!(
        lines(&proposal),
        [
            "[stack]",
            "torch = \"==2.3.0\"",
            "cuda = \"12.1\"",
            "cudnn = \"8\"",
            "[packages]",
            "numpy = \"*\"",
            "sympy = \"==1.12\"",
            "rich = \">=13\"",
            "[target.default]",
            "platform = \"linux-aarch64\"",
            "gpus = []",
            "[image]",
            "flavor = \"devel\"",
        ]
    );
    assert!(warnings(&proposal).is_empty());
}

#[test]
fn the_python_of_the_system() {
    let cuda = |rest: &str| lines(&from_dockerfile(&format!("FROM nvidia/cuda:{rest}")));
    let apt = "RUN apt-get update && apt-get install -y git python3-pip && pip3 install torch==2.1.0\n";
    let found = cuda(&format!("12.1.1-cudnn8-devel-ubuntu22.04\n{apt}"));
    let stack = ["[stack]", "python = \"3.10\"", "torch = \"==2.1.0\"", "cuda = \"12\"", "[target.default]"];
    assert_eq!(found[..5], stack, "{found:#?}");
    // What is installed beside it, or by another tool, wins.
    let other = cuda(&format!("12.1.1-base-ubuntu22.04\n{apt}RUN apt-get install -y python3.12\n"));
    assert!(other.contains(&"python = \"3.12\"".into()), "{other:#?}");
    // The system's Python is not used, or not known; the tag does not say which cuDNN.
    let unused = cuda("12.4.1-cudnn-runtime-ubuntu22.04\nRUN apt-get install -y git\n");
    assert_eq!(unused[..2], ["[stack]", "cuda = \"12\""], "{unused:#?}");
    let unknown = from_dockerfile(&format!("FROM nvidia/cuda:12.4.1-base-ubuntu21.10\n{apt}"));
    assert_eq!(warnings(&unknown), [(2, "which Python this system calls python3 is not known here")]);
    // A later stage that begins from another image has another system.
    let debian = from_dockerfile("FROM ubuntu:22.04 AS a\nFROM debian:bookworm-slim\nRUN apt install python3\n");
    assert_eq!(lines(&debian), with_target(&["[stack]", "python = \"3.11\""]));
    assert_eq!(warnings(&debian), []);
}

#[test]
fn images_that_say_nothing_are_named() {
    let proposal = from_dockerfile(
        "FROM nvcr.io/nvidia/pytorch:24.05-py3\nFROM python:3.11-slim\nFROM python:latest\nFROM registry.invalid:5000/x/y\n\
         FROM nvidia/cuda\nRUN conda install python=3.11 pytorch pytorch-cuda=12.1 -c pytorch\n",
    );
    assert_eq!(lines(&proposal), with_target(&["[stack]", "python = \"3.11\""]));
    let lines: Vec<usize> = warnings(&proposal).iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [1, 3, 4, 5, 6, 6]);
}

#[test]
fn requirements_with_everything() {
    let text = "# comment\n--extra-index-url https://torch.invalid/whl/cu121  # torch\n-r base.txt\n-c constraints.txt\n\
        torch==2.3.0+cu121 \\\n    --hash=sha256:1234 \\\n    --hash=sha256:5678\ntorchvision==0.18.0+cu121\n\
        nvidia-cudnn-cu12==8.9.2.26\nnvidia-nccl-cu12==2.20.5\nnvidia-cublas-cu12==12.1.3.1\nNumPy>=1.26,<2 # why\n\
        pywin32>=1.0; sys_platform == 'win32'\nflash-attn @ https://x.invalid/flash.whl\n-e .\n--pre\n\
        git+https://x.invalid/y.git#egg=y\n-i https://index.invalid/simple\n";
    let proposal = from_requirements(text);
    assert_eq!(
        lines(&proposal),
        with_target(&[
            "[stack]",
            "torch = \"==2.3.0\"",
            "torchvision = \"==0.18.0\"",
            "nccl = \"==2.20.5\"",
            "cudnn = \"==8.9.2.26\"",
            "variant = \"cu121\"",
            "[packages]",
            "numpy = \">=1.26,<2\"",
        ])
    );
    let lines: Vec<usize> = warnings(&proposal).iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [4, 14, 17, 18]);
    assert_eq!(includes(text), ["base.txt"]);
}

#[test]
fn builds_that_are_not_cuda_are_said() {
    let proposal = from_requirements("torch==2.3.0+cpu\n--index-url https://torch.invalid/whl/rocm6.0\n");
    assert_eq!(lines(&proposal)[1], "torch = \"==2.3.0\"");
    let said: Vec<&str> = warnings(&proposal).iter().map(|(_, message)| *message).collect();
    assert_eq!(
        said,
        ["`cpu` is no CUDA build: the lock will have one", "`rocm6.0` is no CUDA build: the lock will have one"]
    );
}

#[test]
fn contradictions_keep_the_first() {
    let proposal = from_requirements("torch==2.3.0\ntorch==2.4.0\nnumpy<2\nnumpy>=2\nrich>=10\nrich<14\n");
    let expected = ["[stack]", "torch = \"==2.3.0\"", "[packages]", "numpy = \"<2\"", "rich = \">=10,<14\""];
    assert_eq!(lines(&proposal), with_target(&expected));
    assert_eq!(warnings(&proposal).len(), 2);
}

#[test]
fn pyproject_of_uv() {
    let proposal = from_pyproject(
        r#"[project]
name = "x"
requires-python = ">=3.10"
dependencies = ["torch>=2.3", "numpy<3", "internal"]
[project.optional-dependencies]
gpu = ["torch==2.4.0"]
[tool.uv.sources]
torch = [{ index = "pytorch-cu121", marker = "sys_platform == 'linux'" }]
internal = { index = "company" }
mine = { path = "../mine" }
[[tool.uv.index]]
name = "pytorch-cu121"
url = "https://torch.invalid/whl/cu121"
explicit = true
[[tool.uv.index]]
name = "company"
url = "https://me:secret@company.invalid/simple"
"#,
    );
    assert_eq!(
        lines(&proposal),
        [
            "[stack]",
            "python = \">=3.10\"",
            "torch = \">=2.3\"",
            "variant = \"cu121\"",
            "[packages]",
            "numpy = \"<3\"",
            "internal = \"*\"",
            "[target.default]",
            "platform = \"linux-x86_64\"",
            "gpus = []",
            "[[index]]",
            "name = \"company\"",
            "url = \"https://company.invalid/simple\"",
            "packages = [\"internal\"]",
        ]
    );
    let lines: Vec<usize> = warnings(&proposal).iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [6, 10]);
    assert!(!format!("{:?}", proposal.notes).contains("secret"));
}

/// What the manifest would refuse is told, and not taken over.
#[test]
fn an_index_that_no_manifest_may_name() {
    for (url, why) in [("file:///srv/simple", "--mirror"), ("https://h.invalid/simple?token=secret#x y", "")] {
        let proposal = from_pyproject(&format!(
            "[project]\nname = \"x\"\ndependencies = [\"torch>=2.3\", \"internal\"]\n[tool.uv.sources]\n\
             internal = {{ index = \"company\" }}\n[[tool.uv.index]]\nname = \"company\"\nurl = \"{url}\"\n"
        ));
        let indexes = lines(&proposal).iter().filter(|line| line.starts_with("url = ")).count();
        let told = format!("{:?}", proposal.notes);
        match why {
            // Without its query it is an address.
            "" => assert!(indexes == 1 && !told.contains("secret"), "{told}"),
            why => assert!(
                indexes == 0 && told.contains("file:///srv/simple is not taken over") && told.contains(why),
                "{told}"
            ),
        }
    }
}

#[test]
fn pyproject_of_poetry() {
    let proposal = from_pyproject(
        r#"[tool.poetry.dependencies]
python = "^3.10"
torch = { version = "^2.3", source = "torch" }
numpy = "~1.26"
here = { path = "../here" }
[[tool.poetry.source]]
name = "torch"
url = "https://torch.invalid/whl/cu121"
"#,
    );
    let expected = [
        "[stack]",
        "python = \">=3.10,<4\"",
        "torch = \">=2.3,<3\"",
        "variant = \"cu121\"",
        "[packages]",
        "numpy = \">=1.26,<1.27\"",
    ];
    assert_eq!(lines(&proposal), with_target(&expected));
    assert_eq!(warnings(&proposal), [(5, "`here` names no version on an index")]);
}

#[test]
fn an_unfilled_target_says_what_to_do() {
    let written = render(&from_requirements("torch\n").manifest);
    assert!(written.contains("# FILL IN"));
    let refused = parse(&written, "gpulock.toml").unwrap_err();
    assert_eq!(refused.diagnostics.len(), 1);
    assert_eq!(refused.diagnostics[0].code, "no-gpu");
}

#[test]
fn machines_win_over_guesses() {
    let machines = Machines {
        gpus: vec!["NVIDIA A100-SXM4-80GB".into()],
        driver: Some("570.124.06".parse().unwrap()),
        platform: Some("linux-aarch64".parse().unwrap()),
        glibc: Some("2.35".parse().unwrap()),
        python: Some("3.12".parse().unwrap()),
    };
    let source = Source::Dockerfile(SourceText::new("Dockerfile", "FROM x\nENV TORCH_CUDA_ARCH_LIST=8.6\n"));
    let proposal = propose(&[source], &machines, &pythons()).unwrap();
    let expected = [
        "[stack]",
        "python = \"3.12\"",
        "[target.default]",
        "platform = \"linux-aarch64\"",
        "glibc = \"2.35\"",
        "gpus = [\"NVIDIA A100-SXM4-80GB\"]",
        "driver = \"570.124.06\"",
    ];
    assert_eq!(lines(&proposal), expected);
}

#[test]
fn attributes_are_added_once() {
    let line = "gpulock.lock text eol=lf linguist-generated\n";
    assert_eq!(gitattributes("").unwrap(), line);
    assert_eq!(gitattributes("*.png binary").unwrap(), format!("*.png binary\n{line}"));
    assert_eq!(gitattributes("a b\r\n").unwrap(), format!("a b\r\n{}", line.replace('\n', "\r\n")));
    assert_eq!(gitattributes(line), None);
}

#[test]
fn no_text_is_too_odd() {
    for text in [
        "\\",
        "FROM",
        "FROM \\\n",
        "RUN <<EOF",
        "ENV",
        "ENV A",
        "RUN pip install",
        "RUN pip install -r",
        "${",
        "RUN \"",
        "é$é{",
        "RUN [",
    ] {
        lines(&from_dockerfile(text));
        lines(&from_dockerfile(&format!("ENV A={text}\nRUN pip install {text}")));
        lines(&from_requirements(text));
    }
    for text in ["-r", "--index-url", "\\\n\\", "#", "==", "a==b==c"] {
        lines(&from_requirements(text));
    }
}
