//! A constraints file (`pip install -c`, `uv pip compile -c`): the versions of the lock, for whatever else is installed.

use std::fmt::Write;

use super::{Format, header};
use crate::lock::{Lock, Target};

pub(super) fn render(lock: &Lock, target: &Target) -> String {
    let mut out = header(lock, target, Format::Constraints);
    for (name, package) in &target.packages {
        let _ = writeln!(out, "{name}=={}", package.version);
    }
    out
}
