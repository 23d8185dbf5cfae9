//! The driver's own library inside an image: it hides the one that the machine's driver brings.

use crate::check::{Case, Claims, Outcome, Rule};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::inventory::{DriverFile, DriverFileKind, SubjectKind};

pub const RULE: Rule = Rule {
    code: "driver-library-in-image",
    level: Severity::Error,
    page: include_str!("../page/driver-library-in-image.md"),
    run,
};

fn run(case: &Case<'_>, _: &mut Claims<'_>) -> Result<Outcome, Failure> {
    // Only an image can carry what should be mounted into it.
    if case.inventory.subject.kind != SubjectKind::RootFilesystem {
        return Ok(Outcome::Ran(Vec::new()));
    }
    // A machine has kernel modules, and its driver's library belongs there.
    if case.inventory.root.resolve(std::path::Path::new("/lib/modules")).is_ok() {
        return Ok(Outcome::Ran(Vec::new()));
    }
    let mut findings = Vec::new();
    for file in &case.inventory.driver {
        match file.kind {
            DriverFileKind::Driver if file.version.is_some() => findings.push(driver(file)),
            DriverFileKind::Compat if searched(case, file) => findings.extend(compat(case, file)),
            _ => {}
        }
    }
    Ok(Outcome::Ran(findings))
}

fn driver(file: &DriverFile) -> Diagnostic {
    let version = file.version.as_ref().map_or(String::new(), ToString::to_string);
    let message = format!(
        "the library of driver {version} is part of the image: on a machine with another driver CUDA fails with \"system has \
         unsupported display driver / cuda driver combination\" (803)"
    );
    let seen = Evidence::observed(file.path.display().to_string(), format!("leads to {}", file.file.display()));
    Diagnostic::error(RULE.code, message, seen)
        .about(file.path.display().to_string())
        .fix("do not install the driver in an image; the container runtime brings the machine's own")
}

/// Whether the loader finds a cuda-compat library by itself.
fn searched(case: &Case<'_>, file: &DriverFile) -> bool {
    let folder = file.path.parent();
    case.inventory.loader.configured.iter().any(|one| Some(one.as_path()) == folder)
        || case
            .inventory
            .variables
            .get("LD_LIBRARY_PATH")
            .is_some_and(|path| path.split(':').any(|one| Some(std::path::Path::new(one)) == folder))
}

/// cuda-compat ahead of a driver that is newer than it, or on a GPU that it is not for.
fn compat(case: &Case<'_>, file: &DriverFile) -> Option<Diagnostic> {
    let (machine, version) = (case.machine?, file.version.as_ref()?);
    let driver = machine.driver.as_ref()?;
    let seen = Evidence::observed(file.path.display().to_string(), "the loader finds it before the machine's driver");
    let newer = driver.decides >= *version;
    let message = if newer {
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
    let fix = format!(
        "take {} out of the loader's path",
        file.path.parent().map_or(String::new(), |folder| folder.display().to_string())
    );
    Some(Diagnostic::error(RULE.code, message, seen).about(file.path.display().to_string()).fix(fix))
}
