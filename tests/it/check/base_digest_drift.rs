//! The base that an image was built on, against the lock's.

use gpulock::check::{self, Case, Findings, Locked};
use gpulock::inventory::image::Image;
use gpulock::inventory::{Inventory, Options};
use gpulock::link::LinkModel;
use gpulock::lock::{Image as LockedImage, Lock, Reference};
use gpulock::matrix::Matrix;
use serde_json::json;

use super::venv::{assert_quiet, the_problem, words};
use crate::image::make::{Layer, Made, Packed};
use crate::image::options;

const CODE: &str = "base-digest-drift";
const LABEL: &str = "org.opencontainers.image.base.digest";

/// What is said of an image with that label under a lock with that digest.
fn check(label: Option<&str>, digest: Option<&str>) -> Findings {
    let folder = tempfile::tempdir().unwrap();
    let mut made = Made::of(&[Layer::default().file("etc/os-release", "ID=debian\n")]);
    made.start = json!({"Labels": label.map(|label| json!({LABEL: label}))});
    made.layout(folder.path(), Packed::Plain);
    let image = Image::of_layout("oci:made", folder.path(), &options(None)).unwrap();
    let inventory = Inventory::of_image(image, &Options::default());
    let matrix = Matrix::embedded();
    let links = LinkModel::new(&inventory, matrix.dlopen().unwrap());
    let mut lock: Lock = Lock::parse(crate::lock::SAMPLE, "gpulock.lock").unwrap();
    lock.targets[0].image = Some(LockedImage {
        os: "debian12".into(),
        flavor: "slim".into(),
        base: Some(Reference { name: "python:3.11-slim-bookworm".into(), digest: digest.map(str::to_owned) }),
        uv: None,
        small: None,
        requires: None,
    });
    let case = Case {
        offers: Default::default(),
        inventory: &inventory,
        links: &links,
        matrix: &matrix,
        machine: None,
        glibc: None,
        digests: None,
        locked: Some(Locked { lock: &lock, target: &lock.targets[0] }),
    };
    check::run(&case, &Default::default()).unwrap()
}

#[test]
fn fires() {
    let findings = check(Some("sha256:aa"), Some("sha256:bb"));
    let said = words(the_problem(&findings, CODE));
    for part in
        ["not on the python:3.11-slim-bookworm that the lock names", "sha256:aa", "sha256:bb", "gpulock dockerfile"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn stays_quiet() {
    assert_quiet(&check(Some("sha256:aa"), Some("sha256:aa")), CODE);
    for (label, digest, reason) in [
        (None, Some("sha256:bb"), "nothing says what the image was built on"),
        (Some("sha256:aa"), None, "the lock has no digest of a base image"),
    ] {
        let findings = check(label, digest);
        assert!(findings.findings.is_empty(), "{:?}", findings.findings);
        assert!(findings.skipped.contains(&(CODE, reason.to_owned())), "{:?}", findings.skipped);
    }
}
