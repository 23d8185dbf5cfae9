//! Which files of an index page the snapshot keeps: wheels for CPython 3.7 and later on Linux with glibc, of stable
//! releases.

use std::collections::BTreeMap;

use crate::python::{PackageName, WheelName};
use crate::registry::Listed;
use crate::version::Pep440;

/// What a wheel runs on: the first of its platform tags that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    Any,
    X86,
    Arm,
}

/// A file that is kept.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub(super) listed: Listed,
    pub(super) class: Class,
}

/// Releases older than these are left out: nobody can use them with what the matrix describes.
const FLOORS: [(&str, &str); 4] =
    [("torch", "1.13.0"), ("torchvision", "0.14.0"), ("torchaudio", "0.13.0"), ("triton", "2.0.0")];
/// Packages outside the GPU family: releases without a wheel since then are left out.
const SINCE: &str = "2020-06-01T00:00:00Z";

/// The files of a page that are kept, by release, each release by file name. `until`: later uploads are left out.
pub(super) fn kept(package: &PackageName, gpu: bool, page: Vec<Listed>, until: &str) -> BTreeMap<Pep440, Vec<Kept>> {
    let floor = FLOORS.iter().find(|(name, _)| *name == package.as_str());
    let floor: Option<Pep440> = floor.and_then(|(_, version)| version.parse().ok());
    let mut releases: BTreeMap<Pep440, Vec<Kept>> = BTreeMap::new();
    for listed in page {
        let name = &listed.wheel.name;
        let Some(class) = class(name) else { continue };
        let late = uploaded(&listed) > until;
        let old = floor.as_ref().is_some_and(|floor| name.version < *floor);
        if late || old || name.version.any_prerelease() || listed.wheel.sha256.is_none() || listed.wheel.size.is_none()
        {
            continue;
        }
        releases.entry(name.version.clone()).or_default().push(Kept { listed, class });
    }
    if !gpu {
        let young = |wheels: &[Kept]| wheels.iter().any(|kept| uploaded(&kept.listed) >= SINCE);
        let newest = releases.keys().next_back().cloned();
        let any = releases.values().any(|wheels| young(wheels));
        releases.retain(|version, wheels| young(wheels) || (!any && Some(version) == newest.as_ref()));
    }
    for wheels in releases.values_mut() {
        wheels.sort_by(|a, b| a.listed.wheel.name.file.cmp(&b.listed.wheel.name.file));
    }
    releases
}

/// RFC 3339 in UTC, as text: these compare as the times do. An index that does not tell counts as long ago.
fn uploaded(listed: &Listed) -> &str {
    listed.uploaded.as_deref().unwrap_or("")
}

/// The class of a wheel, if its tags are among those that are kept.
fn class(name: &WheelName) -> Option<Class> {
    // The last three parts, whether a build number stands before them or not.
    let mut tags = name.file.strip_suffix(".whl")?.rsplit('-');
    let (platform, abi, python) = (tags.next()?, tags.next()?, tags.next()?);
    let abi3 = abi.split('.').any(|abi| abi == "abi3");
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let fits = python.split('.').any(|tag| match (tag.strip_prefix("py3"), tag.strip_prefix("cp3")) {
        (Some(minor), _) => digits(minor),
        (_, Some("")) => true,
        (_, Some(minor)) => digits(minor) && (abi3 || minor.parse::<u32>().is_ok_and(|minor| minor >= 7)),
        _ => false,
    });
    let class = platform.split('.').find_map(|tag| {
        let linux = |machine: &str| {
            let rest = tag.strip_suffix(machine).and_then(|rest| rest.strip_suffix('_'));
            rest.is_some_and(|rest| rest == "linux" || rest.starts_with("manylinux"))
        };
        match tag {
            "any" => Some(Class::Any),
            _ if linux("x86_64") => Some(Class::X86),
            _ if linux("aarch64") => Some(Class::Arm),
            _ => None,
        }
    })?;
    fits.then_some(class)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::python::Wheel;

    fn listed(file: &str, uploaded: &str) -> Listed {
        let wheel = Wheel {
            name: file.parse().unwrap(),
            index: "i".into(),
            url: None,
            sha256: Some("0".into()),
            size: Some(1),
            requires_python: None,
            yanked: false,
            reason: None,
        };
        Listed { wheel: Arc::new(wheel), uploaded: Some(uploaded.into()), requires_python: None }
    }

    #[test]
    fn tags() {
        let of = |file: &str| class(&file.parse().unwrap());
        assert_eq!(of("x-1-cp37-cp37m-manylinux1_x86_64.whl"), Some(Class::X86));
        assert_eq!(of("x-1-cp313-cp313t-manylinux_2_28_aarch64.whl"), Some(Class::Arm));
        assert_eq!(of("x-1-2-py3-none-any.whl"), Some(Class::Any));
        assert_eq!(of("x-1-py2.py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"), Some(Class::X86));
        assert_eq!(of("x-1-cp36-abi3-linux_x86_64.whl"), Some(Class::X86));
        for file in [
            "x-1-cp36-cp36m-manylinux1_x86_64.whl",
            "x-1-py2-none-any.whl",
            "x-1-pp310-pypy310_pp73-manylinux2014_x86_64.whl",
            "x-1-cp311-cp311-musllinux_1_2_x86_64.whl",
            "x-1-cp311-cp311-manylinux2014_i686.whl",
            "x-1-cp311-cp311-win_amd64.whl",
        ] {
            assert_eq!(of(file), None, "{file}");
        }
    }

    #[test]
    fn releases() {
        let page = || {
            vec![
                listed("x-1.0-py3-none-any.whl", "2019-01-01T00:00:00Z"),
                listed("x-1.1-py3-none-any.whl", "2019-06-01T00:00:00Z"),
                listed("x-1.2rc1-py3-none-any.whl", "2021-06-01T00:00:00Z"),
                listed("x-1.2-py3-none-any.whl", "2026-06-01T00:00:00Z"),
            ]
        };
        let versions = |gpu, until| {
            let kept = kept(&"x".parse().unwrap(), gpu, page(), until);
            kept.keys().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(versions(true, "2027-01-01T00:00:00Z"), "1.0 1.1 1.2");
        assert_eq!(versions(false, "2027-01-01T00:00:00Z"), "1.2");
        assert_eq!(versions(false, "2026-01-01T00:00:00Z"), "1.1");
    }
}
