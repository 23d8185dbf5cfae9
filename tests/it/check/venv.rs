//! Environments made for a test, and what the rules say of them.
//!
//! [`Venv::with_torch`] is whole: no rule has anything to say of it. A test breaks one thing of it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use gpulock::check::{self, Case, Findings, Locked};
use gpulock::diag::{Diagnostic, Severity};
use gpulock::inventory::{Inventory, Options};
use gpulock::link::LinkModel;
use gpulock::lock::Lock;
use gpulock::manifest::{self, Check, Stack, Target};
use gpulock::matrix::Matrix;
use gpulock::resolve::{Machine, Request};

use crate::link::fixture::Elf;

/// A virtual environment of Python 3.11, and what lies beside it.
pub struct Venv {
    folder: tempfile::TempDir,
    variables: BTreeMap<String, String>,
}

/// What is asked about it.
#[derive(Default)]
pub struct Question<'a> {
    pub gpus: &'a [&'a str],
    pub driver: Option<&'a str>,
    pub glibc: Option<&'a str>,
    /// cuda-compat may be used.
    pub forward: bool,
    /// A lock; its target is the first.
    pub lock: Option<&'a Lock>,
    /// SHA-256 by path below site-packages.
    pub digests: &'a [(&'a str, [u8; 32])],
    /// `[checks]`
    pub checks: BTreeMap<String, Check>,
}

impl Venv {
    pub fn empty() -> Self {
        let venv = Self { folder: tempfile::tempdir().unwrap(), variables: BTreeMap::new() };
        fs::create_dir_all(venv.site()).unwrap();
        let config = "home = /nowhere/bin\ninclude-system-site-packages = false\nversion = 3.11.7\n";
        fs::write(venv.path().join("pyvenv.cfg"), config).unwrap();
        venv
    }

    /// torch 2.8.0 for CUDA 12.8 with cuDNN 9.10.2, NCCL 2.27.3 and what else it needs, each in its package.
    pub fn with_torch() -> Self {
        let venv = Self::empty();
        venv.install(
            "torch",
            "2.8.0",
            &["nvidia-cusparselt-cu12==0.7.1", "nvidia-nccl-cu12==2.27.3"],
            &[
                ("torch/lib/libtorch_global_deps.so", global_deps().needed(&["libcudart.so.12"])),
                ("torch/lib/libc10.so", c10()),
                ("torch/lib/libtorch_cpu.so", torch_cpu().needed(&["libcudnn.so.9"])),
                ("torch/lib/libtorch_cuda.so", torch_cuda().rpath(TORCH_PATH)),
                ("torch/lib/libtorch_cuda_linalg.so", Elf::library("libtorch_cuda_linalg.so")),
                ("torch/lib/libcaffe2_nvrtc.so", Elf::library("libcaffe2_nvrtc.so")),
                (TORCH_MODULE, module("_C").needed(&["libtorch_cpu.so", "libtorch_cuda.so"]).rpath("$ORIGIN/lib")),
            ],
        );
        venv.install("nvidia-cuda-runtime-cu12", "12.8.90", &[], &[(CUDART, cudart("libcudart.so.12", 12080))]);
        venv.install_cudnn([9, 10, 2]);
        venv.install("nvidia-nccl-cu12", "2.27.3", &[], &[(NCCL, nccl(22703).defines(&["ncclGroupSimulateEnd"]))]);
        let pin = ["nvidia-nvjitlink-cu12==12.8.93"];
        venv.install(
            "nvidia-cusparse-cu12",
            "12.5.8.93",
            &pin,
            &[("nvidia/cusparse/lib/libcusparse.so.12", cusparse())],
        );
        venv.install("nvidia-nvjitlink-cu12", "12.8.93", &[], &[(NVJITLINK, nvjitlink(12, 8))]);
        venv
    }

    /// torch 2.8.0 for processors only.
    pub fn with_cpu_torch() -> Self {
        let venv = Self::empty();
        let module = module("_C").needed(&["libtorch_cpu.so"]).rpath("$ORIGIN/lib");
        let files = [
            ("torch/lib/libtorch_global_deps.so", global_deps()),
            ("torch/lib/libc10.so", c10()),
            ("torch/lib/libtorch_cpu.so", torch_cpu()),
            (TORCH_MODULE, module),
        ];
        venv.install("torch", "2.8.0+cpu", &[], &files);
        venv
    }

