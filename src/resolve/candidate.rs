//! Candidates for torch: the builds of the matrix for a platform, then what an index has beyond the matrix.

use std::sync::Arc;

use super::{Context, Request};
use crate::diag::Failure;
use crate::matrix::TorchBuild;
use crate::python::PackageName;
use crate::version::pep440::local_label;
use crate::version::{Cuda, Pep440};

/// One torch wheel set that could be chosen.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The version as its index has it, unique among the candidates.
    pub version: Pep440,
    /// The index that it comes from.
    pub index: Arc<str>,
    /// Facts; absent for a version that the matrix does not know.
    pub build: Option<TorchBuild>,
}

impl Candidate {
    /// The CUDA that it was built with, where known.
    pub fn cuda(&self) -> Option<Cuda> {
        self.build.as_ref().and_then(|build| build.row().cuda)
    }

    /// Wheel label: `cu128`.
    pub fn variant(&self) -> Option<String> {
        self.build.as_ref().map(|build| build.row().variant.clone()).or_else(|| local_label(&self.version))
    }

    /// Version without local label.
    pub fn public(&self) -> Pep440 {
        self.version.clone().without_local()
    }

    /// `2.8.0+cu128`, also for PyPI's own builds: what people and torch itself call it.
    pub fn label(&self) -> String {
        self.build.as_ref().map_or_else(|| self.version.to_string(), |build| build.labelled().to_string())
    }
}

/// All candidates of a request, ascending by version.
///
/// # Errors
/// When the matrix or an index cannot be read.
pub fn candidates(request: &Request, context: &Context<'_>) -> Result<Vec<Candidate>, Failure> {
    let torch: PackageName = "torch".parse().expect("a good name");
    let facts = context.matrix.torch()?;
    let platform = request.target.platform;
    let default = context.default_index;
    let mut candidates: Vec<Candidate> = Vec::new();
    if let Some(index) = request.pinned_index(&torch) {
        // One index alone: what it has, with the facts that the matrix has for the same release and label.
        for version in context.catalog.versions(index, &torch)?.iter() {
            let build = facts.builds(platform).find(|build| {
                build.release().version == version.clone().without_local()
                    && match local_label(version) {
                        Some(label) => build.row().variant == label,
                        None => build.row().index == default,
                    }
            });
            candidates.push(Candidate { version: version.clone(), index: index.into(), build });
        }
    } else {
        for build in facts.builds(platform) {
            let index = build.row().index.as_str().into();
            candidates.push(Candidate { version: build.version(default), index, build: Some(build) });
        }
        let newest = facts.newest();
        for version in context.catalog.versions(default, &torch)?.iter() {
            if version.is_stable() && newest.is_none_or(|newest| version > newest) {
                candidates.push(Candidate { version: version.clone(), index: default.into(), build: None });
            }
        }
    }
    candidates.sort_by(|a, b| a.version.cmp(&b.version));
    candidates.dedup_by(|a, b| a.version == b.version);
    Ok(candidates)
}

/// Builds in few words, by variant: `cu128 (2.7.0 to 2.11.0), cu129 (2.8.0, 2.13.0)`.
pub fn summary<'a>(candidates: impl IntoIterator<Item = &'a Candidate>) -> String {
    let mut groups: Vec<(Option<Cuda>, String, Vec<Pep440>)> = Vec::new();
    for candidate in candidates {
        let variant = candidate.variant().unwrap_or_else(|| "unknown variant".into());
        match groups.iter_mut().find(|(_, known, _)| *known == variant) {
            Some((_, _, versions)) => versions.push(candidate.public()),
            None => groups.push((candidate.cuda(), variant, vec![candidate.public()])),
        }
    }
    groups.sort();
    let words: Vec<String> = groups
        .iter()
        .map(|(_, variant, versions)| match &versions[..] {
            [] => variant.clone(),
            [one] => format!("{one}+{variant}"),
            [first, .., last] => format!("{variant} ({first} to {last})"),
        })
        .collect();
    if words.is_empty() { "none".into() } else { words.join(", ") }
}
