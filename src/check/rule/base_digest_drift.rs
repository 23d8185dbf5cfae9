//! The image was built on another base than the lock names.

use crate::check::{Case, Claims, Outcome, Rule};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};

pub const RULE: Rule =
    Rule { code: "base-digest-drift", level: Severity::Error, page: include_str!("../page/base-digest-drift.md"), run };

/// Label and annotation of the OCI image specification, which `gpulock dockerfile` writes.
const DIGEST: &str = "org.opencontainers.image.base.digest";
const NAME: &str = "org.opencontainers.image.base.name";

fn run(case: &Case<'_>, _: &mut Claims<'_>) -> Result<Outcome, Failure> {
    if !case.inventory.subject.kind.is_root() {
        return Ok(Outcome::Ran(Vec::new()));
    }
    let Some(locked) = case.locked else { return Ok(Outcome::Skipped("no lock given".into())) };
    let bases = || {
        let image = locked.target.image.as_ref()?;
        Some([&image.base, &image.small].into_iter().flatten())
    };
    let said = |name: &str| {
        let image = case.inventory.image.as_ref()?;
        image.config.labels.get(name).or_else(|| image.annotations.get(name))
    };
    let Some(digest) = said(DIGEST) else {
        return Ok(Outcome::Skipped("nothing says what the image was built on".into()));
    };
    let known: Vec<_> = bases().into_iter().flatten().filter_map(|base| Some((base, base.digest.as_ref()?))).collect();
    let Some((first, expected)) = known.first() else {
        return Ok(Outcome::Skipped("the lock has no digest of a base image".into()));
    };
    if known.iter().any(|(_, known)| *known == digest) {
        return Ok(Outcome::Ran(Vec::new()));
    }
    let name = said(NAME).map_or("an image without a name", String::as_str);
    let message =
        format!("the image was built on {name} as it was then, not on the {} that the lock names", first.name);
    let seen = Evidence::observed(DIGEST, digest.clone());
    let lock = Evidence::observed(format!("gpulock.lock, base of {}", locked.target.name), (*expected).clone());
    let fix = "build the image again from the Dockerfile of this lock: gpulock dockerfile";
    Ok(Outcome::Ran(vec![Diagnostic::error(RULE.code, message, seen).and(lock).fix(fix)]))
}
