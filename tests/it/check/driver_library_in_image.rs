//! The driver's library in an image.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use gpulock::check::Findings;

use super::venv::{Question, ask, assert_error, assert_quiet, the_problem};
use crate::link::fixture::Elf;

const CODE: &str = "driver-library-in-image";

/// An image with a libcuda.so.1 in this folder that leads to a file of this version.
fn image(folder: &str, version: &str) -> tempfile::TempDir {
    let image = tempfile::tempdir().unwrap();
    fs::create_dir_all(image.path().join("etc")).unwrap();
    fs::write(image.path().join("etc/os-release"), "ID=debian\n").unwrap();
    let folder = image.path().join(folder);
    Elf::library("libcuda.so.1").write(&folder.join(format!("libcuda.so.{version}")));
    symlink(format!("libcuda.so.{version}"), folder.join("libcuda.so.1")).unwrap();
    image
}

fn check(image: &Path, library_path: &str, driver: &str, forward: bool) -> Findings {
    let variables = BTreeMap::from([("LD_LIBRARY_PATH".to_owned(), library_path.to_owned())]);
    ask(image, &variables, image, &Question { gpus: &["A100"], driver: Some(driver), forward, ..Question::default() })
}

#[test]
fn fires() {
    let image = image("usr/lib64", "570.124.06");
    let findings = check(image.path(), "", "550.54.15", false);
    let said = ["the library of driver 570.124.06 is part of the image", "(803)", "leads to"];
    assert!(the_problem(&findings, CODE).subject.as_ref().unwrap().starts_with("/usr/lib64/libcuda.so"));
    let subject = the_problem(&findings, CODE).subject.clone().unwrap();
    assert_error(the_problem(&findings, CODE), &subject, &said);
}

#[test]
fn stays_quiet() {
    // A package's own place, which the loader does not look into.
    let image = image("usr/local/cuda-12.8/compat", "570.124.06");
    assert_quiet(&check(image.path(), "", "580.65.06", false), CODE);
}

#[test]
fn a_machine_is_no_image() {
    let image = image("usr/lib64", "570.124.06");
    fs::create_dir_all(image.path().join("lib/modules/6.1.0")).unwrap();
    assert_quiet(&check(image.path(), "", "550.54.15", false), CODE);
}
