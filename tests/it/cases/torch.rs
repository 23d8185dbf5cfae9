//! torch of any release and CUDA, cut down to what the loader and the rules look at.

use std::path::Path;

use crate::check::gpu_code::code;
use crate::check::venv::{Venv, c10, cudart, cudnn, install, module, nccl};
use crate::link::fixture::Elf;

/// A build of torch with the CUDA packages that it pins.
#[derive(Clone)]
pub struct Torch {
    pub version: &'static str,
    /// 12040 is 12.4.
    pub cuda: u32,
    /// cuDNN and its package's version, where it is to be there.
    pub cudnn: Option<[u8; 3]>,
    /// 22703 is 2.27.3.
    pub nccl: u32,
    /// The code in each of ten containers of its kernels, where that is of interest.
    pub code: Vec<Vec<u8>>,
    /// What its core defines besides.
    pub defines: Vec<&'static str>,
    /// What its kernels ask of NCCL.
    pub asks: Vec<&'static str>,
    /// Processor, as in the ELF header.
    pub machine: Option<u16>,
}

/// A build without GPU code and cuDNN.
pub fn torch(version: &'static str, cuda: u32) -> Torch {
    let (code, defines, asks) = (Vec::new(), Vec::new(), Vec::new());
    Torch { version, cuda, cudnn: None, nccl: 22703, code, defines, asks, machine: None }
}

/// Where torch's libraries look: up to CUDA 12 each library has a folder, from 13 on they share one.
pub const PATH: &str = "$ORIGIN:$ORIGIN/../../nvidia/cuda_runtime/lib:$ORIGIN/../../nvidia/cudnn/lib:\
                        $ORIGIN/../../nvidia/nccl/lib:$ORIGIN/../../nvidia/cu13/lib";

impl Torch {
    pub fn code(mut self, pieces: &[Vec<u8>]) -> Self {
        self.code = pieces.to_vec();
        self
    }

    pub fn cudnn(mut self, version: [u8; 3]) -> Self {
        self.cudnn = Some(version);
        self
    }

    pub fn defines(mut self, symbols: &[&'static str]) -> Self {
        self.defines = symbols.to_vec();
        self
    }

    /// In a virtual environment of its own.
    pub fn venv(&self) -> Venv {
        let venv = Venv::empty();
        self.install(&venv.site(), &venv.site());
        venv
    }

    /// torch into one folder of packages, what it pins into another.
    pub fn install(&self, site: &Path, pinned: &Path) {
        let files = self.files();
        let files: Vec<(&str, Elf)> = files.iter().map(|(path, elf)| (*path, elf.clone())).collect();
        install(site, "torch", self.version, &[], &files);
        self.install_pinned(pinned);
    }

    /// The files of torch itself, below site-packages.
    pub fn files(&self) -> Vec<(&'static str, Elf)> {
        let runtime = self.runtime();
        let cudnn: &[&str] = match self.cudnn {
            Some([8, ..]) => &["libcudnn.so.8"],
            Some(_) => &["libcudnn.so.9"],
            None => &[],
        };
        let kernels =
            Elf::library("libtorch_cuda.so").needed(&["libc10.so", "libc10_cuda.so", runtime, "libnccl.so.2"]);
        let mut kernels = kernels.asks(&self.asks).rpath(PATH);
        if !self.code.is_empty() {
            kernels = kernels.section(".nv_fatbin", code(&[(10, &self.code)]));
        }
        let module = module("_C").needed(&["libtorch_cpu.so", "libtorch_cuda.so"]).rpath("$ORIGIN/lib");
        let global = Elf::library("libtorch_global_deps.so").needed(&[runtime]).needed(cudnn).rpath(PATH);
        let files = vec![
            ("torch/lib/libtorch_global_deps.so", global),
            ("torch/lib/libc10.so", c10().defines(&self.defines)),
            ("torch/lib/libc10_cuda.so", Elf::library("libc10_cuda.so").needed(&["libc10.so", runtime]).rpath(PATH)),
            ("torch/lib/libtorch_cpu.so", Elf::library("libtorch_cpu.so").needed(&["libc10.so"]).rpath(PATH)),
            ("torch/lib/libtorch_cuda.so", kernels),
            ("torch/lib/libtorch_cuda_linalg.so", Elf::library("libtorch_cuda_linalg.so")),
            ("torch/lib/libcaffe2_nvrtc.so", Elf::library("libcaffe2_nvrtc.so")),
            ("torch/_C.cpython-311-x86_64-linux-gnu.so", module),
        ];
        files.into_iter().map(|(path, elf)| (path, Elf { machine: self.machine, ..elf })).collect()
    }

    fn install_pinned(&self, site: &Path) {
        let (family, own) = (self.cuda / 1000, |elf: Elf| Elf { machine: self.machine, ..elf });
        let minor = format!("{family}.{}", self.cuda % 1000 / 10);
        let (package, folder) = match family {
            13.. => ("nvidia-cuda-runtime".to_owned(), "nvidia/cu13/lib"),
            _ => (format!("nvidia-cuda-runtime-cu{family}"), "nvidia/cuda_runtime/lib"),
        };
        let path = format!("{folder}/{}", self.runtime());
        install(site, &package, &format!("{minor}.90"), &[], &[(&path, own(cudart(self.runtime(), self.cuda)))]);
        let version = format!("{}.{}.{}", self.nccl / 10_000, self.nccl / 100 % 100, self.nccl % 100);
        let library = own(nccl(self.nccl).defines(&self.asks));
        let package = format!("nvidia-nccl-cu{family}");
        install(site, &package, &version, &[], &[("nvidia/nccl/lib/libnccl.so.2", library)]);
        match self.cudnn {
            Some(version @ [8, ..]) => install_cudnn8(site, &format!("nvidia-cudnn-cu{family}"), version),
            Some(version) => install_cudnn9(site, &format!("nvidia-cudnn-cu{family}"), version, &PARTS_9),
            None => {}
        }
    }

    /// The name of the CUDA runtime.
    pub fn runtime(&self) -> &'static str {
        match self.cuda / 1000 {
            11 => "libcudart.so.11.0",
            12 => "libcudart.so.12",
            _ => "libcudart.so.13",
        }
    }
}

