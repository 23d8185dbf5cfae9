//! The driver's own library inside an image: it hides the one that the machine's driver brings.

use crate::check::{Case, Claims, Outcome, Rule};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::inventory::{DriverFile, DriverFileKind};

pub const RULE: Rule = Rule {
    code: "driver-library-in-image",
    level: Severity::Error,
    page: include_str!("../page/driver-library-in-image.md"),
    run,
};

fn run(case: &Case<'_>, _: &mut Claims<'_>) -> Result<Outcome, Failure> {
    // Only an image can carry what should be mounted into it.
    if !case.inventory.subject.kind.is_root() {
        return Ok(Outcome::Ran(Vec::new()));
    }
    // A machine has kernel modules, and its driver's library belongs there.
    if case.inventory.root.resolve(std::path::Path::new("/lib/modules")).is_ok() {
        return Ok(Outcome::Ran(Vec::new()));
    }
    let own = case.inventory.driver.iter().filter(|file| file.kind == DriverFileKind::Driver && file.version.is_some());
    Ok(Outcome::Ran(own.map(driver).collect()))
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
