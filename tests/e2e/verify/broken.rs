//! Broken environments: real wheels put together wrongly, run for real and verified. What verify says must name what the
//! run shows.
//!
//! The healthy environment is torch 2.8.0 with its torchvision and torchaudio; each case changes a copy of it that shares
//! the unchanged files (hard links), so that a case costs what it changes.

use std::path::Path;

use super::environment::{Case, healthy, named, part};
use crate::run::{gpulock, network};

const IMPORT: &str = "import torch";
const VISION: &str = "import torchvision";
/// What cuDNN checks when a part is first used.
const CHECK: &str = "import torch, ctypes; print(torch.backends.cudnn.version()); \
                     print('check', ctypes.CDLL('libcudnn.so.9').cudnnOpsVersionCheck())";

pub const CASES: [Case; 16] = [
    Case {
        name: "a part of cuDNN of another release",
        change: |env| env.replace("nvidia-cudnn-cu12==9.11.0.98", "nvidia/cudnn/lib/libcudnn_ops.so.9"),
        run: Some((CHECK, "check 1002")),
        code: "cudnn-version-mixed",
        words: &["9.11.0", "9.10.2"],
    },
    Case {
        name: "engines of another release",
        change: |env| env.replace("nvidia-cudnn-cu12==9.11.0.98", "nvidia/cudnn/lib/libcudnn_engines_precompiled.so.9"),
        run: Some((
            "import torch, ctypes, glob; [ctypes.CDLL(f) for f in glob.glob(torch.__path__[0] + \
             '/../nvidia/cudnn/lib/libcudnn_engines_precompiled.so.9')]",
            "getConvDescER22cudnnConvolutionStruct",
        )),
        code: "cudnn-version-mixed",
        words: &["9.11.0", "getConvDescER22cudnnConvolutionStruct"],
    },
    Case {
        name: "a part of cuDNN that is not there",
        change: |env| env.remove("nvidia/cudnn/lib/libcudnn_graph.so.9"),
        run: Some((CHECK, "Unable to load any of")),
        code: "cudnn-sublibrary-missing",
        words: &["libcudnn_graph.so.9"],
    },
    Case {
        name: "cuDNN older than torch was compiled against",
        change: |env| env.replace("nvidia-cudnn-cu12==9.5.1.17", "nvidia/cudnn/lib"),
        run: Some((CHECK, "cuDNN version incompatibility")),
        code: "cudnn-older-than-built",
        words: &["9.5.1", "9.8.0"],
    },
    Case {
        name: "NCCL older than torch needs",
        change: |env| env.replace("nvidia-nccl-cu12==2.20.5", "nvidia/nccl/lib"),
        run: Some((IMPORT, "ncclGroupSimulateEnd")),
        code: "nccl-mismatch",
        words: &["ncclGroupSimulateEnd", "2.20.5"],
    },
    Case {
        name: "torchvision of another torch",
        change: |env| {
            env.replace("torchvision==0.22.0", "torchvision");
            env.replace("torchvision==0.22.0", "torchvision.libs");
        },
        run: Some((VISION, "operator torchvision::nms does not exist")),
        code: "torch-abi-mismatch",
        words: &["_ZN3c104cuda9SetDeviceEa", "operator torchvision::nms does not exist"],
    },
    Case {
        name: "a library that import needs",
        change: |env| env.remove("nvidia/cusparselt"),
        run: Some((IMPORT, "libcusparseLt.so.0: cannot open shared object file")),
        code: "unresolved-needed",
        words: &["libcusparseLt.so.0"],
    },
    Case {
        name: "a library that import does without",
        change: |env| env.remove("nvidia/cusolver"),
        run: None,
        code: "unresolved-needed",
        words: &["libcusolver.so.11", "linear-algebra"],
    },
    Case {
        name: "an empty file",
        change: |env| env.write("nvidia/cufft/lib/libcufft.so.11", b""),
        run: Some((IMPORT, "file too short")),
        code: "library-unreadable",
        words: &["libcufft.so.11"],
    },
    Case {
        name: "torchaudio of another torch",
        change: |env| env.replace("torchaudio==2.7.0", "torchaudio"),
        run: Some(("import torchaudio", "undefined symbol: _ZN3c104cuda9SetDeviceEa")),
        code: "torch-abi-mismatch",
        words: &["_ZN3c104cuda9SetDeviceEa", "pip install torchaudio==2.8.0"],
    },
    Case {
        name: "torchaudio for another CUDA",
        change: |env| env.replace("torchaudio==2.11.1", "torchaudio"),
        run: Some(("import torchaudio", "libcudart.so.13: cannot open shared object file")),
        code: "unresolved-needed",
        words: &["libcudart.so.13", "libcudart.so.12"],
    },
    Case {
        name: "engines that are not there",
        change: |env| env.remove("nvidia/cudnn/lib/libcudnn_engines_precompiled.so.9"),
        run: Some(("import torch; print('imported')", "imported")),
        code: "cudnn-sublibrary-missing",
        words: &["libcudnn_engines_precompiled.so.9", "the first convolution or attention on a GPU"],
    },
    Case {
        name: "no CUDA runtime",
        change: |env| env.remove("nvidia/cuda_runtime"),
        run: Some((IMPORT, "libcudart.so.*[0-9] not found")),
        code: "unresolved-needed",
        words: &["libcudart.so.12", "nvidia-cuda-runtime-cu12==12.8.90"],
    },
    Case {
        name: "an executable stack on glibc 2.41",
        change: |env| {
            env.patchelf("--set-execstack", "nvidia/cufft/lib/libcufft.so.11");
            env.ask(&["--glibc", "2.41"]);
        },
        run: None,
        code: "executable-stack",
        words: &["libcufft.so.11", "glibc 2.41 refuses", "patchelf --clear-execstack"],
    },
    Case {
        name: "cuDNN of another major",
        change: |env| env.replace("nvidia-cudnn-cu12==8.9.7.29", "nvidia/cudnn/lib"),
        run: Some((IMPORT, "libcudnn.so.9: cannot open shared object file")),
        code: "unresolved-needed",
        words: &["libcudnn.so.9", "nvidia-cudnn-cu12==9.10.2.21"],
    },
    Case {
        name: "another cuDNN on LD_LIBRARY_PATH",
        change: |env| env.set("LD_LIBRARY_PATH", &part("nvidia-cudnn-cu12==9.11.0.98", None).join("nvidia/cudnn/lib")),
        run: Some(("import torch; print(torch.backends.cudnn.version())", "91100")),
        code: "shadowed-library",
        words: &["9.11.0.98/nvidia/cudnn/lib/libcudnn_graph.so.9", "in place of nvidia/cudnn/lib/libcudnn_graph.so.9"],
    },
];