    /// All of cuDNN, from one package.
    pub fn install_cudnn(&self, version: [u8; 3]) {
        let files: Vec<(String, Elf)> = [""].iter().chain(&CUDNN_PARTS).map(|part| cudnn(part, version)).collect();
        let files: Vec<(&str, Elf)> = files.iter().map(|(path, elf)| (path.as_str(), elf.clone())).collect();
        let [major, minor, patch] = version;
        let _ = fs::remove_dir_all(self.site().join("nvidia/cudnn"));
        self.forget("nvidia-cudnn-cu12");
        self.install("nvidia-cudnn-cu12", &format!("{major}.{minor}.{patch}.21"), &[], &files);
    }

    /// A package with its requirements and its files below site-packages, as pip records them.
    pub fn install(&self, name: &str, version: &str, requires: &[&str], files: &[(&str, Elf)]) {
        install(&self.site(), name, version, requires, files);
    }

    /// A file below site-packages, in place of what is there.
    pub fn put(&self, path: &str, elf: &Elf) {
        self.put_bytes(path, &elf.bytes());
    }

    pub fn put_bytes(&self, path: &str, bytes: &[u8]) {
        let path = self.site().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub fn remove(&self, path: &str) {
        fs::remove_file(self.site().join(path)).unwrap();
    }

    /// What describes a package goes; its files stay.
    pub fn forget(&self, name: &str) {
        let start = format!("{}-", name.replace('-', "_"));
        for info in fs::read_dir(self.site()).unwrap().flatten() {
            if info.file_name().to_string_lossy().starts_with(&start) {
                fs::remove_dir_all(info.path()).unwrap();
            }
        }
    }

    /// A link below site-packages, in place of what is there.
    pub fn link(&self, path: &str, to: &str) {
        let path = self.site().join(path);
        let _ = fs::remove_file(&path);
        std::os::unix::fs::symlink(to, path).unwrap();
    }

    pub fn rename(&self, from: &str, to: &str) {
        fs::rename(self.site().join(from), self.site().join(to)).unwrap();
    }

    /// A file outside the environment; gives its folder.
    pub fn beside(&self, path: &str, elf: &Elf) -> String {
        let path = self.folder.path().canonicalize().unwrap().join(path);
        elf.write(&path);
        path.parent().unwrap().display().to_string()
    }

    /// The job has this variable.
    pub fn set(&mut self, name: &str, value: &str) {
        self.variables.insert(name.into(), value.into());
    }

    /// What the rules say of it alone.
    pub fn check(&self) -> Findings {
        self.ask(&Question::default())
    }

    pub fn ask(&self, question: &Question<'_>) -> Findings {
        ask(&self.path(), &self.variables, &self.site(), question)
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("venv")
    }

    /// Makes a root filesystem of `folder`, with this environment at `/opt/venv`.
    pub fn put_into_root(&self, folder: &Path) {
        fs::create_dir_all(folder.join("etc")).unwrap();
        fs::write(folder.join("etc/os-release"), "ID=debian\n").unwrap();
        copy(&self.path(), &folder.join("opt/venv"));
    }

    pub fn site(&self) -> PathBuf {
        self.path().join("lib/python3.11/site-packages")
    }
}

/// A package with its requirements and its files below a folder of packages, as pip records them.
pub fn install(site: &Path, name: &str, version: &str, requires: &[&str], files: &[(&str, Elf)]) {
    let info = site.join(format!("{}-{version}.dist-info", name.replace('-', "_")));
    fs::create_dir_all(&info).unwrap();
    let mut record = String::new();
    for (path, elf) in files {
        elf.write(&site.join(path));
        record += &format!("{path},,{}\n", elf.bytes().len());
    }
    let requires: String = requires.iter().map(|text| format!("Requires-Dist: {text}\n")).collect();
    let metadata = format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}");
    fs::write(info.join("METADATA"), metadata).unwrap();
    fs::write(info.join("RECORD"), record).unwrap();
}

/// What the rules say of any subject.
pub fn ask(path: &Path, variables: &BTreeMap<String, String>, site: &Path, question: &Question<'_>) -> Findings {
    let inventory = Inventory::read(path, &Options { variables: variables.clone(), jobs: Some(1) }).expect("a subject");
    judge(&inventory, site, question)
}

/// What the rules say of what was read.
pub fn judge(inventory: &Inventory, site: &Path, question: &Question<'_>) -> Findings {
    let matrix = Matrix::embedded();
    let links = LinkModel::new(inventory, matrix.dlopen().unwrap());
    let asked = !question.gpus.is_empty() || question.driver.is_some();
    let machine = asked.then(|| machine(question, &matrix));
    let digests: BTreeMap<PathBuf, [u8; 32]> =
        question.digests.iter().map(|(path, digest)| (site.join(path).canonicalize().unwrap(), *digest)).collect();
    let glibc = question.glibc.map(|text| manifest::parse_glibc(text).unwrap());
    let case = Case {
        offers: Default::default(),
        inventory,
        links: &links,
        matrix: &matrix,
        machine: machine.as_ref(),
        glibc: glibc.as_ref(),
        digests: (!digests.is_empty()).then_some(&digests),
        locked: question.lock.map(|lock| Locked { lock, target: &lock.targets[0] }),
    };
    check::run(&case, &question.checks).unwrap()
}

