//! The driver's library in an image.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use gpulock::check::Findings;
use gpulock::diag::Severity;

use super::venv::{Question, ask, assert_error, assert_quiet, the_finding, the_problem, words};
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
    // Where images of NGC have it, and nvidia/cuda for arm64 that for Jetson.
    for folder in ["usr/local/cuda-13.0/compat/lib.real", "usr/local/cuda-13.2/compat_orin"] {
        let image = self::image(folder, "580.65.06");
        Elf::library("libnvidia-nvvm.so.4").write(&image.path().join(folder).join("libnvidia-nvvm.so.580.65.06"));
        let library_path = "/usr/local/cuda/compat/lib:/usr/local/nvidia/lib";
        for driver in ["550.54.15", "590.44.01"] {
            let findings = check(image.path(), library_path, driver, false);
            assert_quiet(&findings, CODE);
            assert_quiet(&findings, "cuda-compat-wrong-target");
        }
    }
}

#[test]
fn a_machine_is_no_image() {
    let image = image("usr/lib64", "570.124.06");
    let modules = image.path().join("lib/modules/6.1.0");
    // Packages leave folders there in images too.
    fs::create_dir_all(&modules).unwrap();
    the_problem(&check(image.path(), "", "550.54.15", false), CODE);
    fs::write(modules.join("modules.dep"), "").unwrap();
    assert_quiet(&check(image.path(), "", "550.54.15", false), CODE);
    // Windows brings its own into its Linux machines.
    let windows = self::image("usr/lib/wsl/lib", "0");
    assert_quiet(&check(windows.path(), "", "550.54.15", false), CODE);
}

#[test]
fn a_name_that_tells_no_version() {
    let image = image("usr/lib64", "570.124.06");
    let folder = image.path().join("usr/lib64");
    fs::remove_file(folder.join("libcuda.so.1")).unwrap();
    fs::rename(folder.join("libcuda.so.570.124.06"), folder.join("libcuda.so.1")).unwrap();
    let findings = check(image.path(), "", "550.54.15", false);
    let said = ["the library of a driver, whose version its name does not tell, is part of the image", "(803)"];
    assert_error(the_problem(&findings, CODE), "/usr/lib64/libcuda.so.1", &said);
}

/// A link to the stub is for linking, wherever it lies.
#[test]
fn a_stub_is_no_driver() {
    let image = image("usr/local/cuda/lib64/stubs", "0");
    fs::create_dir_all(image.path().join("usr/lib64")).unwrap();
    symlink("/usr/local/cuda/lib64/stubs/libcuda.so.1", image.path().join("usr/lib64/libcuda.so.1")).unwrap();
    assert_quiet(&check(image.path(), "", "550.54.15", false), CODE);
}

#[test]
fn other_libraries_of_a_driver() {
    let image = tempfile::tempdir().unwrap();
    fs::create_dir_all(image.path().join("etc")).unwrap();
    fs::write(image.path().join("etc/os-release"), "ID=debian\n").unwrap();
    let folder = image.path().join("usr/lib64");
    let names = ["libnvidia-ml", "libnvidia-pkcs11-openssl3", "libnvidia-tileiras", "libnvidia-nscq", "libnvcuvid"];
    for name in names {
        Elf::library(&format!("{name}.so.1")).write(&folder.join(format!("{name}.so.550.54.15")));
        symlink(format!("{name}.so.550.54.15"), folder.join(format!("{name}.so.1"))).unwrap();
    }
    // Of NVIDIA, and of no driver; OpenGL's is that of GLVND as well.
    Elf::library("libGL.so.1").write(&folder.join("libGL.so.1.7.0"));
    Elf::library("libnvidia-container.so.1").write(&folder.join("libnvidia-container.so.1.17.8"));
    let findings = check(image.path(), "", "550.54.15", false);
    let finding = the_problem(&findings, CODE);
    let subject = finding.subject.clone().unwrap();
    let said = [
        "libraries of driver 550.54.15 are part of the image (libnvcuvid, libnvidia-ml, libnvidia-nscq, \
         libnvidia-pkcs11-openssl3, libnvidia-tileiras)",
        "driver/library version mismatch",
    ];
    assert_error(finding, &subject, &said);
}

/// As `docker commit` leaves them of a container that ran with GPUs.
#[test]
fn empty_files_are_what_mounts_left() {
    let image = image("usr/lib64", "550.54.15");
    let folder = image.path().join("usr/lib64");
    for name in ["libcuda.so.550.54.15", "libnvidia-ml.so.550.54.15"] {
        fs::write(folder.join(name), "").unwrap();
    }
    let findings = check(image.path(), "", "550.54.15", false);
    let finding = the_finding(&findings, CODE);
    assert_eq!(finding.severity, Severity::Warning);
    let found = words(finding);
    for said in [
        "empty files lie where the container runtime had mounted the libraries of driver 550.54.15",
        "libcuda, libnvidia-ml",
        "docker commit",
    ] {
        assert!(found.contains(said), "{said}: {found}");
    }
    assert!(!found.contains("803"), "{found}");
    // Nor is each of them a library that cannot be read.
    assert!(findings.findings.iter().all(|finding| finding.code != "library-unreadable"));
}
