//! Broken environments: real wheels put together wrongly, run for real and verified. What verify says must name what the
//! run shows.
//!
//! The healthy environment is torch 2.8.0 with its torchvision and torchaudio; each case changes a copy of it that shares
//! the unchanged files (hard links), so that a case costs what it changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::environment::{Environment, report};
use crate::run::{gpulock, network, succeed, uv};

const HEALTHY: [&str; 3] = ["torch==2.8.0", "torchvision==0.23.0", "torchaudio==2.8.0"];

/// A change, what Python shows then, and what verify says.
struct Case {
    name: &'static str,
    change: fn(&Changed),
    /// Python code, and what it prints when it fails; none where only a GPU would show it.
    run: Option<(&'static str, &'static str)>,
    code: &'static str,
    /// Words of the finding: its message or evidence.
    words: &'static [&'static str],
}

const IMPORT: &str = "import torch";
const VISION: &str = "import torchvision";
/// What cuDNN checks when a part is first used.
const CHECK: &str = "import torch, ctypes; print(torch.backends.cudnn.version()); \
                     print('check', ctypes.CDLL('libcudnn.so.9').cudnnOpsVersionCheck())";

const CASES: [Case; 9] = [
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
        change: |env| env.replace("torchvision==0.22.0", "torchvision"),
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
        change: |env| env.empty("nvidia/cufft/lib/libcufft.so.11"),
        run: Some((IMPORT, "file too short")),
        code: "library-unreadable",
        words: &["libcufft.so.11"],
    },
];

#[test]
fn network_broken_environments_are_found() {
    if !network() {
        return;
    }
    let Some(healthy) = Environment::install("3.11", &HEALTHY.map(str::to_owned)) else { return };
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
        let changed = Changed::copy(&healthy.path());
        (case.change)(&changed);
        if let Some((code, shown)) = case.run {
            let output = Command::new(changed.path.join("bin/python")).args(["-c", code]).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
            assert!(text.contains(shown), "{}: the run does not show `{shown}`: {text}", case.name);
        }
        if case.name == CASES[0].name {
            let readme = include_str!("../../../README.md");
            for environment in [&changed.path, &healthy.path()] {
                let said = told(environment);
                assert!(readme.contains(&said), "the README does not have this:\n{said}");
            }
        }
        let (report, code) = changed.verify();
        println!("{}: {}", case.name, said(&report, case.code));
        assert_eq!(code, Some(1), "{}: {report}", case.name);
        assert!(named(&report, case.code, case.words), "{}: {report:#}", case.name);
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

/// The message of the first finding of that code.
fn said(report: &Value, code: &str) -> String {
    let mut findings = report["findings"].as_array().into_iter().flatten();
    findings.find(|one| one["code"] == code).map(|one| one["message"].to_string()).unwrap_or_default()
}

/// Whether a finding of that code has all the words.
fn named(report: &Value, code: &str, words: &[&str]) -> bool {
    let findings = report["findings"].as_array().into_iter().flatten();
    findings.filter(|one| one["code"] == code).any(|one| {
        let text = one.to_string();
        words.iter().all(|word| text.contains(word))
    })
}

/// A copy of an environment that shares its files.
struct Changed {
    folder: tempfile::TempDir,
    path: PathBuf,
}

impl Changed {
    fn copy(environment: &Path) -> Self {
        let folder = crate::run::folder();
        let path = folder.path().join("venv");
        succeed(Command::new("cp").arg("-al").arg(environment).arg(&path));
        Self { folder, path }
    }

    fn site(&self) -> PathBuf {
        self.path.join("lib/python3.11/site-packages")
    }

    /// Takes a file or folder from a wheel, which is downloaded once.
    fn replace(&self, requirement: &str, place: &str) {
        let parts = Path::new(env!("CARGO_TARGET_TMPDIR")).join("parts").join(requirement);
        if !parts.exists() {
            let mut install = uv().unwrap();
            install.args([
                "pip",
                "install",
                "--quiet",
                "--no-cache",
                "--no-deps",
                "--python-version",
                "3.11",
                "--target",
            ]);
            succeed(install.arg(&parts).arg(requirement));
        }
        self.remove(place);
        succeed(Command::new("cp").arg("-a").arg(parts.join(place)).arg(self.site().join(place)));
    }

    fn remove(&self, place: &str) {
        succeed(Command::new("rm").arg("-rf").arg(self.site().join(place)));
    }

    fn empty(&self, place: &str) {
        self.remove(place);
        fs::write(self.site().join(place), "").unwrap();
    }

    fn verify(&self) -> (Value, Option<i32>) {
        report(gpulock(self.folder.path(), &self.folder.path().join("cache")), &self.path, &[])
    }
}
