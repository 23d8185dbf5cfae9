//! The image of a target: what is asked, looked up for the stack.

use std::collections::BTreeMap;

use gpulock::lock::{Image, Lock, Reference, Target, Tier, choose_image};
use gpulock::matrix::{CudaImage, Matrix};

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

#[test]
fn a_base_that_asks_for_a_newer_driver_is_told() {
    let mut older = target();
    older.driver.given = Some("550.54.15".into());
    older.driver.tier = Some(Tier::MinorVersion);
    let (image, warning) = chosen(&older, "", "base");
    let (code, words) = warning.unwrap();
    assert!(image.base.is_some() && code == "image-driver-floor");
    assert!(words.contains("requires cuda>=12.8 (driver 570.26 or later), and driver 550.54.15 is older"), "{words}");
    assert_eq!(chosen(&older, "", "slim").1, None);
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
