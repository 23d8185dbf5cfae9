//! This machine, for `--target auto` and `gpulock init --from-host`: driver, GPUs, glibc and Python, each with how it was read.
//!
//! The files are those of [`machine`](super::machine); a program is asked only for what no file says.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::machine::{self, Ask, Files, PciDevice};
use super::{Root, loader};
use crate::diag::Evidence;
use crate::matrix::GpuFacts;
use crate::matrix::schema::PciFile;
use crate::python::{Platform, PythonVersion};
use crate::version::{Driver, Glibc};

/// Where a C library lies; the first that there is counts.
const LIBRARIES: [&str; 6] =
    ["/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/usr/lib", "/lib"];

/// A fact and how it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact<T> {
    /// What is so.
    pub value: T,
    /// What was looked at, and what it showed.
    pub seen: Evidence,
}

/// What a machine says of itself; what it does not say is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Host {
    /// NVIDIA's kernel driver.
    pub driver: Option<Fact<Driver>>,
    /// Product names, each once.
    pub gpus: Vec<Fact<String>>,
    /// Platform; absent where no CUDA build runs.
    pub platform: Option<Fact<Platform>>,
    /// The C library; absent under musl.
    pub glibc: Option<Fact<Glibc>>,
    /// The Python that `python3` starts.
    pub python: Option<Fact<PythonVersion>>,
}

/// Reads the machine whose root folder is `root` and whose processor is `processor`, as [`std::env::consts::ARCH`] names it.
pub fn read(root: &Path, processor: &str, (pci, known): (&PciFile, &GpuFacts), ask: Ask<'_>) -> Host {
    let root = Root::new(fs::canonicalize(root).unwrap_or_else(|_| root.to_owned()));
    let files = Files::of(&root);
    let mut driver = machine::module::version(&files).fact().cloned();
    let models = machine::pci::models(&files).into_iter().map(|(model, number)| by_number(model, number, pci, known));
    let mut gpus = distinct(models.collect());
    if gpus.is_empty() {
        let board = machine::system::jetson(&files);
        gpus.extend(board.fact().filter(|board| board.value != machine::system::SOME_JETSON).cloned());
    }
    if driver.is_none() || gpus.is_empty() {
        // Where the driver's files are hidden (WSL, some containers) its own tool still answers.
        let smi = machine::smi::asked(ask);
        if let Some(smi) = smi.fact() {
            let version = smi.value.driver.as_ref().and_then(|text| text.parse().ok());
            driver = driver.or(version.map(|value: Driver| Fact { seen: smi.seen.clone(), value }));
            if gpus.is_empty() {
                let named = smi.value.gpus.iter();
                let named = named.map(|gpu| Fact { value: gpu.name.clone(), seen: smi.seen.clone() });
                gpus = distinct(named.collect());
            }
        }
    }
    if gpus.is_empty() {
        // Without a driver, what is on the bus says it by its number.
        let devices = machine::pci::read(&files);
        let on_bus = devices.value().into_iter().flatten().filter(|device| device.is_gpu());
        let product =
            |device: &PciDevice| Some(Fact { value: pci.device(device.device)?.0.to_owned(), seen: device.seen() });
        gpus = distinct(on_bus.filter_map(product).collect());
    }
    let (platform, glibc) = (platform(processor), loader::glibc(&root, LIBRARIES));
    Host { driver, gpus, platform, glibc, python: python(ask) }
}

/// A GPU by a name that is known: of one whose own name is none (`GRID T4-8C`, which is a part of a Tesla T4) the product of
/// its number on the bus, else the capability of that.
fn by_number(model: Fact<String>, number: Option<u16>, pci: &PciFile, known: &GpuFacts) -> Fact<String> {
    if known.find(&model.value).is_ok() {
        return model;
    }
    let Some((product, chip)) = number.and_then(|number| pci.device(number)) else { return model };
    let value = if known.find(product).is_ok() { product.to_owned() } else { chip.capability.sm() };
    Fact { value, ..model }
}

/// Each name once.
fn distinct(gpus: Vec<Fact<String>>) -> Vec<Fact<String>> {
    let mut seen = BTreeSet::new();
    gpus.into_iter().filter(|gpu| !gpu.value.is_empty() && seen.insert(gpu.value.clone())).collect()
}

fn platform(machine: &str) -> Option<Fact<Platform>> {
    let value = Platform::ALL.into_iter().find(|platform| platform.machine() == machine)?;
    cfg!(target_os = "linux").then(|| Fact { value, seen: Evidence::observed("processor", machine) })
}

/// The interpreter says its version, and whether it is built without the global lock.
fn python(ask: Ask<'_>) -> Option<Fact<PythonVersion>> {
    const CODE: &str = "import sys, sysconfig; print('%d.%d%s' % (sys.version_info[0], sys.version_info[1], \
                        't' if sysconfig.get_config_var('Py_GIL_DISABLED') else ''))";
    let text = ask("python3", &["-c", CODE]).ok()?;
    let text = text.trim();
    let value = text.parse().ok()?;
    Some(Fact { value, seen: Evidence::observed("python3 -c 'import sys ..'", text) })
}
