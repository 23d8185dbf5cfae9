//! What templates see of a target: the lock's own words, and nothing that is not in it.

use std::collections::BTreeSet;

use minijinja::Value;
use minijinja::value::Serde;
use serde::Serialize;

use crate::lock::{DEFAULT_INDEX, Image, Lock, Reference, Target};
use crate::version::Capability;

/// The values of a template.
#[derive(Serialize)]
struct Context<'l> {
    target: TargetValues<'l>,
    driver: DriverValues<'l>,
    /// GPUs with their architecture: `RTX 5090 (sm_120)`.
    gpus: Vec<String>,
    /// TORCH_CUDA_ARCH_LIST: `9.0;12.0`.
    arch_list: String,
    image: ImageValues<'l>,
    /// Whether the base is one of nvidia/cuda.
    nvidia: bool,
    env: Vec<Variable<'l>>,
    /// Lines of pip's requirements file.
    requirements: Vec<String>,
    lock: LockValues<'l>,
}

#[derive(Serialize)]
struct TargetValues<'l> {
    name: &'l str,
    platform: String,
    python: String,
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
    value: &'l str,
}

#[derive(Serialize)]
struct LockValues<'l> {
    digest: String,
    file: &'l str,
}

/// The values for `target`; `lock_file` is the name of the lock in the folder that is built.
pub(super) fn context(lock: &Lock, target: &Target, image: &Image, lock_file: &str) -> Value {
    let shown = |value: Option<&dyn ToString>| value.map(ToString::to_string);
    Value::from(Serde(Context {
        target: TargetValues {
            name: &target.name,
            platform: target.platform.to_string(),
            python: target.python.to_string(),
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
        },
        gpus: target.gpus.iter().map(|gpu| format!("{} ({})", gpu.name, gpu.sm)).collect(),
        arch_list: arch_list(target),
        image: ImageValues {
            os: &image.os,
            flavor: &image.flavor,
            base: image.base.as_ref().map(ReferenceValues::new),
            uv: image.uv.as_ref().map(|uv| ReferenceValues::new(uv).at),
            small: image.small.as_ref().map(ReferenceValues::new),
            requires: image.requires.as_deref(),
        },
        nvidia: image.flavor != super::SLIM,
        env: target.env.iter().map(|(name, value)| Variable { name, value }).collect(),
        requirements: requirements(lock, target),
        lock: LockValues { digest: lock.digest(), file: lock_file },
    }))
}

impl<'l> ReferenceValues<'l> {
    fn new(reference: &'l Reference) -> Self {
        let digest = reference.digest.as_deref();
        let at = digest.map_or_else(|| reference.name.clone(), |digest| format!("{}@{digest}", reference.name));
        Self { name: &reference.name, digest, at }
    }
}

/// The compute capabilities of the GPUs, as torch's extension builder takes them.
fn arch_list(target: &Target) -> String {
    let capabilities: BTreeSet<Capability> = target.gpus.iter().filter_map(|gpu| gpu.sm.parse().ok()).collect();
    capabilities.iter().map(ToString::to_string).collect::<Vec<_>>().join(";")
}

/// One line a package, each with its hash, as pip's requirements file has them.
fn requirements(lock: &Lock, target: &Target) -> Vec<String> {
    let indexes: BTreeSet<&str> = target.packages.values().filter_map(|package| lock.index_of(package)).collect();
    let others = indexes.into_iter().filter(|name| *name != DEFAULT_INDEX).filter_map(|name| lock.indexes.get(name));
    let mut lines: Vec<String> = others.map(|url| format!("--extra-index-url {url}")).collect();
    for (name, package) in &target.packages {
        let Some((_, wheel)) = lock.wheel(package) else { continue };
        lines.push(match &wheel.url {
            Some(url) => format!("{name} @ {url} --hash=sha256:{}", wheel.sha256),
            None => format!("{name}=={} --hash=sha256:{}", package.version, wheel.sha256),
        });
    }
    lines
}
