//! What is judged by what: variables by the torch of the image, cuDNN by who loads it, arguments by who uses them.

use gpulock::check::dockerfile::{Context, judge};
use gpulock::diag::SourceText;
use gpulock::lock::Lock;
use gpulock::matrix::Matrix;

use super::{findings, line};
use crate::lock::SAMPLE;

/// Codes and lines of what is found.
fn found(text: &str, lock: Option<&Lock>) -> Vec<(&'static str, usize)> {
    findings(text, lock).iter().map(|one| (one.code, line(one))).collect()
}

/// The lock's target of torch 2.8.0.
fn lock() -> Lock {
    let mut lock = Lock::parse(SAMPLE, "gpulock.lock").unwrap();
    lock.targets.retain(|target| target.torch.to_string() == "2.8.0");
    lock
}

/// The image runs the torch of its base, whatever the lock has.
#[test]
fn variables_are_judged_for_the_torch_of_the_base() {
    let lock = lock();
    let renamed = [("env-variable-renamed", 2)];
    for (base, variable, wanted) in [
        ("pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime", "PYTORCH_ALLOC_CONF=x", &[][..]),
        ("pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime", "PYTORCH_ALLOC_CONF=x", &renamed),
        ("pytorch/pytorch:2.1.0-cuda12.1-cudnn8-runtime", "TORCH_NCCL_ASYNC_ERROR_HANDLING=1", &renamed),
        ("pytorch/pytorch:2.2.0-cuda12.1-cudnn8-runtime", "TORCH_NCCL_ASYNC_ERROR_HANDLING=1", &[]),
        ("nvcr.io/nvidia/pytorch:24.05-py3", "PYTORCH_ALLOC_CONF=x", &[]),
    ] {
        let text = format!("FROM {base}\nENV {variable}\n");
        assert_eq!(found(&text, None), wanted, "{base}");
        let mut with = found(&text, Some(&lock));
        with.retain(|(code, _)| code.starts_with("env-"));
        assert_eq!(with, wanted, "{base} with a lock");
    }
    // What nobody knows is not the lock's; what the stage installs wins over its base's.
    for unknown in ["ARG BASE\nFROM $BASE\n", "FROM registry.invalid/base:1\n", "FROM pytorch/pytorch:$TAG\n"] {
        assert_eq!(found(&format!("{unknown}ENV PYTORCH_ALLOC_CONF=x\nCMD nvidia\n"), Some(&lock)), [], "{unknown}");
    }
    let bare = "FROM docker.io/library/ubuntu:22.04\nRUN pip install torch==2.8.0\nENV PYTORCH_ALLOC_CONF=x\n";
    assert_eq!(found(bare, None), [("env-variable-renamed", 3)]);
    let base = "FROM pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime\n";
    let installs = format!("{base}RUN pip uninstall -y torch && pip install torch==2.8.0\nENV PYTORCH_ALLOC_CONF=x\n");
    assert_eq!(found(&installs, None), [("env-variable-renamed", 3)]);
    let removed = format!("{}RUN pip uninstall -y torch\nENV PYTORCH_ALLOC_CONF=x\n", base.replace("2.9.1", "2.8.0"));
    assert_eq!(found(&removed, None), []);
}

/// A cuDNN of the base is for what brings none.
#[test]
fn the_cudnn_of_the_base_is_for_what_loads_it() {
    let of = |packages: &str| {
        let base = "FROM nvidia/cuda:12.1.1-cudnn8-runtime-ubuntu22.04\n";
        let line = found(&format!("{base}RUN pip install torch==2.3.0 {packages}\n"), None);
        let requirements = format!("torch==2.3.0\n{}\n", packages.replace(' ', "\n"));
        let read = |_: &str| Some(requirements.clone());
        let context = Context { matrix: &Matrix::embedded(), lock: None, read: &read, variables: Default::default() };
        let text = format!("{base}RUN pip install -r requirements.txt\n");
        let listed = judge(SourceText::new("Dockerfile", &text), &context).unwrap();
        assert_eq!(
            listed.iter().map(|one| one.code).collect::<Vec<_>>(),
            line.iter().map(|one| one.0).collect::<Vec<_>>()
        );
        line
    };
    for loads in ["tensorflow==2.17.0", "jax[cuda12_local]", "jax[cuda12-local]==0.5.0", "paddlepaddle-gpu==2.6.0"] {
        assert_eq!(of(loads), [], "{loads}");
    }
    for brings in ["tensorflow[and-cuda]==2.17.0", "jax[cuda12]", "jax", "tensorflow-cpu", "numpy"] {
        assert_eq!(of(brings), [("dockerfile-cudnn-base", 1)], "{brings}");
    }
}

