//! A second cuDNN in an image.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use gpulock::check::Findings;
use gpulock::diag::Severity;

use super::venv::{Question, Venv, ask, assert_quiet, cudnn, the_finding, words};
use crate::link::fixture::Elf;

const CODE: &str = "second-cudnn-in-image";

/// An image with torch at `/opt/venv`, and cuDNN of that version as the system has it.
fn image(system: Option<[u8; 3]>) -> (tempfile::TempDir, Venv) {
    let (image, venv) = (tempfile::tempdir().unwrap(), Venv::with_torch());
    venv.put_into_root(image.path());
    if let Some(version) = system {
        let (_, elf) = cudnn("", version);
        elf.write(&image.path().join("usr/lib/x86_64-linux-gnu").join(format!("libcudnn.so.{}", version[0])));
    }
    (image, venv)
}

fn check(image: &Path) -> Findings {
    let question = Question { gpus: &["A100"], driver: Some("570.124.06"), ..Question::default() };
    ask(image, &BTreeMap::new(), image, &question)
}

#[test]
fn fires() {
    let (image, _venv) = image(Some([9, 1, 0]));
    let findings = check(image.path());
    let finding = the_finding(&findings, CODE);
    assert_eq!(finding.severity, Severity::Note);
    let said = words(finding);
    for part in [
        "cuDNN 9.10.2 of a package and cuDNN 9.1.0 of its system (/usr/lib/x86_64-linux-gnu)",
        "nothing here loads the system's",
        "without `cudnn` in its tag",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// Where the system's wins for something, that is worth more than a note.
#[test]
fn is_a_warning_where_the_systems_is_loaded() {
    let (image, _venv) = image(Some([9, 1, 0]));
    let site = image.path().join("opt/venv/lib/python3.11/site-packages");
    super::venv::install(
        &site,
        "ext",
        "1.0",
        &[],
        &[("ext/_C.abi3.so", super::venv::module("_C").needed(&["libcudnn.so.9"]))],
    );
    fs::create_dir_all(image.path().join("lib64")).unwrap();
    Elf::library("ld-linux-x86-64.so.2").write(&image.path().join("lib64/ld-linux-x86-64.so.2"));
    fs::write(image.path().join("etc/ld.so.conf"), "/usr/lib/x86_64-linux-gnu\n").unwrap();
    let variables = BTreeMap::from([("LD_LIBRARY_PATH".to_owned(), "/usr/lib/x86_64-linux-gnu".to_owned())]);
    let question = Question { gpus: &["A100"], driver: Some("570.124.06"), ..Question::default() };
    let findings = ask(image.path(), &variables, image.path(), &question);
    let finding = the_finding(&findings, CODE);
    assert_eq!(finding.severity, Severity::Warning);
    assert!(words(finding).contains("the system's; a program"), "{}", words(finding));
}

#[test]
fn stays_quiet() {
    let (image, venv) = image(None);
    assert_quiet(&check(image.path()), CODE);
    assert_quiet(&venv.check(), CODE);
}
