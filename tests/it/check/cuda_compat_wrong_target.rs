//! cuda-compat where it does not belong.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use gpulock::check::Findings;

use super::venv::{Question, ask, assert_error, assert_quiet, the_problem};
use crate::link::fixture::Elf;

const CODE: &str = "cuda-compat-wrong-target";
const FOLDER: &str = "/usr/local/cuda-12.8/compat";

/// An image with cuda-compat of CUDA 12.8, where NVIDIA's images have it.
fn image() -> tempfile::TempDir {
    let image = tempfile::tempdir().unwrap();
    fs::create_dir_all(image.path().join("etc")).unwrap();
    fs::write(image.path().join("etc/os-release"), "ID=debian\n").unwrap();
    let folder = image.path().join(&FOLDER[1..]);
    Elf::library("libcuda.so.1").write(&folder.join("libcuda.so.570.124.06"));
    symlink("libcuda.so.570.124.06", folder.join("libcuda.so.1")).unwrap();
    symlink("cuda-12.8", image.path().join("usr/local/cuda")).unwrap();
    image
}

fn check(image: &Path, library_path: &str, gpu: &str, driver: &str, forward: bool) -> Findings {
    let variables = BTreeMap::from([("LD_LIBRARY_PATH".to_owned(), library_path.to_owned())]);
    ask(image, &variables, image, &Question { gpus: &[gpu], driver: Some(driver), forward, ..Question::default() })
}

/// Before the driver: needless where that is newer, refused where it is not allowed.
#[test]
fn fires() {
    let image = image();
    for (driver, forward, said) in [("580.65.06", true, "(803)"), ("550.54.15", false, "(804)")] {
        let findings = check(image.path(), FOLDER, "A100", driver, forward);
        let said = ["cuda-compat 570.124.06 comes before driver", said, "take /usr/local/cuda/compat out"];
        assert_error(the_problem(&findings, CODE), "/usr/local/cuda/compat/libcuda.so.1", &said);
    }
}

/// The container runtime puts it first by itself.
#[test]
fn fires_on_a_geforce_with_an_older_driver() {
    let image = image();
    let findings = check(image.path(), "", "RTX 4090", "550.54.15", false);
    let said = [
        "the container runtime puts cuda-compat 570.124.06 of this image before driver 550.54.15",
        "RTX 4090",
        "(804)",
    ];
    assert_error(the_problem(&findings, CODE), "/usr/local/cuda/compat/libcuda.so.1", &said);
}

/// Jetson's drivers have versions of their own.
#[test]
fn that_of_jetson_is_not_judged() {
    let image = image();
    let local = image.path().join("usr/local/cuda-12.8");
    fs::rename(local.join("compat"), local.join("compat_orin")).unwrap();
    for gpu in ["Jetson AGX Orin", "A100"] {
        for driver in ["540.4.0", "580.65.06"] {
            assert_quiet(&check(image.path(), "/usr/local/cuda/compat_orin", gpu, driver, false), CODE);
        }
    }
}

#[test]
fn stays_quiet() {
    let image = image();
    // As NVIDIA's images have it: nothing puts it before a newer driver, or one of the same branch.
    assert_quiet(&check(image.path(), "", "A100", "580.65.06", false), CODE);
    assert_quiet(&check(image.path(), "", "RTX 4090", "570.86.10", false), CODE);
    assert_quiet(&check(image.path(), "", "RTX 4090", "580.65.06", false), CODE);
    // The driver's own version: it is the same library.
    assert_quiet(&check(image.path(), FOLDER, "A100", "570.124.06", false), CODE);
    assert_quiet(&check(image.path(), FOLDER, "RTX 4090", "570.124.06", false), CODE);
    // What it is for: an older driver of a data-centre GPU.
    assert_quiet(&check(image.path(), FOLDER, "A100", "550.54.15", true), CODE);
    assert_quiet(&check(image.path(), "", "A100", "550.54.15", false), CODE);
}