/// A folder of links and a backend of uv say which build it is, as an index does.
#[test]
fn links_and_backends_are_indexes() {
    let whl = "https://download.pytorch.org/whl";
    let on = |base: &str, run: &str| found(&format!("FROM nvidia/cuda:{base}-ubuntu22.04\nRUN {run}\n"), None);
    let cudnn = [("dockerfile-cudnn-base", 1)];
    for option in [format!("-f {whl}/cu111/torch_stable.html"), format!("--find-links={whl}/cu111")] {
        assert_eq!(on("11.1.1-cudnn8-runtime", &format!("pip install torch==1.10.0 {option}")), cudnn, "{option}");
    }
    let cuda = [("dockerfile-base-cuda", 1)];
    for run in [
        "uv pip install --torch-backend=cu126 torch==2.6.0",
        "UV_TORCH_BACKEND=cu126 uv pip install torch==2.6.0",
        "UV_TORCH_BACKEND=cu121 uv pip install --torch-backend cu126 torch==2.6.0",
        "PIP_FIND_LINKS=https://download.pytorch.org/whl/cu126 pip install torch==2.6.0",
    ] {
        assert_eq!(on("12.1.1-devel", run), cuda, "{run}");
    }
    for sound in [
        "uv pip install --torch-backend=auto torch==2.6.0",
        "uv pip install --torch-backend=cpu torch==2.6.0",
        "uv pip install --torch-backend=cu121 torch==2.5.1",
        "pip install torch==2.6.0 -f https://data.pyg.org/whl/torch-2.6.0+cu126.html",
        "pip install torch==2.6.0 -f https://download.pytorch.org/whl/torch_stable.html",
        "pip install torch==2.6.0 -f https://download.pytorch.org/whl/cpu/torch_stable.html",
    ] {
        assert_eq!(on("12.1.1-cudnn8-devel", sound).iter().filter(|one| one.0 != "dockerfile-cudnn-base").count(), 0);
    }
    // pip reads no variable of uv.
    assert_eq!(on("12.4.1-devel", "UV_TORCH_BACKEND=cu126 pip install torch==2.6.0"), []);
}

/// What FROM says by substitution is the base.
#[test]
fn a_base_may_be_written_by_substitution() {
    let install = "RUN pip install torch==2.8.0\n";
    for from in [
        "ARG C=1\nFROM nvidia/cuda:${C:+11.8.0}-runtime-ubuntu22.04",
        "ARG D=11.8.0\nFROM nvidia/cuda:${C:-$D}-runtime-ubuntu22.04",
        "ARG D=11.8.0\nFROM nvidia/cuda:${C:-${D}}-runtime-ubuntu22.04",
        "ARG D=1\nFROM nvidia/cuda:${V-11.8.0}-runtime-ubuntu22.04",
        "ARG V=\"\"\nFROM nvidia/cuda:${V:-11.8.0}-runtime-ubuntu22.04",
        "ARG C=1\nFROM ${C:+\"nvidia/cuda:11.8.0-runtime-ubuntu22.04\"}",
    ] {
        assert_eq!(found(&format!("{from}\n{install}"), None), [("dockerfile-base-cuda", 2)], "{from}");
    }
    let other = "ARG C\nFROM nvidia/cuda:${C:+11.8.0}-runtime-ubuntu22.04\n";
    assert_eq!(found(&format!("{other}{install}"), None), []);
}

/// Tags of an old CUDA minor without a patch release are there no more.
#[test]
fn tags_without_a_patch_release_were_removed() {
    for gone in [
        "11.0-base",
        "11.0-devel-ubuntu20.04",
        "10.2-base",
        "10.2-cudnn7-devel-ubuntu18.04",
        "11.1-base-ubuntu20.04",
        "11.1-devel",
        "10.1-base",
        "10.0-cudnn7-devel",
        "9.2-base",
        "9.0-devel-ubuntu16.04",
    ] {
        assert_eq!(found(&format!("FROM nvidia/cuda:{gone}\n"), None), [("dockerfile-image-deleted", 1)], "{gone}");
    }
    for sound in ["nvidia/cuda:11.0.3-base-ubuntu20.04", "registry.invalid/nvidia/cuda:11.0-base"] {
        assert_eq!(found(&format!("FROM {sound}\n"), None), [], "{sound}");
    }
    let fix = findings("FROM nvidia/cuda:11.0-devel-ubuntu20.04\n", None)[0].fix.clone();
    assert_eq!(fix.as_deref(), Some("build on nvidia/cuda:11.0.3-devel-ubuntu20.04"));
}

