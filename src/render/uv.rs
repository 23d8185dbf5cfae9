//! A `pyproject.toml` that `uv lock` takes to the versions of the lock: constraints for every package, the indexes that
//! are not the default, and the environment of the target. The rest of the file stays as it is.

use super::Beside;
use super::pylock::{marker, requires_python};
use crate::diag::Failure;
use crate::lock::{DEFAULT_INDEX, Lock, Target};
use crate::manifest::pyproject::{UvPins, pin};

pub(super) fn render(lock: &Lock, target: &Target, beside: &Beside<'_>) -> Result<String, Failure> {
    let direct = target.packages.iter().filter(|(_, package)| package.is_direct());
    let sources = target.packages.iter().map(|(name, package)| {
        let index = lock.index_of(package).filter(|index| *index != DEFAULT_INDEX);
        (name.clone(), index.map(str::to_owned))
    });
    let pins = UvPins {
        dependencies: direct
            .map(|(name, package)| {
                let extras: Vec<&str> = package.extras.iter().map(|extra| extra.as_str()).collect();
                let extras = if extras.is_empty() { String::new() } else { format!("[{}]", extras.join(",")) };
                (name.clone(), format!("{name}{extras}"))
            })
            .collect(),
        constraints: target.packages.iter().map(|(name, package)| (name.clone(), package.version.clone())).collect(),
        sources: sources.collect(),
        indexes: lock.indexes.clone(),
        environment: marker(target),
        requires_python: requires_python(target),
    };
    pin(beside.pyproject, "pyproject.toml", beside.project, &pins)
}
