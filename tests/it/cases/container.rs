//! What images bring, and what they were made from.

use std::sync::Arc;

use gpulock::diag::Failure;
use gpulock::matrix::{Matrix, Snapshot};
use gpulock::python::{Catalog, Library, PackageMetadata, PackageName, Release, Wheel};
use gpulock::resolve::{Context, Keep, Outcome, resolve};
use gpulock::version::Pep440;

use super::image::Image;
use super::torch::torch;
use super::{asking, assert_healthy, build, conflict, on, solved};
use crate::check::gpu_code::sass;
use crate::check::venv::{Question, Venv, assert_error, module, the_problem};
use crate::link::fixture::Elf;

/// cuda-compat is for drivers that are older than it.
#[test]
fn ctr_03_compat_on_newer_driver_803() {
    let image_with = |registered: bool| {
        let image = Image::debian();
        image.put("usr/local/cuda-12.9/compat/libcuda.so.575.57.08", &Elf::library("libcuda.so.1"));
        image.link("libcuda.so.575.57.08", "usr/local/cuda-12.9/compat/libcuda.so.1");
        image.text("etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n");
        if registered {
            image.text("etc/ld.so.conf.d/00-cuda-compat.conf", "/usr/local/cuda-12.9/compat\n");
        }
        image
    };
    let on = |image: &Image, driver: &str| {
        image.ask(&Question { gpus: &["B200"], driver: Some(driver), forward: true, ..Question::default() })
    };
    let findings = on(&image_with(true), "580.105.08");
    let said = [
        "cuda-compat 575.57.08 comes before driver 580.105.08, which is newer",
        "(803)",
        "take /usr/local/cuda-12.9/compat out of the loader's path",
    ];
    let subject = "usr/local/cuda-12.9/compat/libcuda.so.1";
    assert_error(the_problem(&findings, "cuda-compat-wrong-target"), subject, &said);
    assert_healthy(&on(&image_with(false), "580.105.08"));
    // What it is there for.
    assert_healthy(&on(&image_with(true), "570.124.06"));
}

/// The stub is for linking; that no libcuda.so.1 is there is right on a machine without a driver.
#[test]
fn ctr_05_stub_libcuda() {
    let venv_with = || {
        let venv = torch("2.1.0", 12010).venv();
        let kernels = module("_C").needed(&["libc10.so", "libcuda.so.1"]);
        venv.install("ext", "1.0", &["torch"], &[("ext/_C.abi3.so", kernels)]);
        venv
    };
    let stub = Elf::library("libcuda.so.1");
    let mut venv = venv_with();
    let folder = venv.beside("usr/local/cuda/lib64/stubs/libcuda.so.1", &stub);
    venv.set("LD_LIBRARY_PATH", &folder);
    let fix = format!("take {folder} out of LD_LIBRARY_PATH; LIBRARY_PATH is for linking");
    let said = ["\"CUDA driver is a stub library\" (34)", fix.as_str()];
    assert_error(the_problem(&venv.check(), "cuda-stub-linked"), &format!("{folder}/libcuda.so.1"), &said);

    // A link beside the folder leads into it.
    let mut venv = venv_with();
    let stubs = venv.beside("usr/local/cuda/lib64/stubs/libcuda.so", &stub);
    let folder = stubs.trim_end_matches("/stubs").to_owned();
    std::os::unix::fs::symlink("stubs/libcuda.so", format!("{folder}/libcuda.so.1")).unwrap();
    venv.set("LD_LIBRARY_PATH", &folder);
    assert_error(the_problem(&venv.check(), "cuda-stub-linked"), &format!("{folder}/libcuda.so.1"), &[]);

    assert_healthy(&venv_with().check());
}

