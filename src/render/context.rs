//! What templates see of a target: the lock's own words, the options of the file, and nothing else.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::options::Options;
use super::{quote, requirements};
use crate::lock::{Code, Image, Lock, Reference, SLIM, Target, Tier};
use crate::matrix::requirement;
use crate::python::PythonVersion;
use crate::version::{Capability, Driver};

/// The values of a template.
#[derive(Serialize)]
struct Context<'l> {
    target: TargetValues<'l>,
    driver: DriverValues<'l>,
    /// GPUs with their architecture: `RTX 5090 (sm_120)`.
    gpus: Vec<String>,
    /// What serves each of them.
    service: Vec<GpuValues<'l>>,
    /// Their compute capabilities, the lowest first.
    capabilities: Vec<CapabilityValues>,
    /// TORCH_CUDA_ARCH_LIST: `9.0;12.0`.
    arch_list: String,
    /// Absent where the lock names none.
    image: Option<ImageValues<'l>>,
    /// Whether the base is one of nvidia/cuda.
    nvidia: bool,
    env: Vec<Variable<'l>>,
    /// Lines of pip's requirements file.
    requirements: Vec<String>,
    lock: LockValues<'l>,
    options: OptionValues<'l>,
}

#[derive(Serialize)]
struct TargetValues<'l> {
    name: &'l str,
    platform: String,
    /// The processor, as images of containers name it: `amd64`.
    architecture: &'static str,
    /// `3.11`; `3.13t` for the free-threaded build.
    python: String,
    /// `3.13`, free-threaded or not.
    python_minor: String,
    /// `cp311`, `cp313t`.
    python_tag: String,
    /// The ABI of that: `cp311`, `cp313t`, `cp37m`.
    python_abi: String,
    torch: String,
    variant: &'l str,
    cuda: Option<String>,
    cudnn: Option<String>,
    nccl: Option<String>,
}

#[derive(Serialize)]
struct DriverValues<'l> {
    given: Option<&'l str>,
    floor: Option<String>,
    native: Option<String>,
    tier: Option<&'static str>,
    /// The least driver that runs the stack on these GPUs; absent when unknown.
    needs: Option<Needed>,
    /// The least driver on which a container of the image is started: what its base asks for may be more.
    starts: Option<Needed>,
}

/// A driver, whole and by its numbers.
#[derive(Serialize)]
struct Needed {
    text: String,
    /// Without zeros at the end: a driver may be called by two numbers.
    numbers: Vec<u32>,
}

#[derive(Serialize)]
struct GpuValues<'l> {
    name: &'l str,
    /// `sm_120`
    sm: &'l str,
    /// The entry of torch's list of architectures that serves it; absent when unknown.
    from: Option<&'l str>,
}

#[derive(Serialize)]
struct CapabilityValues {
    major: u32,
    minor: u32,
}

#[derive(Serialize)]
struct ImageValues<'l> {
    os: &'l str,
    flavor: &'l str,
    base: Option<ReferenceValues<'l>>,
    uv: Option<String>,
    small: Option<ReferenceValues<'l>>,
    requires: Option<&'l str>,
}

#[derive(Serialize)]
struct ReferenceValues<'l> {
    name: &'l str,
    digest: Option<&'l str>,
    /// Name, and digest where it is known: what FROM takes.
    at: String,
}

#[derive(Serialize)]
struct Variable<'l> {
    name: &'l str,
    /// As the manifest has it.
    value: &'l str,
    /// What it is in a container of the image, where folders that the image needs come first.
    inside: String,
}

#[derive(Serialize)]
struct LockValues<'l> {
    digest: String,
    file: &'l str,
}

#[derive(Serialize)]
struct OptionValues<'l> {
    image: Option<&'l str>,
    gpus: Option<u32>,
    command: &'l [String],
    constraint: Option<&'l str>,
    dockerfile: Option<&'l str>,
    /// The folder of that.
    context: Option<&'l str>,
    folder: Option<&'l str>,
}

/// The values for `target`; `lock_file` is the name of the lock in the folder of the file.
pub(super) fn context(lock: &Lock, target: &Target, lock_file: &str, options: &Options) -> Value {
    let shown = |value: Option<&dyn ToString>| value.map(ToString::to_string);
    let capabilities = capabilities(target);
    let values = serde_json::to_value(Context {
        target: TargetValues {
            name: &target.name,
            platform: target.platform.to_string(),
            architecture: target.platform.architecture(),
            python: target.python.to_string(),
            python_minor: format!("{}.{}", target.python.major, target.python.minor),
            python_tag: target.python.tag(),
            python_abi: python_abi(target.python),
            torch: target.torch.to_string(),
            variant: &target.variant,
            cuda: shown(target.cuda.as_ref().map(|value| value as _)),
            cudnn: shown(target.cudnn.as_ref().map(|value| value as _)),
            nccl: shown(target.nccl.as_ref().map(|value| value as _)),
        },
        driver: DriverValues {
            given: target.driver.given.as_deref(),
            floor: shown(target.driver.floor.as_ref().map(|value| value as _)),
            native: shown(target.driver.native.as_ref().map(|value| value as _)),
            tier: target.driver.tier.map(|tier| tier.name()),
            needs: needed(target).map(Needed::new),
            starts: starting(target).map(Needed::new),
        },
        gpus: target.gpus.iter().map(|gpu| format!("{} ({})", gpu.name, gpu.sm)).collect(),
        service: target
            .gpus
            .iter()
            .map(|gpu| GpuValues { name: &gpu.name, sm: &gpu.sm, from: gpu.from.as_deref() })
            .collect(),
        arch_list: capabilities.iter().map(ToString::to_string).collect::<Vec<_>>().join(";"),
        capabilities: capabilities.iter().map(|one| CapabilityValues { major: one.major, minor: one.minor }).collect(),
        image: target.image.as_ref().map(ImageValues::new),
        nvidia: target.image.as_ref().is_some_and(|image| image.flavor != SLIM),
        env: target
            .env
            .iter()
            .map(|(name, value)| Variable { name, value, inside: inside(target, name, value) })
            .collect(),
        requirements: lines(lock, target),
        lock: LockValues { digest: lock.digest(), file: lock_file },
        options: OptionValues {
            image: options.image.as_deref(),
            gpus: options.gpus.map(Into::into),
            command: &options.command,
            constraint: options.constraint.as_deref(),
            dockerfile: options.dockerfile.as_deref(),
            context: options.dockerfile.as_deref().map(|file| file.rsplit_once('/').map_or(".", |(folder, _)| folder)),
            folder: options.folder.as_deref(),
        },
    });
    // Names, strings and numbers alone: there is nothing that JSON could not hold.
    values.unwrap_or_default()
}

