//! torch builds: every (release, variant, platform) with what it needs and the code that it carries.
//!
//! Takes `torch/*.toml`.

use std::sync::Arc;

use super::files::Files;
use super::schema::{TorchBuildRow, TorchFile, TorchReleaseRow};
use crate::diag::Failure;
use crate::python::Platform;
use crate::version::Pep440;
use crate::version::pep440::LocalSegment;

/// All torch releases, oldest first.
#[derive(Debug)]
pub struct TorchFacts {
    releases: Vec<Arc<TorchReleaseRow>>,
}

/// One build, with the release that it belongs to.
#[derive(Debug, Clone)]
pub struct TorchBuild {
    release: Arc<TorchReleaseRow>,
    row: usize,
}

impl TorchFacts {
    pub(super) fn read(files: &Files) -> Result<Self, Failure> {
        let mut releases = Vec::new();
        for path in files.paths("torch/", ".toml") {
            let file: TorchFile = files.read(path)?;
            releases.extend(file.releases.into_iter().map(Arc::new));
        }
        releases.sort_by(|a: &Arc<TorchReleaseRow>, b| a.version.cmp(&b.version));
        Ok(Self { releases })
    }

    /// Releases, oldest first.
    pub fn releases(&self) -> &[Arc<TorchReleaseRow>] {
        &self.releases
    }

    /// The newest release that the matrix knows.
    pub fn newest(&self) -> Option<&Pep440> {
        self.releases.last().map(|release| &release.version)
    }

    /// Every build for a platform.
    pub fn builds(&self, platform: Platform) -> impl Iterator<Item = TorchBuild> + '_ {
        self.releases.iter().flat_map(move |release| {
            let rows = release.builds.iter().enumerate().filter(move |(_, build)| build.platform == platform);
            rows.map(|(row, _)| TorchBuild { release: Arc::clone(release), row })
        })
    }
}

impl TorchBuild {
    /// The release that it belongs to.
    pub fn release(&self) -> &TorchReleaseRow {
        &self.release
    }

    /// Its facts.
    pub fn row(&self) -> &TorchBuildRow {
        &self.release.builds[self.row]
    }

    /// The version as its index has it: PyPI's own builds have no local label, those of other indexes do.
    pub fn version(&self, default_index: &str) -> Pep440 {
        if self.row().index == default_index { self.release.version.clone() } else { self.labelled() }
    }

    /// The version with the variant as local label: `2.8.0+cu128`.
    pub fn labelled(&self) -> Pep440 {
        self.release.version.clone().with_local(vec![LocalSegment::String(self.row().variant.clone())])
    }
}