/// An argument that installs nothing does not disagree with what pip installs.
#[test]
fn what_only_shows_an_argument_installs_nothing() {
    let of = |rest: &str| found(&format!("FROM python:3.11-slim\n{rest}\nRUN pip install torch==2.3.0\n"), None);
    for shown in [
        "ARG NCCL_VERSION=2.18.1\nLABEL nccl=$NCCL_VERSION",
        "ARG CUDA_VERSION=12.4\nENV CUDA_VERSION=$CUDA_VERSION",
        "ARG NCCL_VERSION=2.18.1\nENV NCCL=$NCCL_VERSION",
    ] {
        assert_eq!(of(shown), [], "{shown}");
    }
    for used in [
        "ARG NCCL_VERSION=2.18.1\nRUN apt-get install libnccl2=$NCCL_VERSION",
        "ARG NCCL_VERSION=2.18.1\nENV NCCL=$NCCL_VERSION\nRUN apt-get install libnccl2=$NCCL",
        "ARG NCCL_VERSION=2.18.1\nADD https://a.invalid/nccl-${NCCL_VERSION}.txz /",
    ] {
        assert_eq!(of(used), [("dockerfile-arg-disagrees", 2)], "{used}");
    }
}

/// Of what stands before FROM, a stage sees what it declares again.
#[test]
fn an_argument_before_from_is_not_seen_in_a_stage() {
    let of = |declared: &str| {
        let from = "ARG TORCH_VERSION=2.3.0\nFROM nvidia/cuda:11.8.0-runtime-ubuntu22.04\n";
        findings(&format!("{from}{declared}RUN pip install torch==${{TORCH_VERSION:-2.6.0}}\n"), None)
    };
    let without = of("");
    let places: Vec<(&str, usize)> = without.iter().map(|one| (one.code, line(one))).collect();
    assert_eq!(places, [("dockerfile-base-cuda", 2), ("dockerfile-arg-unused", 1)]);
    assert!(without[0].message.contains("torch 2.6.0 (cu124)"), "{without:#?}");
    assert!(without[1].fix.as_ref().is_some_and(|fix| fix.contains("again after FROM")), "{without:#?}");
    let with = of("ARG TORCH_VERSION\n");
    assert!(with.len() == 1 && with[0].message.contains("torch 2.3.0 (cu121)"), "{with:#?}");
}

/// A torch of the base that is removed does not clash with the one that is installed.
#[test]
fn a_torch_that_is_removed_is_not_there() {
    let base = "FROM pytorch/pytorch:2.3.0-cuda12.1-cudnn8-runtime\n";
    for (run, count) in [
        ("pip uninstall -y torch torchvision && pip install torch==2.8.0", 0),
        ("python3 -m pip uninstall -y torch\nRUN pip install torch==2.8.0", 0),
        ("conda remove -y pytorch && pip install torch==2.8.0", 0),
        ("pip uninstall -y apex && pip install torch==2.8.0", 1),
        ("apt-get remove torch && pip install torch==2.8.0", 1),
    ] {
        let found = found(&format!("{base}RUN {run}\n"), None);
        assert_eq!(found.iter().filter(|one| one.0 == "dockerfile-base-torch").count(), count, "{run}: {found:?}");
    }
}

/// A cuDNN of the system is a second one, whether the base has it or a package.
#[test]
fn a_cudnn_of_the_system_is_a_second_one() {
    let of = |base: &str, run: &str| found(&format!("FROM {base}\nRUN {run}\nRUN pip install torch==2.8.0\n"), None);
    let bare = "nvidia/cuda:12.8.1-runtime-ubuntu22.04";
    for run in [
        "apt-get update && apt-get install -y --no-install-recommends curl libcudnn9-cuda-12",
        "sudo apt install libcudnn8=8.9.7.29-1+cuda12.2",
        "DEBIAN_FRONTEND=noninteractive apt-get -y install libcudnn9-dev-cuda-12",
        "if x; then /usr/bin/dnf install -y cudnn9-cuda-12; fi",
        "microdnf install libcudnn8",
        "apt-get install -y nvidia-cudnn",
    ] {
        assert_eq!(of(bare, run), [("dockerfile-cudnn-base", 2)], "{run}");
        // Once, at the base.
        assert_eq!(of("nvidia/cuda:12.8.1-cudnn-runtime-ubuntu22.04", run), [("dockerfile-cudnn-base", 1)], "{run}");
    }
    for sound in [
        "apt-get remove -y libcudnn8",
        "apt-get install -y libcudnn9-cuda-12=9.10.2.21-1",
        "dnf install -y libcudnn9-cuda-12-9.10.2.21",
        "apt-mark hold libcudnn8",
        "apt-get install -y libcudnn9-headers-cuda-12 libcudnn-frontend-dev",
        "echo install libcudnn8",
        "apt-get install -y libcudnn8 && pip install onnxruntime-gpu",
    ] {
        assert_eq!(of(bare, sound), [], "{sound}");
    }
    let cpu = "FROM ubuntu:22.04\nRUN apt-get install libcudnn9-cuda-12\nRUN pip install torch==2.8.0+cpu\n";
    assert_eq!(found(cpu, None), []);
    let copied = "FROM ubuntu:22.04 AS a\nRUN apt-get install libcudnn9-cuda-12\nFROM ubuntu:22.04\nRUN pip install torch==2.8.0\n";
    assert_eq!(found(copied, None), [], "it is in another image");
}

