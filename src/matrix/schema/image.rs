//! `image/*.toml`: the operating systems that images are made of, the images of nvidia/cuda, and where Python is from.

use serde::Deserialize;

use crate::python::{Platform, PythonVersion};
use crate::version::{Cuda, CudaRelease, Glibc};

/// `image/os.toml`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OsFile {
    /// Operating systems.
    #[serde(rename = "os")]
    pub systems: Vec<OsRow>,
}

/// A release of an operating system.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OsRow {
    /// What it is called in the tag of another image (`ubuntu22.04`) and as an image (`ubuntu:22.04`).
    pub names: Vec<String>,
    /// The Python that its package `python3` installs: `3.10`.
    pub python: String,
    /// Its glibc.
    pub glibc: Glibc,
    /// Reference of the image that holds the bare system; absent where images are not made of it.
    pub image: Option<String>,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// `image/nvidia-cuda.toml`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CudaImageFile {
    /// Name of the repository: `nvidia/cuda`.
    pub repository: String,
    /// The names under which NVIDIA keeps it.
    pub names: Vec<String>,
    /// What may stand in a tag for how much of CUDA the image holds.
    #[serde(rename = "flavor")]
    pub flavors: Vec<FlavorRow>,
    /// Images that there are.
    #[serde(rename = "release")]
    pub releases: Vec<CudaImageRow>,
    /// Images that were deleted.
    #[serde(rename = "deleted")]
    pub deleted: Vec<DeletedImageRow>,
    /// Tags that are there no more.
    #[serde(rename = "gone")]
    pub gone: Vec<GoneTagRow>,
    /// CUDA minors whose tags without a patch release are there no more.
    #[serde(rename = "gone-minor")]
    pub gone_minors: Vec<GoneMinorRow>,
    /// What images ask of the driver.
    #[serde(rename = "requirement")]
    pub requirements: Vec<ImageRequirementRow>,
}

/// How much of CUDA an image holds.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FlavorRow {
    /// As in tags: `runtime`.
    pub name: String,
    /// What that is.
    pub holds: String,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// The images of a CUDA release for some operating systems, in every flavor.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CudaImageRow {
    /// The release.
    pub cuda: CudaRelease,
    /// Operating systems, as in tags: `ubuntu22.04`.
    pub os: Vec<String>,
    /// What stands in the tag of an image with cuDNN: `cudnn8`, `cudnn`; absent where nobody has read it.
    pub cudnn: Option<String>,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// A CUDA release whose images were deleted.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DeletedImageRow {
    /// The release.
    pub cuda: CudaRelease,
    /// A release of the same minor that has images.
    pub successor: CudaRelease,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// A tag that named no release, and was removed.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GoneTagRow {
    /// The tag.
    pub tag: String,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// A CUDA minor whose tags without a patch release (`11.0-base`) were removed.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GoneMinorRow {
    /// The minor.
    pub cuda: Cuda,
    /// A release of it that has images, where one has.
    pub successor: Option<CudaRelease>,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// `NVIDIA_REQUIRE_CUDA` of the images of a CUDA minor, for some platforms.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ImageRequirementRow {
    /// The minor.
    pub cuda: Cuda,
    /// The platforms whose images have it.
    pub platforms: Vec<Platform>,
    /// All of it: `cuda>=12.8 brand=tesla,driver>=535,driver<536 ...`.
    pub expression: String,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// `image/python.toml`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PythonImageFile {
    /// Images that hold a Python.
    #[serde(rename = "image")]
    pub images: Vec<PythonImageRow>,
    /// What installs one elsewhere.
    pub uv: UvRow,
    /// Images that hold one with torch in it.
    #[serde(rename = "torch")]
    pub torches: Vec<TorchImageRow>,
}

/// A repository of images that have a torch.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TorchImageRow {
    /// What it is called.
    pub names: Vec<String>,
    /// Whether its tags begin with a release of torch; else it has a build of its own.
    pub release: bool,
    /// Who builds it, for messages.
    pub by: String,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// Images that hold a Python on an operating system: `python:3.11-slim-bookworm`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PythonImageRow {
    /// The operating system, by its first name in `os.toml`.
    pub os: String,
    /// What stands before the version: `python:`.
    pub prefix: String,
    /// What stands after it: `-slim-bookworm`.
    pub suffix: String,
    /// The versions.
    pub pythons: Vec<PythonVersion>,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// The image of uv, and the Pythons that it installs.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct UvRow {
    /// Its reference, with a tag that stays.
    pub image: String,
    /// The Pythons.
    pub pythons: Vec<PythonVersion>,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}
