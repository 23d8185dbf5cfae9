//! pip's requirements file with hashes: `pip install --require-hashes -r requirements.txt` installs the lock.
//!
//! pip has no index for a single package. The default index is left to pip, so that a mirror which the user has
//! configured serves; every other index is added, and the hash of each file decides which of the candidates it is.

use std::collections::BTreeSet;
use std::fmt::Write;

use url::{Host, Url};

use super::{Format, all_known, header, quote};
use crate::diag::Failure;
use crate::lock::{DEFAULT_INDEX, Lock, Target};

pub(super) fn render(lock: &Lock, target: &Target) -> Result<String, Failure> {
    all_known(target, Format::Requirements)?;
    let mut out = header(lock, target, Format::Requirements);
    for line in options(lock, target) {
        let _ = writeln!(out, "{line}");
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

/// The lines that come before the packages: the indexes that are not the default, and hosts that pip is told to ask without
/// TLS, since it would pass over them; the hash of each file says what it must be.
pub(super) fn options(lock: &Lock, target: &Target) -> Vec<String> {
    let indexes: BTreeSet<&str> = target.packages.values().filter_map(|package| lock.index_of(package)).collect();
    let others = indexes.into_iter().filter(|name| *name != DEFAULT_INDEX).filter_map(|name| lock.indexes.get(name));
    let urls: Vec<&String> = others.collect();
    let hosts: BTreeSet<String> = urls.iter().filter_map(|url| passed_over(url)).collect();
    let added = urls.iter().map(|url| format!("--extra-index-url {}", quote::url(url)));
    added.chain(hosts.into_iter().map(|host| format!("--trusted-host {host}"))).collect()
}

/// The host of an index that pip passes over unless it is told to trust it: one without TLS that is not this machine. Its
/// port is left out, since pip before 19.3 takes none for such an index (https://github.com/pypa/pip/issues/6886).
///
/// Sources: pip documentation, "pip", `--trusted-host`; https://github.com/pypa/pip, src/pip/_internal/network/session.py
/// (`SECURE_ORIGINS`).
fn passed_over(url: &str) -> Option<String> {
    let url = Url::parse(url).ok().filter(|url| url.scheme() == "http")?;
    let host = url.host()?;
    let is_here = match &host {
        Host::Domain(name) => *name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    };
    (!is_here).then(|| host.to_string())
}
