//! cuda-compat ahead of a driver that is newer than it, or on a GPU that it is not for.

use std::path::Path;

use crate::check::{Case, Claims, Outcome, Rule};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::inventory::{DriverFile, DriverFileKind};
use crate::matrix::schema::GpuClass;

pub const RULE: Rule = Rule {
    code: "cuda-compat-wrong-target",
    level: Severity::Error,
    page: include_str!("../page/cuda-compat-wrong-target.md"),
    run,
};

/// Where the container runtime looks for it.
const MOUNTED: &str = "/usr/local/cuda/compat";

fn run(case: &Case<'_>, _: &mut Claims<'_>) -> Result<Outcome, Failure> {
    if !case.inventory.subject.kind.is_root() {
        return Ok(Outcome::Ran(Vec::new()));
    }
    if case.driver().is_none() {
        return Ok(Outcome::Skipped("no driver declared".into()));
    }
    let compat = case.inventory.driver.iter().filter(|file| file.kind == DriverFileKind::Compat && file.is_cuda());
    let compat = compat.filter(|file| !file.is_for_jetson());
    Ok(Outcome::Ran(compat.filter_map(|file| compat_first(case, file).or_else(|| mounted(case, file))).collect()))
}

/// Where the loader finds it before the driver's own.
fn compat_first(case: &Case<'_>, file: &DriverFile) -> Option<Diagnostic> {
    let (machine, driver) = case.driver()?;
    // The library of the kernel's own version is the driver's, wherever it lies.
    let version = file.version.as_ref().filter(|own| **own != driver.decides && searched(case, file))?;
    let seen = Evidence::observed(file.path.display().to_string(), "the loader finds it before the machine's driver");
    let message = if driver.decides > *version {
        format!(
            "cuda-compat {version} comes before driver {}, which is newer: CUDA fails with \"system has unsupported display \
             driver / cuda driver combination\" (803)",
            driver.given
        )
    } else if !machine.forward {
        format!(
            "cuda-compat {version} comes before driver {}, and the target does not allow it (data-centre GPUs only): CUDA \
             fails with \"forward compatibility was attempted on non supported HW\" (804)",
            driver.given
        )
    } else {
        return None;
    };
    let folder = file.path.parent().map_or(String::new(), |folder| folder.display().to_string());
    let fix = format!("take {folder} out of the loader's path");
    Some(Diagnostic::error(RULE.code, message, seen).about(file.path.display().to_string()).fix(fix))
}

/// Whether the loader finds a cuda-compat library by itself: its folder may have several names.
fn searched(case: &Case<'_>, file: &DriverFile) -> bool {
    let path = case.inventory.variables.get("LD_LIBRARY_PATH").map(String::as_str).unwrap_or_default();
    let named = path.split(':').filter(|folder| !folder.is_empty()).map(Path::new);
    let mut folders = case.inventory.loader.configured.iter().map(|folder| folder.as_path()).chain(named);
    folders.any(|folder| case.inventory.root.resolve(folder).is_ok_and(|real| file.file.parent() == Some(&real)))
}

/// Where the container runtime puts it before an older driver, whatever GPUs there are.
fn mounted(case: &Case<'_>, file: &DriverFile) -> Option<Diagnostic> {
    let (machine, driver) = case.driver().filter(|_| !case.inventory.apptainer)?;
    let root = &case.inventory.root;
    let there = root.resolve(Path::new(MOUNTED)).ok().filter(|folder| file.file.parent() == Some(folder.as_path()))?;
    let version = file.version.as_ref().filter(|version| version.major() > driver.decides.major())?;
    let other = |class| matches!(class, Some(GpuClass::Geforce | GpuClass::Workstation));
    let gpus: Vec<&str> = machine.gpus.iter().filter(|gpu| other(gpu.class)).map(|gpu| gpu.name.as_str()).collect();
    if gpus.is_empty() {
        return None;
    }
    let message = format!(
        "the container runtime puts cuda-compat {version} of this image before driver {}, which is older: on {} CUDA fails \
         with \"forward compatibility was attempted on non supported HW\" (804)",
        driver.given,
        gpus.join(", ")
    );
    let seen = Evidence::observed(file.path.display().to_string(), format!("lies in {}", there.display()));
    let fact = Evidence::fact(
        "libraries in /usr/local/cuda/compat of another branch than the driver's are mounted over it",
        "https://github.com/NVIDIA/libnvidia-container, src/nvc_mount.c",
    );
    let fix = format!("remove it in the image: rm -rf {MOUNTED}; or install driver {} or later", version.major());
    Some(Diagnostic::error(RULE.code, message, seen).about(file.path.display().to_string()).and(fact).fix(fix))
}
