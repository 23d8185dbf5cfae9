//! Every cuDNN build that is a wheel: is it there, on which platforms, for which glibc, withdrawn or not.

use std::collections::BTreeMap;

use super::Audit;
use crate::diag::Failure;
use crate::matrix::Matrix;
use crate::python::{PackageName, Platform, Wheel};
use crate::registry::Client;
use crate::version::{Cudnn, Glibc};

pub(super) fn compare(matrix: &Matrix, client: &Client, default: &str, audit: &mut Audit) -> Result<(), Failure> {
    let mut pages: BTreeMap<u32, Vec<std::sync::Arc<Wheel>>> = BTreeMap::new();
    for file in matrix.cudnn()? {
        let path = format!("cudnn/{}.toml", file.cudnn);
        for release in &file.releases {
            // Three numbers are a release that is documented, and not on an index; four are a wheel's.
            for build in release.builds.iter().filter(|_| release.version.precision() == 4) {
                if !pages.contains_key(&build.cuda) {
                    let Ok(package) = format!("nvidia-cudnn-cu{}", build.cuda).parse::<PackageName>() else { continue };
                    pages.insert(build.cuda, client.list(default, &package)?);
                }
                let page = pages.get(&build.cuda).map_or(&[][..], Vec::as_slice);
                let wheels: Vec<&Wheel> = page
                    .iter()
                    .map(AsRef::as_ref)
                    .filter(|wheel| wheel.name.version.to_string().parse().is_ok_and(|v: Cudnn| v == release.version))
                    .filter(|wheel| Platform::ALL.iter().any(|platform| wheel.name.tags.linux(platform.machine())))
                    .collect();
                let about = format!("cuDNN {} for CUDA {}", release.version, build.cuda);
                let mut compare = |fact: &str, matrix: Option<String>, index: Option<String>| {
                    audit.compare("cuDNN wheels", &path, &format!("{about}: {fact}"), matrix, index);
                };
                if build.platforms.is_empty() {
                    continue;
                }
                let on = |platform: &Platform| wheels.iter().find(|wheel| wheel.name.tags.linux(platform.machine()));
                let text = |all: &[Platform]| Some(all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
                let offered: Vec<Platform> =
                    Platform::ALL.into_iter().filter(|platform| on(platform).is_some()).collect();
                compare("platforms", text(&build.platforms), text(&offered));
                let tag = |platform: &Platform| on(platform)?.name.tags.glibc(platform.machine());
                let glibc: Option<Glibc> = offered.iter().filter_map(tag).max();
                if build.glibc.is_some() && glibc.is_some() {
                    compare("glibc", build.glibc.as_ref().map(ToString::to_string), glibc.map(|g| g.to_string()));
                }
                let yanked = !wheels.is_empty() && wheels.iter().all(|wheel| wheel.yanked);
                compare("yanked", Some(release.yanked.to_string()), Some(yanked.to_string()));
            }
        }
    }
    Ok(())
}
