//! The compatibility matrix: facts about drivers, CUDA, GPUs, cuDNN and torch builds, each with its source, and a
//! snapshot of the wheels that go with them.
//!
//! Takes the embedded `compat-matrix/` and, with `--matrix DIR`, a directory laid over it; reads a file when its facts
//! are first asked for.

pub mod check;
mod cuda;
mod dlopen;
pub mod edit;
mod env_vars;
mod files;
mod gpu;
mod gpu_code;
mod image;
mod load;
mod message;
mod package;
mod pci;
pub mod requirement;
pub mod schema;
mod snapshot;
mod torch;

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::time::SystemTime;

pub use cuda::{CudaFacts, DriverRow, Tier};
pub use dlopen::matches_glob;
pub use env_vars::{EnvVarFacts, Renamed};
pub use files::Files;
pub use gpu::{Gpu, GpuFacts, GpuNameError, Served};
pub use gpu_code::{GpuCodeFacts, Usage};
pub use image::{CudaImage, ImageFacts};
pub use message::{Meaning, number, own_status};
pub use package::matches_any;
pub use snapshot::Snapshot;
pub use torch::{TorchBuild, TorchFacts};

use crate::diag::Failure;
use crate::version::Cudnn;
use schema::{
    CudnnFile, CudnnReleaseRow, DlopenFile, IndexFile, MessageFile, OsFile, PackageFile, PciFile, SnapshotFile,
};

/// The matrix; each kind of fact is read once, when first asked for.
#[derive(Debug, Default)]
pub struct Matrix {
    files: Files,
    cuda: OnceCell<CudaFacts>,
    gpu: OnceCell<GpuFacts>,
    gpu_code: OnceCell<GpuCodeFacts>,
    env_vars: OnceCell<EnvVarFacts>,
    torch: OnceCell<TorchFacts>,
    /// By minor.
    cudnn: OnceCell<BTreeMap<String, OnceCell<CudnnFile>>>,
    dlopen: OnceCell<DlopenFile>,
    index: OnceCell<IndexFile>,
    message: OnceCell<MessageFile>,
    package: OnceCell<PackageFile>,
    pci: OnceCell<PciFile>,
    os: OnceCell<OsFile>,
    image: OnceCell<ImageFacts>,
}

/// `OnceCell::get_or_try_init`, which is not stable yet.
fn once<T>(cell: &OnceCell<T>, read: impl FnOnce() -> Result<T, Failure>) -> Result<&T, Failure> {
    if let Some(value) = cell.get() {
        return Ok(value);
    }
    let value = read()?;
    Ok(cell.get_or_init(|| value))
}

impl Matrix {
    /// The embedded matrix.
    pub fn embedded() -> Self {
        Self::default()
    }

    /// The files that it is made of.
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// CUDA releases and drivers.
    ///
    /// # Errors
    /// When a file of the matrix does not have its form, here and below.
    pub fn cuda(&self) -> Result<&CudaFacts, Failure> {
        once(&self.cuda, || CudaFacts::read(&self.files))
    }

    /// GPUs and what code runs on them.
    ///
    /// # Errors
    /// As [`Matrix::cuda`].
    pub fn gpu(&self) -> Result<&GpuFacts, Failure> {
        once(&self.gpu, || self.files.read("gpu.toml").map(GpuFacts::new))
    }

    /// How libraries keep their GPU code.
    ///
    /// # Errors
    /// As [`Matrix::cuda`].
    pub fn gpu_code(&self) -> Result<&GpuCodeFacts, Failure> {
        once(&self.gpu_code, || self.files.read("gpu-code.toml").map(GpuCodeFacts::new))
    }

    /// Environment variables.
    ///
    /// # Errors
    /// As [`Matrix::cuda`].
    pub fn env_vars(&self) -> Result<&EnvVarFacts, Failure> {
        once(&self.env_vars, || self.files.read("env-vars.toml").map(EnvVarFacts::new))
    }

    /// torch builds.
    ///
    /// # Errors
    /// As [`Matrix::cuda`].
    pub fn torch(&self) -> Result<&TorchFacts, Failure> {
        once(&self.torch, || TorchFacts::read(&self.files))
    }

    /// cuDNN releases, by file.
    ///
    /// # Errors
    /// As [`Matrix::cuda`].
    pub fn cudnn(&self) -> Result<Vec<&CudnnFile>, Failure> {
        self.cudnns().iter().map(|(minor, file)| self.cudnn_file(minor, file)).collect()
    }

