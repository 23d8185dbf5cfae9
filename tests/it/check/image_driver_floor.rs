//! What an image requires of the driver.

use std::collections::BTreeMap;
use std::fs;

use gpulock::check::Findings;
use gpulock::diag::Severity;
use gpulock::python::Platform;

use super::venv::{Question, ask, assert_quiet, the_finding, the_problem, words};

const CODE: &str = "image-driver-floor";
/// Of nvidia/cuda 12.2, as far as public copies of its Dockerfile show it.
const CUDA_12_2: &str = "cuda>=12.2 brand=tesla,driver>=470,driver<471 brand=unknown,driver>=470,driver<471 \
     brand=nvidia,driver>=470,driver<471 brand=geforce,driver>=470,driver<471 brand=tesla,driver>=525,driver<526 \
     brand=unknown,driver>=525,driver<526 brand=nvidia,driver>=525,driver<526 brand=geforce,driver>=525,driver<526";

fn check(variables: &[(&str, &str)], gpu: &str, driver: &str) -> Findings {
    let image = tempfile::tempdir().unwrap();
    fs::create_dir_all(image.path().join("etc")).unwrap();
    fs::write(image.path().join("etc/os-release"), "ID=debian\n").unwrap();
    let variables: BTreeMap<String, String> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let question = Question { gpus: &[gpu], driver: Some(driver), ..Question::default() };
    ask(image.path(), &variables, image.path(), &question)
}

fn requires(requirement: &str) -> [(&str, &str); 1] {
    [("NVIDIA_REQUIRE_CUDA", requirement)]
}

#[test]
fn fires() {
    for (requirement, gpu, driver) in [
        ("cuda>=12.8", "A100", "550.54.15"),
        (CUDA_12_2, "A100", "515.105.01"),
        // Listed for other branches only.
        (CUDA_12_2, "RTX 4090", "530.30.02"),
        ("cuda>=12.8 brand=tesla,driver>=535,driver<536", "RTX 4090", "535.161.08"),
        ("driver>=560", "A100", "550.54.15"),
    ] {
        let findings = check(&requires(requirement), gpu, driver);
        let found = words(the_problem(&findings, CODE));
        let first = requirement.split(' ').next().unwrap();
        for said in [
            "does not start this image on driver",
            driver,
            gpu,
            &format!("requires {first}"),
            "NVIDIA_DISABLE_REQUIRE=1",
        ] {
            assert!(found.contains(said), "{said}: {found}");
        }
    }
    let findings = check(&requires("cuda>=12.8"), "A100", "550.54.15");
    assert!(words(the_problem(&findings, CODE)).contains("install driver 570.26 or later"));
    let findings = check(&requires("cuda>=12.8 nonsense"), "A100", "550.54.15");
    assert!(words(the_problem(&findings, CODE)).contains("`nonsense` is no condition"));
    let findings = check(&[("CUDA_VERSION", "12.8.1")], "A100", "550.54.15");
    assert!(words(the_problem(&findings, CODE)).contains("requires cuda>=12.8"));
}

/// What images of nvidia/cuda 12.8 set, whole.
#[test]
fn reads_what_the_matrix_holds() {
    let matrix = gpulock::matrix::Matrix::embedded();
    let row = matrix.image().unwrap().requirement("12.8".parse().unwrap(), Platform::LinuxX86_64).unwrap();
    let requires = requires(&row.expression);
    assert_quiet(&check(&requires, "A100", "535.161.08"), CODE);
    assert_quiet(&check(&requires, "RTX A6000", "535.161.08"), CODE);
    let findings = check(&requires, "RTX 4090", "535.161.08");
    assert!(words(the_problem(&findings, CODE)).contains("names no exception for them"));
}

/// The brand of a GPU for data centres depends on its driver and on the runtime.
#[test]
fn is_unsure_where_the_brand_decides() {
    let findings = check(&requires("cuda>=12.8 brand=tesla,driver>=535,driver<536"), "A100", "535.161.08");
    let finding = the_finding(&findings, CODE);
    assert_eq!(finding.severity, Severity::Warning);
    assert!(words(finding).contains("depends on the brand"), "{}", words(finding));
}

#[test]
fn stays_quiet() {
    for (requirement, gpu, driver) in [
        ("cuda>=12.8", "A100", "570.124.06"),
        ("cuda>=12.8", "RTX 4090", "580.65.06"),
        (CUDA_12_2, "A100", "470.57.02"),
        (CUDA_12_2, "A100", "525.60.13"),
        (CUDA_12_2, "RTX 4090", "525.60.13"),
        (CUDA_12_2, "H100", "535.54.03"),
        // Newer than what is known here.
        ("cuda>=99.0", "A100", "999"),
    ] {
        assert_quiet(&check(&requires(requirement), gpu, driver), CODE);
    }
    let disabled = [("NVIDIA_REQUIRE_CUDA", "cuda>=12.8"), ("NVIDIA_DISABLE_REQUIRE", "1")];
    assert_quiet(&check(&disabled, "A100", "550.54.15"), CODE);
    assert_quiet(&check(&[], "A100", "550.54.15"), CODE);
}

/// What `inspect` says is where `verify` begins to be content.
#[test]
fn the_least_driver_is_the_least_that_is_started() {
    let matrix = gpulock::matrix::Matrix::embedded();
    let facts = matrix.cuda().unwrap();
    let brands = "cuda>=12.8 brand=tesla,driver>=535,driver<536";
    for (requirement, expected) in [
        ("cuda>=12.8", Some("570.26")),
        (brands, Some("570.26")),
        ("driver>=560", Some("560")),
        ("driver>=560,driver<561", None),
        ("cuda>=12.4,driver>=580.65.06", Some("580.65.06")),
        ("cuda>=12.8 driver>=535", Some("535")),
        ("arch>=9.0", None),
        ("nonsense", None),
        ("ödriver>=5", None),
    ] {
        let least = gpulock::matrix::requirement::least_driver(requirement, facts);
        assert_eq!(least.as_ref().map(ToString::to_string).as_deref(), expected, "{requirement}");
        let Some(least) = least else { continue };
        assert_quiet(&check(&requires(requirement), "RTX 4090", &least.to_string()), CODE);
        the_problem(&check(&requires(requirement), "RTX 4090", "530.30.02"), CODE);
    }
}

/// A line of a report is one line.
#[test]
fn line_feeds_are_escaped() {
    for requirement in ["cuda>=12.8\nnote: all is well", "cuda>=12.8,x\ny>=1"] {
        let findings = check(&requires(requirement), "A100", "550.54.15");
        let finding = the_problem(&findings, CODE);
        assert!(!words(finding).contains("\nnote") && words(finding).contains("\\n"), "{}", words(finding));
    }
}
