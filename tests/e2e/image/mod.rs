//! Images that real tools made: umoci, skopeo, buildah, Debian's registry and squashfs-tools.

mod interrupted;
mod packed;
mod semantics;

use std::path::Path;
use std::process::Command;

/// Whether a tool is installed; says so if not.
fn has(program: &str) -> bool {
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let there = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !there {
        println!("skipped: {program} is not installed");
    }
    there
}

/// skopeo as it is called here: no policy, no login, nothing of the machine's.
fn skopeo(folder: &Path, arguments: &[&str]) -> Command {
    let logins = folder.join("auth.json");
    std::fs::write(&logins, "{}").unwrap();
    let mut command = Command::new("skopeo");
    command.arg("--insecure-policy").args(arguments).env("REGISTRY_AUTH_FILE", logins);
    command
}
