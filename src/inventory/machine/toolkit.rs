//! CUDA toolkits of a machine: the folders `/usr/local/cuda*`, each with its version, its cuda-compat and its stubs.

use super::files::Files;
use super::libraries::{self, DriverLibrary};
use super::reading::Reading;

const LOCAL: &str = "/usr/local";
const CUDA: &str = "libcuda.so.1";

/// A toolkit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolkit {
    /// Its folder: `/usr/local/cuda-12.8`, a link too.
    pub path: String,
    /// What the folder leads to, where it is a link.
    pub leads_to: Option<String>,
    /// Its release: `12.8.1`.
    pub release: Reading<String>,
    /// The driver library of its cuda-compat.
    pub compat: Option<DriverLibrary>,
}

pub(super) fn read(files: &Files<'_>) -> Vec<Toolkit> {
    let names = files.names(LOCAL).value().cloned().unwrap_or_default();
    let is_toolkit = |name: &String| {
        name == "cuda" || name.strip_prefix("cuda-").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    names.into_iter().filter(is_toolkit).filter_map(|name| toolkit(files, &name)).collect()
}

fn toolkit(files: &Files<'_>, name: &str) -> Option<Toolkit> {
    let path = format!("{LOCAL}/{name}");
    let leads_to = files.root().resolve(path.as_ref()).ok().filter(|folder| folder != std::path::Path::new(&path));
    if let Some(folder) = &leads_to {
        files.keep_link(&path, folder);
    }
    let release = files.text(&format!("{path}/version.json")).and_then(|text| release(&text));
    let release = release.or(|| {
        files.text(&format!("{path}/version.txt")).and_then(|text| {
            let release = text.trim().strip_prefix("CUDA Version ")?;
            Some(release.to_owned())
        })
    });
    let compat = libraries::at(files, &format!("{path}/compat"), CUDA, false);
    let has_compiler = files.look(&format!("{path}/bin/nvcc")).is_some();
    let is_one = release.fact().is_some() || compat.is_some() || has_compiler;
    let leads_to = leads_to.map(|folder| crate::inventory::shown(&folder));
    is_one.then_some(Toolkit { path, leads_to, release, compat })
}

/// `{"cuda": {"name": "CUDA SDK", "version": "12.8.1"}, ..}`
fn release(text: &str) -> Option<String> {
    let json: serde_json::Value = serde_json::from_str(text).ok()?;
    let release = json.get("cuda")?.get("version")?.as_str()?;
    let is_version = release.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    is_version.then(|| release.to_owned())
}
