//! The driver's libraries in user space: where the loader finds them, and the version in the name of each file.

use std::path::{Path, PathBuf};

use super::files::Files;
use crate::inventory::{loader, shown};
use crate::version::Driver;

/// Libraries of the driver that programs ask for by name.
pub const LIBRARIES: [&str; 3] = ["libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1"];

/// Where a loader looks by default: what glibc and the distributions build into it.
const DEFAULTS: [&str; 8] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];
/// What Windows puts into its Linux machines, and the libraries of its driver there.
pub const WSL: &str = "/usr/lib/wsl";
const WSL_LIBRARIES: &str = "/usr/lib/wsl/lib";
/// Where NixOS puts the driver.
pub const NIXOS: &str = "/run/opengl-driver/lib";
/// Where packages put the driver's files, and where no loader looks unless it is told to.
const ASIDE: [&str; 7] = [
    WSL_LIBRARIES,
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
    "/usr/lib/aarch64-linux-gnu/nvidia/current",
    "/usr/lib/aarch64-linux-gnu/tegra",
    "/usr/lib/aarch64-linux-gnu/nvidia",
    "/usr/lib64/nvidia",
    NIXOS,
];
/// A branch of the driver is a number from here on; `libcuda.so.1.1` has none in its name, and the display's module of a
/// Jetson has the release of its software, 35.4.1, in its place.
pub(super) const LEAST_BRANCH: u32 = 100;

/// A file of the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverLibrary {
    /// The name that programs ask for.
    pub name: &'static str,
    /// Where it is found.
    pub path: String,
    /// The file that it leads to.
    pub file: PathBuf,
    /// The version in that file's name.
    pub version: Option<Driver>,
    /// Whether the loader looks there by itself.
    pub searched: bool,
}

/// Where libraries are looked for.
#[derive(Debug, Default)]
pub struct Search {
    /// The folders of `/etc/ld.so.conf` and what it includes.
    pub configured: Vec<String>,
}

pub(super) fn search(files: &Files<'_>) -> Search {
    for name in files.names("/etc/ld.so.conf.d").value().into_iter().flatten() {
        let _ = files.text(&format!("/etc/ld.so.conf.d/{name}"));
    }
    let _ = files.text("/etc/ld.so.conf");
    let configured = loader::configured(files.root());
    Search { configured: configured.iter().map(|folder| shown(folder)).collect() }
}

/// In the order in which the loader looks, each file once; what it does not find by itself comes last.
pub(super) fn read(files: &Files<'_>, search: &Search) -> Vec<DriverLibrary> {
    let own = search.configured.iter().map(String::as_str).filter(|folder| !is_of_32_bits(folder));
    let own = own.chain(DEFAULTS).map(|folder| (folder, true));
    let mut found: Vec<DriverLibrary> = Vec::new();
    for (folder, searched) in own.chain(ASIDE.map(|folder| (folder, false))) {
        for name in LIBRARIES {
            if let Some(library) = at(files, folder, name, searched)
                && !found.iter().any(|known| known.name == name && known.file == library.file)
            {
                found.push(library);
            }
        }
    }
    found
}

/// Whether a folder is that of libraries for 32-bit programs, which the loader passes over for others (Debian's names).
fn is_of_32_bits(folder: &str) -> bool {
    folder.split('/').any(|part| part == "i386-linux-gnu" || part == "arm-linux-gnueabihf")
}

/// The library of that name in a folder.
pub(super) fn at(files: &Files<'_>, folder: &str, name: &'static str, searched: bool) -> Option<DriverLibrary> {
    let path = format!("{}/{name}", folder.trim_end_matches('/'));
    let file = files.resolve(&path)?;
    Some(DriverLibrary { version: version(name, &file), name, path, file, searched })
}

/// `libcuda.so.570.124.06` is of driver 570.124.06.
fn version(name: &str, file: &Path) -> Option<Driver> {
    let stem = name.strip_suffix('1')?;
    let version: Driver = file.file_name()?.to_str()?.strip_prefix(stem)?.parse().ok()?;
    (version.major() >= LEAST_BRANCH && version.precision() > 1).then_some(version)
}
