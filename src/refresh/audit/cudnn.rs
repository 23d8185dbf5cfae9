//! Every cuDNN build that is a wheel: is it there, on which platforms, for which glibc, withdrawn or not.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use super::Audit;
use crate::diag::Failure;
use crate::matrix::Matrix;
use crate::matrix::schema::{CudnnBuildRow, CudnnReleaseRow};
use crate::python::{Platform, Wheel};
use crate::registry::Client;
use crate::version::{Cudnn, Glibc};

pub(super) fn compare(matrix: &Matrix, client: &Client, default: &str, audit: &mut Audit) -> Result<(), Failure> {
    let mut pages: BTreeMap<u32, Vec<Arc<Wheel>>> = BTreeMap::new();
    for file in matrix.cudnn()? {
        let path = format!("cudnn/{}.toml", file.cudnn);
        // Three numbers are a release that is documented, and not on an index; four are a wheel's.
        for release in file.releases.iter().filter(|release| release.version.precision() == 4) {
            for build in release.builds.iter().filter(|build| !build.platforms.is_empty()) {
                let page = match pages.entry(build.cuda) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => {
                        let Ok(package) = format!("nvidia-cudnn-cu{}", build.cuda).parse() else { continue };
                        new.insert(client.list(default, &package)?)
                    }
                };
                one(&path, release, build, page, audit);
            }
        }
    }
    Ok(())
}

fn one(path: &str, release: &CudnnReleaseRow, build: &CudnnBuildRow, page: &[Arc<Wheel>], audit: &mut Audit) {
    let same = |wheel: &&Arc<Wheel>| {
        wheel.name.version.to_string().parse().is_ok_and(|version: Cudnn| version == release.version)
            && Platform::ALL.iter().any(|platform| wheel.name.tags.linux(platform.machine()))
    };
    let wheels: Vec<&Arc<Wheel>> = page.iter().filter(same).collect();
    let mut compare = |fact: &str, matrix: Option<String>, index: Option<String>| {
        let what = format!("cuDNN {} for CUDA {}: {fact}", release.version, build.cuda);
        audit.compare("cuDNN wheels", path, &what, matrix, index);
    };
    let on = |platform: &Platform| wheels.iter().find(|wheel| wheel.name.tags.linux(platform.machine()));
    let offered: Vec<Platform> = Platform::ALL.into_iter().filter(|platform| on(platform).is_some()).collect();
    let text = |all: &[Platform]| Some(all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
    compare("platforms", text(&build.platforms), text(&offered));
    let tag = |platform: &Platform| on(platform)?.name.tags.glibc(platform.machine());
    let glibc: Option<Glibc> = offered.iter().filter_map(tag).max();
    if build.glibc.is_some() && glibc.is_some() {
        compare("glibc", build.glibc.as_ref().map(ToString::to_string), glibc.map(|glibc| glibc.to_string()));
    }
    let yanked = !wheels.is_empty() && wheels.iter().all(|wheel| wheel.yanked);
    compare("yanked", Some(release.yanked.to_string()), Some(yanked.to_string()));
}
