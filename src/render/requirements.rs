//! pip's requirements file with hashes: `pip install --require-hashes -r requirements.txt` installs the lock.
//!
//! pip has no index for a single package. The default index is left to pip, so that a mirror which the user has
//! configured serves; every other index is added, and the hash of each file decides which of the candidates it is.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::{Format, all_known, header, quote};
use crate::diag::Failure;
use crate::lock::{DEFAULT_INDEX, Lock, Target};

pub(super) fn render(lock: &Lock, target: &Target) -> Result<String, Failure> {
    all_known(target, Format::Requirements)?;
    let mut out = header(lock, target, Format::Requirements);
    let indexes: BTreeSet<&str> = target.packages.values().filter_map(|package| lock.index_of(package)).collect();
    for url in indexes.iter().filter(|name| **name != DEFAULT_INDEX).filter_map(|name| lock.indexes.get(*name)) {
        let _ = writeln!(out, "--extra-index-url {}", quote::url(url));
    }
    for (name, package) in &target.packages {
        let Some((_, wheel)) = lock.wheel(package) else { continue };
        let what = match &wheel.url {
            Some(url) => format!("{name} @ {}", quote::url(url)),
            None => format!("{name}=={}", package.version),
        };
        let _ = writeln!(out, "{what} \\\n    --hash=sha256:{}", wheel.sha256);
        if !package.needed_by.is_empty() {
            let needed_by: Vec<&str> = package.needed_by.iter().map(String::as_str).collect();
            let _ = writeln!(out, "    # needed by {}", needed_by.join(", "));
        }
    }
    Ok(out)
}
