//! This machine, for `gpulock init --from-host`: driver, GPUs, glibc and Python, each with how it was read.
//!
//! The driver's own files under `/proc` come first; a program is asked only for what no file says.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::diag::Evidence;
use crate::python::{Platform, PythonVersion};
use crate::version::{Driver, Glibc};

/// A fact and how it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact<T> {
    /// What is so.
    pub value: T,
    /// What was looked at, and what it showed.
    pub seen: Evidence,
}

/// What a machine says of itself; what it does not say is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Host {
    /// NVIDIA's kernel driver.
    pub driver: Option<Fact<Driver>>,
    /// Product names, each once.
    pub gpus: Vec<Fact<String>>,
    /// Platform; absent where no CUDA build runs.
    pub platform: Option<Fact<Platform>>,
    /// The C library; absent under musl.
    pub glibc: Option<Fact<Glibc>>,
    /// The Python that `python3` starts.
    pub python: Option<Fact<PythonVersion>>,
}

/// Asks a program: its name and arguments become what it prints, if it succeeds.
pub type Ask<'a> = &'a dyn Fn(&str, &[&str]) -> Option<String>;

/// Asks programs on PATH.
pub fn ask(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Reads the machine whose root folder is `root` and whose processor is `machine`, as [`std::env::consts::ARCH`] names it.
pub fn read(root: &Path, machine: &str, ask: Ask<'_>) -> Host {
    let (mut driver, mut gpus) = (driver(root), gpus(root));
    if driver.is_none() || gpus.is_empty() {
        let (asked_driver, asked_gpus) = nvidia_smi(ask);
        driver = driver.or(asked_driver);
        gpus = if gpus.is_empty() { asked_gpus } else { gpus };
    }
    Host { driver, gpus, platform: platform(machine), glibc: glibc(root), python: python(ask) }
}

/// `NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.124.06  Wed Feb 26 ...`, or `Open Kernel Module for x86_64  570...`.
fn driver(root: &Path) -> Option<Fact<Driver>> {
    let (path, text) = text(root, "proc/driver/nvidia/version")?;
    let line = text.lines().find(|line| line.starts_with("NVRM version:"))?;
    let value = line.split_whitespace().find_map(|word| word.contains('.').then(|| word.parse().ok()).flatten())?;
    Some(Fact { value, seen: Evidence::observed(path.display().to_string(), line.trim()) })
}

/// `Model:  NVIDIA A100-SXM4-80GB` in one file for each GPU; the board's name on Jetson.
fn gpus(root: &Path) -> Vec<Fact<String>> {
    let folder = root.join("proc/driver/nvidia/gpus");
    let mut files: Vec<PathBuf> =
        fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path().join("information")).collect();
    files.sort();
    let mut gpus: Vec<Fact<String>> = Vec::new();
    for path in files {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let model = text.lines().find_map(|line| line.strip_prefix("Model:")).map(str::trim);
        push(&mut gpus, model.unwrap_or_default(), &path.display().to_string());
    }
    if let Some((path, model)) = text(root, "proc/device-tree/model").filter(|_| gpus.is_empty()) {
        let model = model.trim_end_matches('\0').trim();
        if let Some(board) = model.strip_prefix("NVIDIA ").filter(|board| board.contains("Jetson")) {
            push(&mut gpus, board.trim_end_matches(" Developer Kit"), &path.display().to_string());
        }
    }
    gpus
}

fn push(gpus: &mut Vec<Fact<String>>, model: &str, how: &str) {
    if !model.is_empty() && !model.eq_ignore_ascii_case("unknown") && gpus.iter().all(|gpu| gpu.value != model) {
        gpus.push(Fact { value: model.to_owned(), seen: Evidence::observed(how, model) });
    }
}

/// Where the driver's files are hidden (WSL, some containers) its own tool still answers.
fn nvidia_smi(ask: Ask<'_>) -> (Option<Fact<Driver>>, Vec<Fact<String>>) {
    const ARGUMENTS: [&str; 2] = ["--query-gpu=driver_version,name", "--format=csv,noheader"];
    let Some(text) = ask("nvidia-smi", &ARGUMENTS) else { return (None, Vec::new()) };
    let how = format!("nvidia-smi {}", ARGUMENTS.join(" "));
    let (mut driver, mut gpus) = (None, Vec::new());
    for (version, name) in text.lines().filter_map(|line| line.split_once(',')) {
        if let (None, Ok(value)) = (&driver, version.trim().parse()) {
            driver = Some(Fact { value, seen: Evidence::observed(how.clone(), version.trim()) });
        }
        push(&mut gpus, name.trim(), &how);
    }
    (driver, gpus)
}

fn platform(machine: &str) -> Option<Fact<Platform>> {
    let value = Platform::ALL.into_iter().find(|platform| platform.machine() == machine)?;
    cfg!(target_os = "linux").then(|| Fact { value, seen: Evidence::observed("processor", machine) })
}

/// The C library of the first folder that has one.
fn glibc(root: &Path) -> Option<Fact<Glibc>> {
    const FOLDERS: [&str; 6] =
        ["lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "lib64", "usr/lib64", "usr/lib", "lib"];
    FOLDERS.iter().find_map(|folder| {
        let path = root.join(folder).join("libc.so.6");
        let value = release(&fs::read(&path).ok()?)?;
        let seen = Evidence::observed(path.display().to_string(), format!("release version {value}"));
        Some(Fact { value, seen })
    })
}

/// The C library names itself in its text: `GNU C Library (...) stable release version 2.36.`
pub(super) fn release(libc: &[u8]) -> Option<Glibc> {
    const OWN: &[u8] = b"GNU C Library";
    const BEFORE: &[u8] = b"release version ";
    let own = memchr::memmem::find(libc, OWN)?;
    let after = own + memchr::memmem::find(&libc[own..], BEFORE)? + BEFORE.len();
    let version = libc[after..].iter().copied().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').collect();
    String::from_utf8(version).ok()?.trim_end_matches('.').parse().ok()
}

/// The interpreter says its version, and whether it is built without the global lock.
fn python(ask: Ask<'_>) -> Option<Fact<PythonVersion>> {
    const CODE: &str = "import sys, sysconfig; print('%d.%d%s' % (sys.version_info[0], sys.version_info[1], \
                        't' if sysconfig.get_config_var('Py_GIL_DISABLED') else ''))";
    let text = ask("python3", &["-c", CODE])?;
    let value = text.parse().ok()?;
    Some(Fact { value, seen: Evidence::observed("python3 -c 'import sys ..'", text) })
}

fn text(root: &Path, path: &str) -> Option<(PathBuf, String)> {
    let path = root.join(path);
    let text = fs::read_to_string(&path).ok()?;
    Some((path, text))
}
