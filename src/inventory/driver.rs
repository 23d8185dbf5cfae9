//! The driver's own user-space libraries, cuda-compat packages and stubs: takes file names, gives which they are.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::{Library, Loader, Root};
use crate::version::Driver;

/// The name by which programs ask for it.
const SONAME: &str = "libcuda.so.1";

/// The libraries that the container runtime mounts for CUDA, NVML and video, each of one version with the kernel's driver
/// (github.com/NVIDIA/libnvidia-container at 00b4b47e, `src/nvc_info.c`: `utility_libs`, `compute_libs`, `video_libs`).
/// Those for graphics are not among them: no training loads them, and others have libraries of the same names.
const LIBRARIES: [&str; 19] = [
    CUDA,
    "libcudadebugger",
    "libnvidia-ml",
    "libnvidia-cfg",
    "libnvidia-nscq",
    "libnvidia-opencl",
    "libnvidia-gpucomp",
    "libnvidia-ptxjitcompiler",
    "libnvidia-fatbinaryloader",
    "libnvidia-allocator",
    "libnvidia-compiler",
    "libnvidia-pkcs11",
    "libnvidia-pkcs11-openssl3",
    "libnvidia-nvvm",
    "libnvidia-tileiras",
    "libvdpau_nvidia",
    "libnvidia-encode",
    "libnvidia-opticalflow",
    "libnvcuvid",
];
/// The one that CUDA programs open.
const CUDA: &str = "libcuda";
/// Folders of cuda-compat: in nvidia/cuda and in conda, and the one for Jetson (github.com/NVIDIA/nvidia-container-toolkit,
/// `pkg/nvcdi/lib-csv.go`). Images of NGC have its libraries one folder deeper, in `compat/lib.real`, where the loader
/// finds them once a check of the driver has passed when the container starts.
const COMPAT: [&str; 3] = ["compat", "cuda-compat", JETSON];
const JETSON: &str = "compat_orin";

/// Which library of a driver a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DriverFileKind {
    /// The driver's library, `libcuda.so.1`: comes with the kernel driver and must match it.
    Driver,
    /// Of a cuda-compat package (`/usr/local/cuda-12.8/compat`, conda's `cuda-compat`): a newer library for an older kernel driver.
    Compat,
    /// To link against, not to run with (`stubs/libcuda.so`).
    Stub,
}

/// A file of the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverFile {
    /// Which one.
    pub kind: DriverFileKind,
    /// Which library, without its ending: `libcuda`.
    pub library: &'static str,
    /// Where it is, inside the root.
    pub path: PathBuf,
    /// The file that it leads to.
    pub file: PathBuf,
    /// The version in that file's name: `libcuda.so.570.124.06`.
    pub version: Option<Driver>,
}

impl DriverFile {
    /// What `path` is, by its name and folder, if it is of a driver.
    pub fn of(root: &Root, path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let after = |library: &&&str| {
            let after = name.strip_prefix(**library).and_then(|rest| rest.strip_prefix(".so"));
            after.is_some_and(|after| after.is_empty() || after.starts_with('.'))
        };
        let library = LIBRARIES.iter().find(after)?;
        let file = root.resolve(path).ok()?;
        let version = file.file_name()?.to_str()?.strip_prefix(library)?.strip_prefix(".so.");
        let version = version.filter(|text| text.contains('.'));
        let within = |path: &Path| path.parent().and_then(Path::file_name).map(std::ffi::OsStr::to_os_string);
        // A link to a stub is the stub under another name.
        let kind = match (within(path), within(&file)) {
            (Some(folder), _) if folder == "stubs" => DriverFileKind::Stub,
            (_, Some(folder)) if folder == "stubs" => DriverFileKind::Stub,
            _ if compat(path).is_some() => DriverFileKind::Compat,
            _ => DriverFileKind::Driver,
        };
        Some(Self { kind, library, path: path.to_owned(), version: version.and_then(|text| text.parse().ok()), file })
    }

    /// Whether it is `libcuda`, which decides.
    pub fn is_cuda(&self) -> bool {
        self.library == CUDA
    }

    /// Whether it is of the cuda-compat package for Jetson, whose drivers have versions of their own.
    pub fn is_for_jetson(&self) -> bool {
        compat(&self.path) == Some(JETSON)
    }
}

/// The folder of cuda-compat that a file lies in, or in a folder of which.
fn compat(path: &Path) -> Option<&'static str> {
    let folders = path.ancestors().skip(1).take(2).filter_map(Path::file_name);
    COMPAT.into_iter().find(|compat| folders.clone().any(|folder| folder == *compat))
}

/// The driver's files in the loader's folders, in cuda-compat's own folders, and among the subject's libraries; sorted.
pub(super) fn find(root: &Root, loader: &Loader, libraries: &[Library]) -> Vec<DriverFile> {
    let mut paths: BTreeSet<PathBuf> = BTreeSet::new();
    for folder in loader.defaults.iter().chain(&loader.configured) {
        paths.insert(folder.join(SONAME));
    }
    let cached = loader.cache.iter().flat_map(|cache| cache.entries());
    paths.extend(cached.filter(|entry| entry.name == SONAME).map(|entry| entry.path.clone()));
    let local = Path::new("/usr/local");
    for name in root.list(local).into_iter().filter(|name| name.as_bytes().starts_with(b"cuda")) {
        paths.insert(local.join(name).join("compat").join(SONAME));
    }
    for library in libraries {
        paths.extend(std::iter::once(&library.place).chain(&library.others).cloned());
    }
    let found: Vec<DriverFile> = paths.iter().filter_map(|path| DriverFile::of(root, path)).collect();
    // Several paths may lead to one file: the driver's own chain of links, `/lib` and `/usr/lib`.
    let mut seen = BTreeSet::new();
    found.into_iter().filter(|file| seen.insert((file.kind, file.file.clone()))).collect()
}