impl Needed {
    fn new(driver: Driver) -> Self {
        Self { numbers: numbers(&driver), text: driver.to_string() }
    }
}

impl<'l> ImageValues<'l> {
    fn new(image: &'l Image) -> Self {
        Self {
            os: &image.os,
            flavor: &image.flavor,
            base: image.base.as_ref().map(ReferenceValues::new),
            uv: image.uv.as_ref().map(|uv| ReferenceValues::new(uv).at),
            small: image.small.as_ref().map(ReferenceValues::new),
            requires: image.requires.as_deref(),
        }
    }
}

impl<'l> ReferenceValues<'l> {
    fn new(reference: &'l Reference) -> Self {
        let digest = reference.digest.as_deref();
        let at = digest.map_or_else(|| reference.name.clone(), |digest| format!("{}@{digest}", reference.name));
        Self { name: &reference.name, digest, at }
    }
}

/// The ABI tag of CPython, which before 3.8 had an `m` for its allocator.
///
/// Source: https://docs.python.org/3/whatsnew/3.8.html, "Build and C API Changes" (the `m` flag is gone from 3.8 on).
fn python_abi(python: PythonVersion) -> String {
    let flag = if (python.major, python.minor) < (3, 8) { "m" } else { "" };
    format!("{}{flag}", python.tag())
}

/// The value of a variable in a container of the image. A value of the user's own stands for that of the image as a whole: the
/// environment with torch stays in PATH, and cuda-compat, where the driver needs it, in the library path.
fn inside(target: &Target, name: &str, value: &str) -> String {
    let has_compat = target.image.as_ref().is_some_and(|image| image.flavor != SLIM);
    let folder = match name {
        "PATH" => "/opt/venv/bin",
        "LD_LIBRARY_PATH" if has_compat && target.driver.tier == Some(Tier::Forward) => "/usr/local/cuda/compat",
        _ => return value.to_owned(),
    };
    match value {
        // An empty entry would be the folder that a program is started in.
        "" => folder.to_owned(),
        _ if value.split(':').next() == Some(folder) => value.to_owned(),
        _ => format!("{folder}:{value}"),
    }
}

/// The compute capabilities of the GPUs.
fn capabilities(target: &Target) -> BTreeSet<Capability> {
    target.gpus.iter().filter_map(|gpu| gpu.sm.parse().ok()).collect()
}

/// The least driver that runs the stack on the GPUs: the floor of the CUDA family, unless a GPU needs the driver to compile
/// PTX, which an older one than the native cannot. With cuda-compat it is the one that the lock was made for.
fn needed(target: &Target) -> Option<Driver> {
    let driver = &target.driver;
    if driver.tier == Some(Tier::Forward) {
        return driver.given.as_ref()?.parse().ok();
    }
    let compiles = target.gpus.iter().any(|gpu| gpu.code == Code::Ptx);
    if compiles { driver.native.clone() } else { driver.floor.clone() }
}

/// The same for a container: a base of nvidia/cuda has the container runtime ask for the native driver (`NVIDIA_REQUIRE_CUDA`).
/// Where the lock is for an older one it is taken to be among the branches that the base makes an exception for.
fn starting(target: &Target) -> Option<Driver> {
    let needed = needed(target);
    let asks = target.image.as_ref().is_some_and(|image| image.flavor != SLIM && image.requires.is_some());
    let is_told_otherwise = target.env.contains_key("NVIDIA_REQUIRE_CUDA") || requirement::is_disabled(&target.env);
    match target.driver.tier {
        None | Some(Tier::Native) if asks && !is_told_otherwise => target.driver.native.clone().max(needed),
        _ => needed,
    }
}

fn numbers(driver: &Driver) -> Vec<u32> {
    let mut numbers = driver.numbers().to_vec();
    while numbers.len() > 1 && numbers.last() == Some(&0) {
        numbers.pop();
    }
    numbers
}

/// One line a package, each with its hash, as pip's requirements file has them.
fn lines(lock: &Lock, target: &Target) -> Vec<String> {
    let mut lines = requirements::options(lock, target);
    for (name, package) in &target.packages {
        let Some((_, wheel)) = lock.wheel(package) else { continue };
        lines.push(match &wheel.url {
            Some(url) => format!("{name} @ {} --hash=sha256:{}", quote::url(url), wheel.sha256),
            None => format!("{name}=={} --hash=sha256:{}", package.version, wheel.sha256),
        });
    }
    lines
}