    /// The cuDNN release of that version, if the matrix knows it; reads the file of its minor alone.
    ///
    /// # Errors
    /// As [`Matrix::cuda`].
    pub fn cudnn_release(&self, version: &Cudnn) -> Result<Option<&CudnnReleaseRow>, Failure> {
        let minor = format!("{}.{}", version.major(), version.minor());
        let Some(file) = self.cudnns().get(&minor) else { return Ok(None) };
        Ok(self.cudnn_file(&minor, file)?.releases.iter().find(|release| release.version == *version))
    }

    fn cudnns(&self) -> &BTreeMap<String, OnceCell<CudnnFile>> {
        let minor = |path: &str| Some(path.strip_prefix("cudnn/")?.strip_suffix(".toml")?.to_owned());
        let paths = || self.files.paths("cudnn/", ".toml").into_iter();
        self.cudnn.get_or_init(|| paths().filter_map(minor).map(|minor| (minor, OnceCell::new())).collect())
    }

    fn cudnn_file<'m>(&self, minor: &str, file: &'m OnceCell<CudnnFile>) -> Result<&'m CudnnFile, Failure> {
        once(file, || self.files.read(&format!("cudnn/{minor}.toml")))
    }

    /// What is loaded by code, and what may be absent.
    ///
    /// # Errors
    /// As [`Matrix::cuda`].
    pub fn dlopen(&self) -> Result<&DlopenFile, Failure> {
        once(&self.dlopen, || self.files.read("dlopen.toml"))
    }

    /// Default package indexes.
    ///
    /// # Errors
    /// As [`Matrix::cuda`].
    pub fn index(&self) -> Result<&IndexFile, Failure> {
        once(&self.index, || self.files.read("index.toml"))
    }

    /// What people paste when something has failed.
    ///
    /// # Errors
    /// As [`Matrix::cuda`].
    pub fn message(&self) -> Result<&MessageFile, Failure> {
        once(&self.message, || self.files.read("message.toml"))
    }

    /// Which packages belong to the GPU stack.
    ///
    /// # Errors
    /// As [`Matrix::cuda`].
    pub fn package(&self) -> Result<&PackageFile, Failure> {
        once(&self.package, || self.files.read("package.toml"))
    }

    /// NVIDIA's devices on the PCI bus.
    ///
    /// # Errors
    /// As [`Matrix::cuda`].
    pub fn pci(&self) -> Result<&PciFile, Failure> {
        once(&self.pci, || self.files.read("pci.toml"))
    }

    /// Operating systems of images.
    ///
    /// # Errors
    /// As [`Matrix::cuda`].
    pub fn os(&self) -> Result<&OsFile, Failure> {
        once(&self.os, || self.files.read("image/os.toml"))
    }

    /// Images to build on.
    ///
    /// # Errors
    /// As [`Matrix::cuda`].
    pub fn image(&self) -> Result<&ImageFacts, Failure> {
        once(&self.image, || ImageFacts::read(&self.files))
    }

    /// When the snapshot was taken; `None` when it does not say.
    pub fn snapshot_taken(&self) -> Option<SystemTime> {
        let index: SnapshotFile = self.files.read("snapshot/INDEX.toml").ok()?;
        index.exclude_newer.parse::<jiff::Timestamp>().ok().map(SystemTime::from)
    }

    /// The wheels of the snapshot.
    pub fn snapshot(&self) -> Snapshot<'_> {
        Snapshot::new(&self.files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_matrix_has_its_form() {
        let matrix = Matrix::embedded();
        assert!(matrix.cuda().unwrap().cudas.len() >= 24);
        assert!(matrix.torch().unwrap().releases().len() >= 30);
        assert!(matrix.cudnn().unwrap().len() >= 30);
        for name in [
            "RTX 5090",
            "GeForce RTX 5090",
            "H100 80GB HBM3",
            "A100-SXM4-80GB",
            "sm_90",
            "9.0",
            "V100",
            "GH200",
            "Jetson Orin",
        ] {
            let gpu = matrix.gpu().unwrap().find(name);
            assert!(gpu.as_ref().is_ok_and(|gpu| gpu.known), "{name}: {gpu:?}");
        }
        assert!(matrix.dlopen().unwrap().edges.len() >= 20);
        assert!(matrix.env_vars().unwrap().is_known("CUDA_VISIBLE_DEVICES"));
        matrix.index().unwrap();
        matrix.message().unwrap();
        matrix.package().unwrap();
    }
}