/// The parts of cuDNN 9; the first is the file that programs are linked with.
pub const PARTS_9: [&str; 8] =
    ["", "graph", "ops", "cnn", "adv", "engines_precompiled", "engines_runtime_compiled", "heuristic"];

/// cuDNN 9 from its package, with these parts.
pub fn install_cudnn9(site: &Path, package: &str, version: [u8; 3], parts: &[&str]) {
    let [major, minor, patch] = version;
    let files: Vec<(String, Elf)> = parts.iter().map(|part| cudnn(part, version)).collect();
    let files: Vec<(&str, Elf)> = files.iter().map(|(path, elf)| (path.as_str(), elf.clone())).collect();
    install(site, package, &format!("{major}.{minor}.{patch}.70"), &[], &files);
}

/// The parts of cuDNN 8, each with the function that checks versions.
const PARTS_8: [(&str, &str); 6] = [
    ("ops_infer", "cudnnOpsInferVersionCheck"),
    ("ops_train", "cudnnOpsTrainVersionCheck"),
    ("cnn_infer", "cudnnCnnInferVersionCheck"),
    ("cnn_train", "cudnnCnnTrainVersionCheck"),
    ("adv_infer", "cudnnAdvInferVersionCheck"),
    ("adv_train", "cudnnAdvTrainVersionCheck"),
];

/// The files of cuDNN 8 by name. The one that programs are linked with does not tell its version.
pub fn cudnn8(version: [u8; 3]) -> Vec<(String, Elf)> {
    let [major, minor, patch] = version.map(u32::from);
    let number = major * 1000 + minor * 100 + patch;
    let part = |(part, check): (&str, &str)| {
        let name = format!("libcudnn_{part}.so.8");
        let elf = Elf::library(&name).holds(check, crate::check::venv::stores(number)).runpath("$ORIGIN");
        (name, elf)
    };
    let shim = ("libcudnn.so.8".to_owned(), Elf::library("libcudnn.so.8").runpath("$ORIGIN"));
    std::iter::once(shim).chain(PARTS_8.map(part)).collect()
}

/// cuDNN 8 from its package.
pub fn install_cudnn8(site: &Path, package: &str, version: [u8; 3]) {
    let [major, minor, patch] = version;
    let files: Vec<(String, Elf)> =
        cudnn8(version).into_iter().map(|(name, elf)| (format!("nvidia/cudnn/lib/{name}"), elf)).collect();
    let files: Vec<(&str, Elf)> = files.iter().map(|(path, elf)| (path.as_str(), elf.clone())).collect();
    install(site, package, &format!("{major}.{minor}.{patch}.26"), &[], &files);
}
