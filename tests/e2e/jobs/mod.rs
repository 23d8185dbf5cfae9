//! Files that start jobs, with the tools that read them and what they stop.

mod guard;
mod linters;
mod slurm;

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::run::{gpulock, succeed};

/// A lock of that torch for one GPU, in `folder`; with variables that no file holds by accident.
fn lock(folder: &Path, torch: &str, gpu: &str, image: &str) {
    let manifest = format!(
        "[stack]\ntorch = \"{torch}\"\npython = \"3.11\"\n[target.cluster]\ngpus = [\"{gpu}\"]\ndriver = \"580\"\n{image}\
         [env]\nNCCL_DEBUG = \"WARN\"\nA = 'its \"$x\" `y` \\ ${{{{ z }}}}'\n"
    );
    fs::write(folder.join("gpulock.toml"), manifest).unwrap();
    succeed(gpulock(folder, &folder.join("cache")).args(["resolve", "--offline", "--quiet"]));
}

/// Writes an export of it.
fn export(folder: &Path, arguments: &[&str], file: &str) {
    succeed(gpulock(folder, &folder.join("cache")).args(["export", "-o", file]).args(arguments));
}

/// What a command says, and whether it ended well.
fn said(command: &mut Command) -> (bool, String) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text)
}
