//! `pylock.toml`, the lock file that installers share (PEP 751, pylock.toml specification 1.0).
//!
//! That format asks for the address or path of each wheel, which the lock does not hold.

use std::fmt::Write;

use super::{Beside, Format, all_known, header};
use crate::diag::{Diagnostic, Evidence, Failure};
use crate::lock::{Lock, Target, Wheel, quoted};

pub(super) fn render(lock: &Lock, target: &Target, beside: &Beside<'_>) -> Result<String, Failure> {
    all_known(target, Format::Pylock)?;
    let mut out = header(lock, target, Format::Pylock);
    out.push_str("lock-version = \"1.0\"\n");
    let _ = writeln!(out, "environments = [{}]", quoted(&marker(target)));
    let _ = writeln!(out, "requires-python = {}", quoted(&requires_python(target)));
    out.push_str("created-by = \"gpulock\"\n");
    let mut homeless = Vec::new();
    for (name, package) in &target.packages {
        let Some((file, wheel)) = lock.wheel(package) else { continue };
        let Some(place) = place(file, wheel, beside) else {
            homeless.push(file);
            continue;
        };
        let _ = writeln!(out, "\n[[packages]]\nname = {}", quoted(name.as_str()));
        let _ = writeln!(out, "version = {}", quoted(&package.version.to_string()));
        if let Some(url) = lock.indexes.get(&wheel.index).filter(|_| wheel.url.is_none()) {
            let _ = writeln!(out, "index = {}", quoted(url));
        }
        let size = wheel.size.map(|size| format!(", size = {size}")).unwrap_or_default();
        let hashes = format!("{{ sha256 = {} }}", quoted(&wheel.sha256));
        let _ = writeln!(out, "wheels = [{{ name = {}, {place}{size}, hashes = {hashes} }}]", quoted(file));
    }
    if homeless.is_empty() { Ok(out) } else { Err(without_address(&homeless)) }
}

/// `url = ".."` or `path = ".."` of a wheel.
fn place(file: &str, wheel: &Wheel, beside: &Beside<'_>) -> Option<String> {
    let address = wheel.url.as_ref().or_else(|| beside.addresses.get(file));
    let url = address.map(|url| format!("url = {}", quoted(&crate::manifest::without_credentials(url))));
    url.or_else(|| beside.wheel_folder.map(|folder| format!("path = {}", quoted(&format!("{folder}/{file}")))))
}

fn without_address(files: &[&str]) -> Failure {
    const SHOWN: usize = 3;
    let message = format!(
        "pylock.toml needs the address of every wheel, and {} have none: the lock is free of addresses, so that it is \
         the same behind any mirror",
        files.len()
    );
    let more = files.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let shown = files.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    let seen = Evidence::observed("gpulock.lock", format!("without address: {shown}{more}"));
    Failure::unanswerable(
        Diagnostic::error("wheel-without-address", message, seen)
            .fix("let the indexes be asked (without `--offline`), or name a folder that holds the wheels"),
    )
}

/// The machines and interpreters of a target, as an environment marker.
pub(super) fn marker(target: &Target) -> String {
    let python = target.python;
    format!(
        "sys_platform == 'linux' and platform_machine == '{}' and implementation_name == 'cpython' and \
         python_full_version >= '{}.{}' and python_full_version < '{}.{}'",
        target.platform.machine(),
        python.major,
        python.minor,
        python.major,
        python.minor + 1,
    )
}

/// The interpreters of a target, as a version specifier.
pub(super) fn requires_python(target: &Target) -> String {
    format!("=={}.{}.*", target.python.major, target.python.minor)
}