fn machine(question: &Question<'_>, matrix: &Matrix) -> Machine {
    let target = Target {
        name: "job".into(),
        platform: manifest::Platform::default(),
        glibc: None,
        gpus: question.gpus.iter().map(|name| (*name).to_owned()).collect(),
        driver: question.driver.map(|text| manifest::parse_driver(text).unwrap()),
        forward_compat: question.forward,
    };
    let request = Request { target, stack: Stack::default(), packages: Vec::new(), indexes: Vec::new() };
    Machine::of(&request, matrix).unwrap()
}

pub const TORCH_MODULE: &str = "torch/_C.cpython-311-x86_64-linux-gnu.so";
pub const CUDART: &str = "nvidia/cuda_runtime/lib/libcudart.so.12";
pub const NCCL: &str = "nvidia/nccl/lib/libnccl.so.2";
pub const NVJITLINK: &str = "nvidia/nvjitlink/lib/libnvJitLink.so.12";
/// Where torch's libraries look.
pub const TORCH_PATH: &str = "$ORIGIN:$ORIGIN/../../nvidia/cuda_runtime/lib:$ORIGIN/../../nvidia/cudnn/lib:\
                              $ORIGIN/../../nvidia/nccl/lib:$ORIGIN/../../nvidia/cusparse/lib";
/// The files of cuDNN 9 besides the one that programs are linked with.
pub const CUDNN_PARTS: [&str; 7] =
    ["graph", "ops", "cnn", "adv", "engines_precompiled", "engines_runtime_compiled", "heuristic"];

fn global_deps() -> Elf {
    Elf::library("libtorch_global_deps.so").rpath(TORCH_PATH)
}

/// With a function that extensions call.
pub fn c10() -> Elf {
    Elf::library("libc10.so").defines(&[C10_FUNCTION])
}

pub const C10_FUNCTION: &str = "_ZN3c1021throwNullDataPtrErrorEv";

/// Compiled against cuDNN 9.10.2.
pub fn torch_cpu() -> Elf {
    let code = [
        // movabs rax, "CUDNN_VE"; mov [rsp+0x10], rax
        [&[0x48, 0xb8][..], b"CUDNN_VE", &[0x48, 0x89, 0x44, 0x24, 0x10]].concat(),
        // mov r15d, ".2"; mov dword [rsp+0x30], "9.10"; mov [rsp+0x34], r15w; mov qword [rsp+0x28], 6
        [&[0x41, 0xbf], &b".2\0\0"[..]].concat(),
        [&[0xc7, 0x44, 0x24, 0x30], &b"9.10"[..]].concat(),
        vec![0x66, 0x44, 0x89, 0x7c, 0x24, 0x34],
        vec![0x48, 0xc7, 0x44, 0x24, 0x28, 6, 0, 0, 0],
    ];
    let torch = Elf::library("libtorch_cpu.so").needed(&["libc10.so"]).rpath(TORCH_PATH);
    torch.holds("_ZN6caffe215GetBuildOptionsB5cxx11Ev", code.concat())
}

/// Without a path to what it needs.
pub fn torch_cuda() -> Elf {
    let needed = ["libc10.so", "libcudart.so.12", "libnccl.so.2", "libcusparse.so.12"];
    Elf::library("libtorch_cuda.so").needed(&needed).asks(&["ncclGroupSimulateEnd"])
}

/// A module of Python.
pub fn module(name: &str) -> Elf {
    Elf::default().defines(&[&format!("PyInit_{name}")]).asks(&["PyModule_Create2"])
}

/// `mov dword [rdi], value; xor eax, eax; ret`.
pub fn stores(value: u32) -> Vec<u8> {
    [&[0xc7, 0x07], &value.to_le_bytes()[..], &[0x31, 0xc0, 0xc3]].concat()
}

/// Of this version: 12080 is 12.8.
pub fn cudart(soname: &str, version: u32) -> Elf {
    Elf::library(soname).holds("cudaRuntimeGetVersion", stores(version))
}

/// Of this version: 22703 is 2.27.3.
pub fn nccl(version: u32) -> Elf {
    Elf::library("libnccl.so.2").holds("ncclGetVersion", stores(version))
}