/// CUDA was asked for and did not choose the wheel.
#[test]
fn ctr_09_cuda_key_ignored_by_pip() {
    let venv_of = |architectures: &[u32]| -> Venv {
        torch("1.10.2", 11030).code(&architectures.iter().map(|one| sass(*one)).collect::<Vec<_>>()).venv()
    };
    let findings = on(&venv_of(&[37, 50, 60, 70]), "RTX 3090", "470.82.01");
    let said = ["torch 1.10.2 has no code for RTX 3090 (sm_86)", "sm_37, sm_50, sm_60, sm_70"];
    assert_error(the_problem(&findings, "gpu-code-missing"), "torch/lib/libtorch_cuda.so", &said);
    assert_healthy(&on(&venv_of(&[37, 50, 60, 70, 75, 80, 86]), "RTX 3090", "470.82.01"));

    // The CUDA that is asked for chooses build and index: PyPI's own wheel of this release is for 11.7.
    let request = asking("RTX 3090", "", |r| {
        r.stack.torch = Some("==1.13.1".parse().unwrap());
        r.stack.cuda = Some("11.6".parse().unwrap());
        r.stack.python = crate::resolve::python("3.10");
    });
    assert_eq!(build(&request), "1.13.1+cu116");
    let solution = solved(&request);
    let torch = solution.packages.iter().find(|chosen| chosen.package.as_str() == "torch").unwrap();
    assert_eq!(torch.index.to_string(), "torch-cu116");
    let (conflict, _) = conflict(&asking("RTX 3090", "", |r| {
        r.stack.torch = Some("==1.13.1".parse().unwrap());
        r.stack.variant = Some("cu117".into());
        r.stack.cuda = Some("11.6".parse().unwrap());
    }));
    assert!(conflict.explanation.contains("CUDA 11.6 allows only torch cu116"), "{}", conflict.explanation);
}

/// An index that has a torch which the matrix does not know yet.
struct Newer<'a>(Snapshot<'a>, Pep440);

impl Catalog for Newer<'_> {
    fn versions(&self, index: &str, package: &PackageName) -> Result<Arc<[Pep440]>, Failure> {
        let mut versions = self.0.versions(index, package)?.to_vec();
        if package.as_str() == "torch" && index == Snapshot::INDEX {
            versions.push(self.1.clone());
        }
        Ok(versions.into())
    }

    fn release(&self, index: &str, package: &PackageName, version: &Pep440) -> Result<Option<Arc<Release>>, Failure> {
        if *version != self.1 || package.as_str() != "torch" {
            return self.0.release(index, package, version);
        }
        let known = self.0.release(index, package, &"2.15.0".parse().unwrap())?.unwrap();
        let wheel = |wheel: &Arc<Wheel>| {
            let name = format!("torch-{version}-cp312-cp312-manylinux_2_28_x86_64.whl").parse().unwrap();
            Arc::new(Wheel { name, ..Wheel::clone(wheel) })
        };
        Ok(Some(Arc::new(Release {
            version: version.clone(),
            wheels: known.wheels.iter().take(1).map(wheel).collect(),
        })))
    }

    fn metadata(&self, wheel: &Wheel) -> Result<Arc<PackageMetadata>, Failure> {
        if wheel.name.version == self.1 { Ok(Arc::default()) } else { self.0.metadata(wheel) }
    }

    fn libraries(&self, wheel: &Wheel) -> Result<Vec<Library>, Failure> {
        if wheel.name.version == self.1 { Ok(Vec::new()) } else { self.0.libraries(wheel) }
    }
}

/// A release that is newer than what is known is taken, and nothing is vouched for.
#[test]
fn ctr_10_unknown_newer_torch() {
    let matrix = Matrix::embedded();
    let keep = Keep::default();
    let request = asking("A100", "580.65.06", |r| {
        r.stack.torch = Some("==2.16.0".parse().unwrap());
        r.stack.python = crate::resolve::python("3.12");
    });
    let ask = |catalog: &dyn Catalog| {
        let (default_index, pending, offline) = (Snapshot::INDEX, false, false);
        let context = Context { matrix: &matrix, catalog, default_index, pending, offline, keep: &keep };
        resolve(&request, &context).unwrap()
    };
    match ask(&Newer(matrix.snapshot(), "2.16.0".parse().unwrap())) {
        Outcome::Solved(solution) => {
            assert_eq!(solution.stack.torch.to_string(), "2.16.0");
            let said = "torch 2.16.0 is newer than this matrix or unknown to it: GPUs and driver are not checked";
            let note = solution.notes.iter().find(|note| note.message.contains(said)).expect("a warning");
            assert_eq!(note.severity, gpulock::diag::Severity::Warning);
        }
        Outcome::Conflict(conflict) => panic!("{}", conflict.explanation),
    }
    // Where no index offers it, it is called unknown, with what is known; not incompatible.
    match ask(&matrix.snapshot()) {
        Outcome::Solved(solution) => panic!("{:?}", solution.stack),
        Outcome::Conflict(conflict) => {
            assert!(
                conflict.explanation.contains("No torch ==2.16.0 is known for linux-x86_64 (known: 1.13.0 to 2.15.0)")
            );
        }
    }
    assert_eq!(
        build(&asking("A100", "580.65.06", |r| r.stack.torch = Some("==2.15.0".parse().unwrap()))),
        "2.15.0+cu132"
    );
}
