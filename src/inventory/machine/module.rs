//! NVIDIA's kernel module: the one that runs, which kind it is, and whether there is one for this kernel.

use super::files::Files;
use super::libraries::LEAST_BRANCH;
use super::reading::Reading;
use crate::version::Driver;

const VERSION: &str = "/proc/driver/nvidia/version";
const MODULE: &str = "/sys/module/nvidia/version";

/// What runs in the kernel, and what could.
#[derive(Debug)]
pub struct Module {
    /// The version of the module that runs.
    pub version: Reading<Driver>,
    /// Whether it is one of the open kernel modules.
    pub open: Reading<bool>,
    /// Where the modules of this kernel are, below `/lib/modules/RELEASE`.
    pub installed: Reading<Vec<String>>,
}

fn line(files: &Files<'_>) -> Reading<String> {
    files.lines(VERSION, |line| line.starts_with("NVRM version:"))
}

/// The version of the module that runs.
pub(in crate::inventory) fn version(files: &Files<'_>) -> Reading<Driver> {
    version_of(files, line(files))
}

fn version_of(files: &Files<'_>, line: Reading<String>) -> Reading<Driver> {
    // `NVIDIA UNIX x86_64 Kernel Module  570.124.06  Wed ..`, or `NVIDIA UNIX Open Kernel Module for x86_64  570.26  ..`.
    let version = line.and_then(|line| {
        line.split_whitespace().find_map(|word| word.contains('.').then(|| word.parse().ok()).flatten())
    });
    let version = version.or(|| files.text(MODULE).and_then(|text| text.parse().ok()));
    version.and_then(|version: Driver| (version.major() >= LEAST_BRANCH).then_some(version))
}

/// `release` is that of the kernel, where it is known.
pub(super) fn read(files: &Files<'_>, release: Option<&str>) -> Module {
    let line = line(files);
    let version = version_of(files, line.clone());
    let open = line.and_then(|line| line.contains("Kernel Module").then(|| line.contains("Open Kernel Module")));
    let installed = match release {
        Some(release) => {
            let is_nvidia = |line: &str| {
                let path = line.split(':').next().unwrap_or_default();
                path.rsplit('/').next().is_some_and(|name| name.starts_with("nvidia.ko"))
            };
            files.lines(&format!("/lib/modules/{release}/modules.dep"), is_nvidia).and_then(|text| {
                let paths: Vec<String> =
                    text.lines().filter_map(|line| Some(line.split_once(':')?.0.to_owned())).collect();
                (!paths.is_empty()).then_some(paths)
            })
        }
        None => Reading::Absent("/proc/sys/kernel/osrelease".into()),
    };
    Module { version, open, installed }
}
