//! The torch that a stage's pip installs: takes its commands, gives release and build where both are certain.

use std::collections::BTreeSet;
use std::ops::Range;

use super::install::Install;
use super::read::Dockerfile;
use crate::diag::Failure;
use crate::matrix::{Matrix, TorchBuild};
use crate::python::Platform;
use crate::version::pep440::{Operator, local_label};
use crate::version::{Cuda, Pep440};

/// A torch that is installed.
#[derive(Debug, Clone)]
pub struct Torch {
    /// The release, where it is pinned.
    pub release: Option<Pep440>,
    /// The build, where the index or the label says which.
    pub build: Option<TorchBuild>,
    /// Whether it is certainly one without CUDA: for CPUs, or the GPUs of others.
    pub is_other: bool,
    /// Whether it is certainly one for CUDA.
    pub is_cuda: bool,
    /// Where it is named.
    pub span: Range<usize>,
}

impl Torch {
    /// The CUDA that it was built with, where that is known.
    pub fn cuda(&self) -> Option<Cuda> {
        self.build.as_ref()?.row().cuda
    }

    /// In words: `torch 2.3.0 (cu121)`.
    pub fn words(&self) -> String {
        let release = self.release.as_ref().map(|release| format!(" {release}")).unwrap_or_default();
        let variant = self.build.as_ref().map(|build| format!(" ({})", build.row().variant)).unwrap_or_default();
        format!("torch{release}{variant}")
    }
}

/// What the stage installs itself, or has from those that it is built on or copies packages from.
///
/// # Errors
/// When the matrix cannot be read.
pub fn of_stage(file: &Dockerfile<'_>, stage: usize, matrix: &Matrix) -> Result<Vec<Torch>, Failure> {
    let mut stages = BTreeSet::new();
    let mut left = vec![stage];
    while let Some(stage) = left.pop() {
        for one in file.chain(stage) {
            if stages.insert(one) {
                left.extend(&file.stages[one].copied);
            }
        }
    }
    let mut all = Vec::new();
    for stage in stages {
        for install in &file.stages[stage].installs {
            all.extend(of_install(install, file, stage, matrix)?);
        }
    }
    Ok(all)
}

fn of_install(
    install: &Install,
    file: &Dockerfile<'_>,
    stage: usize,
    matrix: &Matrix,
) -> Result<Option<Torch>, Failure> {
    let Some((requirement, span)) = install.of("torch") else { return Ok(None) };
    let is_pin = |one: &Operator| matches!(one, Operator::Equal | Operator::ExactEqual);
    let pinned = requirement.specifiers.iter().find(|one| is_pin(one.operator()));
    let version = pinned.map(|one| one.version().clone());
    let stage = &file.stages[stage];
    let mut torch = Torch {
        release: version.as_ref().map(Pep440::only_release),
        build: None,
        is_other: false,
        is_cuda: false,
        span: span.clone(),
    };
    let variant = match version.as_ref().and_then(local_label) {
        Some(label) => Variant::Labelled(label),
        None => variant(install, matrix)?,
    };
    torch.is_other = matches!(&variant, Variant::Labelled(label) if !label.starts_with("cu"));
    let Some(platform) = stage.platform else { return Ok(Some(torch)) };
    torch.is_cuda = match &variant {
        Variant::Labelled(label) => label.starts_with("cu"),
        // PyPI's builds for x86-64 are for CUDA, all that the matrix knows of.
        Variant::Default => platform == Platform::LinuxX86_64,
        Variant::Cuda => true,
        Variant::Unknown => false,
    };
    let Some(release) = &torch.release else { return Ok(Some(torch)) };
    let default = matrix.index()?.indexes.iter().find(|index| index.default).map_or("pypi", |index| &index.name);
    let is_it = |build: &TorchBuild| match &variant {
        Variant::Labelled(label) => build.row().variant == *label,
        Variant::Default => build.row().index == default,
        Variant::Cuda | Variant::Unknown => false,
    };
    torch.build = matrix.torch()?.builds(platform).find(|build| build.release().version == *release && is_it(build));
    Ok(Some(torch))
}

/// Which of a release's builds pip takes.
enum Variant {
    /// The one that the default index has.
    Default,
    /// The one with that label.
    Labelled(String),
    /// One for CUDA, and it cannot be told which: the label is computed.
    Cuda,
    /// It cannot be told.
    Unknown,
}

/// What follows the folder in which PyTorch's indexes lie side by side (`cu126/torch`), for an address in it.
pub(super) fn beside_indexes<'u>(url: &'u str, matrix: &Matrix) -> Result<Option<&'u str>, Failure> {
    let folders = matrix.index()?.indexes.iter().filter_map(|row| Some(row.url.rsplit_once("/whl/")?.0));
    let mut rest = folders.filter_map(|folder| url.strip_prefix(folder)?.strip_prefix("/whl/"));
    Ok(rest.next())
}

fn variant(install: &Install, matrix: &Matrix) -> Result<Variant, Failure> {
    if let Some(backend) = &install.backend {
        return Ok(if is_label(backend) { Variant::Labelled(backend.clone()) } else { Variant::Unknown });
    }
    if install.unclear || install.extra.len() > 1 || install.links.len() > 1 {
        return Ok(Variant::Unknown);
    }
    let of = |url: &str| -> Result<Variant, Failure> {
        let url = url.trim_end_matches('/');
        let known = &matrix.index()?.indexes;
        if let Some(row) = known.iter().find(|row| row.url.trim_end_matches('/') == url) {
            return Ok(match row.url.rsplit_once("/whl/") {
                Some((_, label)) => Variant::Labelled(label.to_owned()),
                None => Variant::Default,
            });
        }
        // The index of builds for CPUs is beside those of the variants.
        let beside = url.strip_suffix("/cpu").is_some_and(|base| known.iter().any(|row| row.url.starts_with(base)));
        if beside {
            return Ok(Variant::Labelled("cpu".into()));
        }
        let rest = beside_indexes(url, matrix)?.unwrap_or_default();
        // `nightly/rocm6.4` too.
        let label = rest.rsplit('/').next().unwrap_or_default();
        Ok(match is_label(label) && !label.starts_with("cu") {
            true => Variant::Labelled(label.to_owned()),
            false if rest.starts_with("cu") => Variant::Cuda,
            false => Variant::Unknown,
        })
    };
    let index = install.index.as_ref().map_or(Ok(Variant::Default), |url| of(url))?;
    // A folder of builds with one label, such as `whl/cu111/torch_stable.html`.
    if let Some(link) = install.links.first() {
        let rest = beside_indexes(link, matrix)?;
        let label = rest.and_then(|rest| rest.split('/').next()).filter(|label| is_label(label));
        let alone = install.extra.is_empty() && matches!(index, Variant::Default);
        return Ok(label.filter(|_| alone).map_or(Variant::Unknown, |label| Variant::Labelled(label.to_owned())));
    }
    // A version with a label is newer than the same without one (PEP 440), so pip takes it where both are offered.
    match (index, install.extra.first()) {
        (index, None) => Ok(index),
        (Variant::Default, Some(url)) => of(url),
        _ => Ok(Variant::Unknown),
    }
}

/// Whether it is the label of one build: `cu126`, `cpu`, `rocm6.4`, `xpu`.
fn is_label(text: &str) -> bool {
    let digits = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
    let release = |rest: &str| rest.split('.').all(digits);
    ["cpu", "xpu"].contains(&text)
        || text.strip_prefix("cu").is_some_and(digits)
        || text.strip_prefix("rocm").is_some_and(release)
}