fn cusparse() -> Elf {
    let asks = ["__nvJitLinkGetErrorLog_12_8@libnvJitLink.so.12/libnvJitLink.so.12"];
    let elf = Elf::library("libcusparse.so.12").needed(&["libnvJitLink.so.12"]).asks(&asks);
    elf.rpath("$ORIGIN/../../nvjitlink/lib")
}

/// With a function for each minor up to its own, as NVIDIA has it.
pub fn nvjitlink(major: u32, minor: u32) -> Elf {
    let code = [stores(major), stores(minor)].concat();
    let elf = Elf::library("libnvJitLink.so.12").holds("nvJitLinkVersion@@libnvJitLink.so.12", code);
    let names = (0..=minor).map(|minor| format!("__nvJitLinkGetErrorLog_12_{minor}@@libnvJitLink.so.12"));
    names.fold(elf, |elf, name| elf.defines(&[&name]))
}

/// A file of cuDNN 9: where it is, and what it is. Each tells its version in a way of its own; `part` is empty for the
/// file that programs are linked with.
pub fn cudnn(part: &str, version: [u8; 3]) -> (String, Elf) {
    let [major, minor, patch] = version;
    let number = u32::from(major) * 10_000 + u32::from(minor) * 100 + u32::from(patch);
    let soname = if part.is_empty() { "libcudnn.so.9".into() } else { format!("libcudnn_{part}.so.9") };
    let elf = Elf::library(&soname).runpath("$ORIGIN");
    let elf = match part {
        "" => elf.holds("cudnnGetVersion", stores(number)),
        "graph" => elf.holds("cudnn_graph_version", vec![patch, minor, major, 0]),
        "ops" => elf.holds("cudnnOpsVersionCheck", stores(number)),
        "cnn" => elf.holds("cudnnCnnVersionCheck", stores(number)),
        "adv" => elf.holds("cudnnAdvVersionCheck", stores(number)),
        _ => elf.section(".rodata", format!("({major} * 10000 + {minor} * 100 + {patch})\0").into_bytes()),
    };
    (format!("nvidia/cudnn/lib/{soname}"), elf)
}

/// A finding as it is read: message, evidence and fix.
pub fn words(finding: &Diagnostic) -> String {
    format!("{}\n{:?}\n{}", finding.message, finding.evidence, finding.fix.as_deref().unwrap_or_default())
}

/// The only finding that is no note; it must be of that rule.
pub fn the_problem<'f>(findings: &'f Findings, code: &str) -> &'f Diagnostic {
    let all: Vec<&Diagnostic> = findings.findings.iter().filter(|one| one.severity > Severity::Note).collect();
    match all[..] {
        [only] if only.code == code => only,
        _ => panic!("{code} is not the only problem: {all:#?}, skipped: {:?}", findings.skipped),
    }
}

/// The only finding of that rule.
pub fn the_finding<'f>(findings: &'f Findings, code: &str) -> &'f Diagnostic {
    let own: Vec<&Diagnostic> = findings.findings.iter().filter(|one| one.code == code).collect();
    match own[..] {
        [only] => only,
        _ => panic!("not one {code}: {:#?}, skipped: {:?}", findings.findings, findings.skipped),
    }
}

/// An error with that subject, whose words hold all of these.
pub fn assert_error(finding: &Diagnostic, subject: &str, said: &[&str]) {
    assert_finding(finding, Severity::Error, subject, said);
}

pub fn assert_finding(finding: &Diagnostic, severity: Severity, subject: &str, said: &[&str]) {
    assert_eq!(finding.severity, severity, "{finding:#?}");
    let own = finding.subject.as_deref().unwrap_or_default();
    assert!(own == subject || own.ends_with(&format!("/{subject}")), "{subject} is not the subject: {finding:#?}");
    for text in said {
        assert!(words(finding).contains(text), "nothing of {text:?}: {finding:#?}");
    }
}

/// The rule ran and had nothing to say, and no other calls anything a problem.
pub fn assert_quiet(findings: &Findings, code: &str) {
    assert!(findings.skipped.iter().all(|(skipped, _)| *skipped != code), "skipped: {:?}", findings.skipped);
    let said: Vec<&Diagnostic> =
        findings.findings.iter().filter(|one| one.code == code || one.severity > Severity::Note).collect();
    assert!(said.is_empty(), "{said:#?}");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (kind, to) = (entry.file_type().unwrap(), to.join(entry.file_name()));
        match () {
            () if kind.is_dir() => copy(&entry.path(), &to),
            () if kind.is_symlink() => symlink(fs::read_link(entry.path()).unwrap(), to).unwrap(),
            () => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}