#[test]
fn network_broken_environments_are_found() {
    if !network() {
        return;
    }
    let Some(healthy) = healthy() else { return };
    for (gpu, driver) in [("RTX 5090", "570.124.06"), ("A100", "525.60.13"), ("RTX 4090", "570")] {
        let (report, code) = healthy.verify(gpu, driver);
        assert_eq!(
            (code, &report["summary"]["error"], &report["summary"]["warning"]),
            (Some(0), &0.into(), &0.into()),
            "{gpu}: {report}"
        );
    }
    let (report, code) = healthy.verify("GTX 1080 Ti", "570");
    assert_eq!(code, Some(1));
    assert!(named(&report, "gpu-code-missing", &["libtorch_cuda.so"]), "{report}");
    for case in &CASES {
        let changed = case.check(&healthy.path());
        if case.name == CASES[0].name {
            let readme = include_str!("../../../README.md");
            for environment in [&changed.path, &healthy.path()] {
                let said = told(environment);
                assert!(readme.contains(&said), "the README does not have this:\n{said}");
            }
        }
    }
}

/// What people are told of an environment, which they have as `.venv`.
fn told(environment: &Path) -> String {
    let folder = crate::run::folder();
    std::os::unix::fs::symlink(environment, folder.path().join(".venv")).unwrap();
    let mut gpulock = gpulock(folder.path(), &folder.path().join("cache"));
    let output = gpulock.args(["verify", "--gpu", "RTX 5090", "--driver", "570.124.06"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}
