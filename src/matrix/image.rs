//! Images to build on: nvidia/cuda, the bare systems, and what brings a Python.
//!
//! Takes `image/*.toml`. A tag is looked up, never computed from a CUDA version alone.

use super::files::Files;
use super::schema::{
    CudaImageFile, DeletedImageRow, GoneMinorRow, GoneTagRow, ImageRequirementRow, OsFile, OsRow, PythonImageFile,
    TorchImageRow,
};
use crate::diag::Failure;
use crate::python::{Platform, PythonVersion};
use crate::version::{Cuda, CudaRelease};

/// All images.
#[derive(Debug)]
pub struct ImageFacts {
    cuda: CudaImageFile,
    systems: OsFile,
    pythons: PythonImageFile,
}

/// What is known of an image of nvidia/cuda.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CudaImage {
    /// It is there: its reference.
    There(String),
    /// It was deleted: the release of the same minor that stayed, and who says so.
    Deleted {
        /// That release.
        successor: CudaRelease,
        /// Where the deletion is from.
        source: String,
    },
    /// The matrix does not list it; it may exist all the same.
    Unknown,
}

impl ImageFacts {
    pub(super) fn read(files: &Files) -> Result<Self, Failure> {
        Ok(Self {
            cuda: files.read("image/nvidia-cuda.toml")?,
            systems: files.read("image/os.toml")?,
            pythons: files.read("image/python.toml")?,
        })
    }

    /// The operating system of that name (`ubuntu22.04`).
    pub fn system(&self, os: &str) -> Option<&OsRow> {
        self.systems.systems.iter().find(|row| row.names.first().is_some_and(|name| name == os))
    }

    /// The names of the operating systems that a bare image is known of.
    pub fn systems(&self) -> impl Iterator<Item = &str> {
        let known = self.systems.systems.iter().filter(|row| row.image.is_some());
        known.filter_map(|row| row.names.first()).map(String::as_str)
    }

    /// The image of nvidia/cuda with a CUDA release for an operating system; `flavor` is `base`, `runtime` or `devel`.
    pub fn cuda(&self, release: &CudaRelease, flavor: &str, os: &str) -> CudaImage {
        let has = |names: &[String]| names.iter().any(|name| name == os);
        let flavor_is_known = self.cuda.flavors.iter().any(|row| row.name == flavor);
        if flavor_is_known && self.cuda.releases.iter().any(|row| row.cuda == *release && has(&row.os)) {
            return CudaImage::There(format!("{}:{release}-{flavor}-{os}", self.cuda.repository));
        }
        match self.cuda.deleted.iter().find(|row| row.cuda == *release) {
            Some(row) => CudaImage::Deleted { successor: row.successor.clone(), source: row.source.clone() },
            None => CudaImage::Unknown,
        }
    }

    /// The deletion of a CUDA release's images, where none of them stayed.
    pub fn deleted(&self, release: &CudaRelease) -> Option<&DeletedImageRow> {
        let stayed = self.cuda.releases.iter().any(|row| row.cuda == *release);
        self.cuda.deleted.iter().find(|row| row.cuda == *release && !stayed)
    }

    /// The newest release of a CUDA minor that has images for an operating system.
    pub fn newest(&self, cuda: Cuda, os: &str) -> Option<&CudaRelease> {
        self.releases(cuda).filter(|(_, on)| on.iter().any(|name| name == os)).map(|(release, _)| release).max()
    }

    /// The operating systems that have images of a CUDA minor.
    pub fn systems_with(&self, cuda: Cuda) -> Vec<&str> {
        let mut systems: Vec<&str> = self.releases(cuda).flat_map(|(_, os)| os).map(String::as_str).collect();
        systems.sort_unstable();
        systems.dedup();
        systems
    }

    fn releases(&self, cuda: Cuda) -> impl Iterator<Item = (&CudaRelease, &[String])> {
        self.cuda.releases.iter().filter(move |row| row.cuda.cuda() == cuda).map(|row| (&row.cuda, &row.os[..]))
    }

    /// What the images of a CUDA minor for a platform ask of the driver; `None` when nobody has read it.
    pub fn requirement(&self, cuda: Cuda, platform: Platform) -> Option<&ImageRequirementRow> {
        self.cuda.requirements.iter().find(|row| row.cuda == cuda && row.platforms.contains(&platform))
    }

    /// The image that holds a Python on an operating system.
    pub fn python(&self, python: PythonVersion, os: &str) -> Option<String> {
        let row = self.pythons.images.iter().find(|row| row.os == os && row.pythons.contains(&python))?;
        Some(format!("{}{python}{}", row.prefix, row.suffix))
    }

    /// What is known of a repository of images that have a torch.
    pub fn torch(&self, repository: &str) -> Option<&TorchImageRow> {
        self.pythons.torches.iter().find(|row| row.names.iter().any(|name| name == repository))
    }

    /// Whether a repository is nvidia/cuda where NVIDIA itself keeps it.
    pub fn is_nvidias_cuda(&self, repository: &str) -> bool {
        self.cuda.names.iter().any(|name| name == repository)
    }

    /// Whether a repository is one of images that certainly have no torch: of CUDA, a bare system or Python.
    pub fn is_without_torch(&self, repository: &str) -> bool {
        let name = repository.strip_prefix("docker.io/").unwrap_or(repository);
        let name = name.strip_prefix("library/").unwrap_or(name);
        let of = |reference: &str| reference.split(':').next() == Some(name);
        name == self.cuda.repository
            || name.ends_with(&format!("/{}", self.cuda.repository))
            || self.systems.systems.iter().filter_map(|row| row.image.as_deref()).any(of)
            || self.pythons.images.iter().any(|row| of(&row.prefix))
    }

    /// A tag of nvidia/cuda that is there no more, and names no release.
    pub fn gone(&self, tag: &str) -> Option<&GoneTagRow> {
        self.cuda.gone.iter().find(|row| row.tag == tag)
    }

    /// What is said of the tags that name a CUDA minor alone (`11.0-base`), where they are there no more.
    pub fn gone_minor(&self, cuda: Cuda) -> Option<&GoneMinorRow> {
        self.cuda.gone_minors.iter().find(|row| row.cuda == cuda)
    }

    /// The image of uv, where it installs that Python.
    pub fn uv(&self, python: PythonVersion) -> Option<&str> {
        self.pythons.uv.pythons.contains(&python).then_some(&*self.pythons.uv.image)
    }
}
