//! The image of a target: what is asked, looked up for the stack.

use std::collections::BTreeMap;

use gpulock::diag::Severity;
use gpulock::lock::{Image, Lock, Reference, Target, Tier, base_driver, choose_image};
use gpulock::matrix::{CudaImage, Matrix};
use gpulock::python::Platform;

use super::SAMPLE;

/// torch 2.8.0 with CUDA 12.8 on Python 3.11, driver 570.124.06.
fn target() -> Target {
    Lock::parse(SAMPLE, "gpulock.lock").unwrap().targets.remove(0)
}

fn ask(os: &str, flavor: &str) -> BTreeMap<String, String> {
    let pairs = [("os", os), ("flavor", flavor)].into_iter().filter(|(_, value)| !value.is_empty());
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// The image, and the code of the warning and its words.
fn chosen(target: &Target, os: &str, flavor: &str) -> (Image, Option<(&'static str, String)>) {
    let (image, mut warnings) = choose_image(target, &ask(os, flavor), &Matrix::embedded()).unwrap();
    assert!(warnings.len() <= 1, "{warnings:?}");
    let warning = warnings.pop();
    (image, warning.map(|one| (one.code, format!("{} {:?} {:?}", one.message, one.evidence, one.fix))))
}

fn named(reference: &Option<Reference>) -> &str {
    reference.as_ref().map_or("", |reference| &reference.name)
}

#[test]
fn every_flavor_on_every_system() {
    const UV: &str = "ghcr.io/astral-sh/uv:0.13.0";
    let slim = [
        ("", "python:3.11-slim-bookworm", ""),
        ("debian12", "python:3.11-slim-bookworm", ""),
        ("debian13", "python:3.11-slim-trixie", ""),
        ("ubuntu20.04", "ubuntu:20.04", UV),
        ("ubuntu22.04", "ubuntu:22.04", UV),
        ("ubuntu24.04", "ubuntu:24.04", UV),
        ("ubi8", "registry.access.redhat.com/ubi8/ubi:8.10-1790754002", UV),
        ("ubi9", "registry.access.redhat.com/ubi9/ubi:9.8-1789461287", UV),
    ];
    for (os, base, uv) in slim {
        let (image, warning) = chosen(&target(), os, "slim");
        assert_eq!((named(&image.base), named(&image.uv), image.requires), (base, uv, None), "{os}");
        assert_eq!((image.small, warning), (None, None), "{os}");
    }
    for flavor in ["base", "runtime", "devel"] {
        for os in ["ubuntu20.04", "ubuntu22.04", "ubuntu24.04", "ubi8", "ubi9"] {
            let (image, warning) = chosen(&target(), os, flavor);
            // 12.8.1 is the release that torch was built with; for ubi8 only 12.8.0 is known.
            let release = if os == "ubi8" { "12.8.0" } else { "12.8.1" };
            assert_eq!(named(&image.base), format!("nvidia/cuda:{release}-{flavor}-{os}"));
            assert_eq!((named(&image.uv), image.requires.as_deref(), warning), (UV, Some("cuda>=12.8"), None));
            assert_eq!(image.small.is_some(), flavor == "devel");
        }
        let (image, warning) = chosen(&target(), "debian12", flavor);
        let (code, words) = warning.unwrap();
        assert_eq!((image.base, image.uv, code), (None, None, "image-unknown"));
        assert!(
            words.contains("on debian12 is known here") && words.contains("one of ubi8, ubi9, ubuntu20.04"),
            "{words}"
        );
    }
    assert_eq!(named(&chosen(&target(), "", "runtime").0.base), "nvidia/cuda:12.8.1-runtime-ubuntu22.04");
}

#[test]
fn what_is_not_known_is_said_to_be_unknown() {
    let says = |target: &Target, os: &str, flavor: &str, code: &str, words: &[&str]| {
        let (image, warning) = chosen(target, os, flavor);
        let (found, text) = warning.unwrap_or_else(|| panic!("{image:?}"));
        assert_eq!((found, image.base), (code, None), "{text}");
        words.iter().for_each(|word| assert!(text.contains(word), "{word}: {text}"));
    };
    says(&target(), "ubunut22.04", "", "image-unknown", &["`ubunut22.04` is not known", "did you mean `ubuntu22.04`?"]);
    says(&target(), "rocky9", "", "image-unknown", &["debian12, debian13, ubi8, ubi9"]);
    let newer = Target { cuda: Some("13.9".parse().unwrap()), ..target() };
    says(&newer, "", "base", "image-unknown", &["of CUDA 13.9 on ubuntu22.04", "flavor = \\\"slim\\\""]);
    says(&Target { cuda: None, ..target() }, "", "base", "image-unknown", &["which CUDA"]);
    let glibc = Target { glibc: Some("2.39".parse().unwrap()), ..target() };
    says(&glibc, "ubuntu22.04", "base", "image-glibc", &["need glibc 2.39, and ubuntu22.04 has 2.35"]);
    assert!(chosen(&glibc, "ubuntu24.04", "base").0.base.is_some());
    let old = Target { python: "3.7".parse().unwrap(), ..target() };
    says(&old, "ubuntu22.04", "slim", "image-python", &["Python 3.7"]);
    assert_eq!(named(&chosen(&old, "", "").0.base), "python:3.7-slim-bookworm");
}

#[test]
fn a_python_without_an_image_comes_from_uv() {
    let (image, _) = chosen(&Target { python: "3.13t".parse().unwrap(), ..target() }, "", "");
    assert_eq!((named(&image.base), named(&image.uv)), ("debian:bookworm-slim", "ghcr.io/astral-sh/uv:0.13.0"));
}

/// The sample on another GPU and driver.
fn on(gpu: &str, sm: &str, driver: &str) -> Target {
    let mut target = target();
    target.gpus[0].name = gpu.into();
    target.gpus[0].sm = sm.into();
    target.gpus.truncate(1);
    target.driver.given = Some(driver.into());
    target.driver.tier = Some(Tier::MinorVersion);
    target
}

#[test]
fn a_base_is_judged_by_all_that_it_requires() {
    // What images of CUDA 12.8 require: cuda>=12.8, or branches 470, 535, 550, 560 and 565 for every brand but GeForce.
    for (gpu, sm, driver, expected) in [
        ("A100", "sm_80", "535.161.08", None),
        ("A100", "sm_80", "550.54.15", None),
        ("A100", "sm_80", ">=535", None),
        ("RTX A6000", "sm_86", "535.161.08", None),
        ("RTX 4090", "sm_89", "570.26", None),
        ("A100", "sm_80", "530.30.02", Some("refuses to start it")),
        ("A100", "sm_80", "525.60.13", Some("refuses to start it")),
        ("RTX 4090", "sm_89", "535.161.08", Some("refuses to start it")),
        // A capability alone is that of GPUs of several brands.
        ("8.6", "sm_86", "535.161.08", Some("depends on the brand")),
    ] {
        let target = on(gpu, sm, driver);
        let (image, mut warnings) = choose_image(&target, &ask("", "base"), &Matrix::embedded()).unwrap();
        assert!(image.base.is_some() && image.requires.as_deref() == Some("cuda>=12.8"));
        let Some(expected) = expected else {
            assert!(warnings.is_empty(), "{gpu} {driver}: {warnings:?}");
            continue;
        };
        let warning = warnings.pop().unwrap_or_else(|| panic!("{gpu} {driver}"));
        let severity = if expected.starts_with("refuses") { Severity::Warning } else { Severity::Note };
        assert_eq!((warning.code, warning.severity), ("image-driver-floor", severity), "{gpu} {driver}");
        let words = format!("{} {:?} {:?}", warning.message, warning.evidence, warning.fix);
        for said in
            [expected, "requires cuda>=12.8 (driver 570.26 or later)", gpu, driver, "R470, R535, R550, R560, R565"]
        {
            assert!(words.contains(said), "{said}: {words}");
        }
        assert!(words.contains("NVIDIA_DISABLE_REQUIRE=1"), "{words}");
        assert_eq!(chosen(&target, "", "slim").1, None);
    }
}

#[test]
fn images_of_other_platforms_require_what_they_require() {
    let older = |platform: Platform| {
        let mut target = on("A100", "sm_80", "535.161.08");
        target.platform = platform;
        target.cuda = Some("12.3".parse().unwrap());
        target.variant = "cu123".into();
        chosen(&target, "", "base").1
    };
    assert_eq!(older(Platform::LinuxX86_64), None);
    assert!(older(Platform::LinuxAarch64).unwrap().1.contains("requires CUDA>=12.3 (driver 545.23.06 or later)"));
}

#[test]
fn the_drivers_that_a_base_starts_on() {
    let of = |gpu: &str, sm: &str, flavor: &str| {
        let mut target = on(gpu, sm, "570.26");
        target.image = Some(chosen(&target, "", flavor).0);
        base_driver(&target, &Matrix::embedded()).unwrap().map(|base| (base.least.to_string(), base.branches))
    };
    // R470 is below the floor of the wheels.
    assert_eq!(of("A100", "sm_80", "base"), Some(("570.26".into(), vec![535, 550, 560, 565])));
    assert_eq!(of("RTX 4090", "sm_89", "devel"), Some(("570.26".into(), vec![])));
    assert_eq!(of("A100", "sm_80", "slim"), None);
    assert_eq!(base_driver(&target(), &Matrix::embedded()).unwrap(), None);
}

#[test]
fn deleted_images_have_successors() {
    let matrix = Matrix::embedded();
    let facts = matrix.image().unwrap();
    let of = |release: &str, flavor: &str, os: &str| facts.cuda(&release.parse().unwrap(), flavor, os);
    assert!(matches!(of("11.7.0", "devel", "ubuntu22.04"),
        CudaImage::Deleted { successor, source } if successor.to_string() == "11.7.1" && source.contains("pull/311")));
    assert_eq!(of("11.7.1", "devel", "ubuntu22.04"), CudaImage::There("nvidia/cuda:11.7.1-devel-ubuntu22.04".into()));
    assert_eq!(of("13.0.2", "base", "ubuntu20.04"), CudaImage::Unknown);
    assert_eq!(of("13.0.2", "huge", "ubuntu22.04"), CudaImage::Unknown);
}