/// Of an index, not of whatever has a CUDA in its name.
#[test]
fn a_computed_index_is_one_of_torch() {
    let of = |run: &str| {
        let from =
            "ARG BASE_URL=https://download.pytorch.org/whl\nFROM nvidia/cuda:12.8.1-devel-ubuntu22.04\nARG BASE_URL\n";
        found(&format!("{from}ENV CUDA=12.8.1 TV=2.8\nRUN {run}\n"), None)
    };
    for computed in [
        "pip install -r x.txt --extra-index-url ${BASE_URL}/cu$(echo $CUDA | cut -d. -f1,2 | tr -d '.')",
        "pip install -r x.txt --index-url https://download.pytorch.org/whl/cu${CUDA:0:2}${CUDA:3:1}",
        "V=${CUDA%.*} && pip install -r x.txt --index-url https://download.pytorch.org/whl/cu${V//./}",
        "pip install -r x.txt -i https://download.pytorch.org/whl/cu$(echo $CUDA | awk -F. '{print $1$2}')",
    ] {
        assert_eq!(of(computed), [("dockerfile-index-computed", 5)], "{computed}");
    }
    let wheel = "https://files.invalid/flash_attn-2.8.0";
    for sound in [
        format!("pip install {wheel}+cu${{CUDA%%.*}}torch$TV-cp311-cp311-linux_x86_64.whl"),
        format!("M=$(echo $CUDA | cut -d. -f1) && S=\"cu${{M}}\" && pip install {wheel}+${{S}}torch$TV.whl"),
        format!("pip install {wheel}+cu${{CUDA:0:2}}torch$TV-cp311-cp311-linux_x86_64.whl"),
        "pip install -r x.txt --index-url https://download.pytorch.org/whl/${VARIANT:-cu128}".into(),
    ] {
        assert_eq!(of(&sound), [], "{sound}");
    }
}

/// A word behind a variable may be anything that a build is given: another target of a bake file, a folder.
#[test]
fn a_plain_word_behind_a_variable_does_not_float() {
    let of = |from: &str| found(&format!("{from}\nRUN pip install torch==2.8.0\n"), None);
    for sound in ["ARG BASE=base\nFROM ${BASE}", "ARG BASE_IMAGE=non-existing\nFROM \"$BASE_IMAGE\" AS a"] {
        assert_eq!(of(sound), [], "{sound}");
    }
    for floats in ["ARG BASE=me/base\nFROM ${BASE}", "ARG BASE=ubuntu:latest\nFROM $BASE", "#\nFROM ubuntu"] {
        assert_eq!(of(floats), [("dockerfile-floating-tag", 2)], "{floats}");
    }
}

/// Of short names, one mistake is all that is taken for one; what people call folders and versions is nobody's mistake.
#[test]
fn short_names_may_be_misspelt_too() {
    let of = |name: &str| found(&format!("FROM nvidia/cuda:12.8.1-base-ubuntu22.04\nENV {name}=1\n"), None);
    for wrong in ["NCCL_DEBUGG", "NCCL_DEBG", "NCCL_ALGOS", "NCL_DEBUG", "NCCL_PORTO"] {
        assert_eq!(of(wrong), [("env-variable-unknown", 2)], "{wrong}");
    }
    for sound in [
        "NCCL_DEBUG",
        "NCCL_ALGO",
        "NCCL_PROTO",
        "NCCL_ROOT",
        "NCCL_HOME",
        "NCCL_PATH",
        "NCCL_PORT",
        "NCCL_LIBS",
        "NCCL_DIR",
        "NCCL_VERSION",
        "NCCL_VER",
        "NCCL_TESTS",
        "NCCL_RINGS",
        "NCCL_NRINGS",
        "NCCL_REPO",
        "NCCL_BRANCH",
        "NCCL_TAG",
        "TORCH_HOME",
        "TORCH_LOGS",
        "TORCH_DIR",
        "CUDA_HOME",
        "CUDNN_ROOT",
    ] {
        assert_eq!(of(sound), [], "{sound}");
    }
}
