//! Runs the program and the tools beside it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Whether the registries may be asked; says so if not.
pub fn network() -> bool {
    let wanted = std::env::var("GPULOCK_TEST_NETWORK").as_deref() == Ok("1");
    if !wanted {
        println!("skipped: needs the network (GPULOCK_TEST_NETWORK=1)");
    }
    wanted
}

/// A folder of its own, on the disk of the build and not in memory.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// The program: the one that GPULOCK_TEST_PROGRAM names, else the one built with the tests.
pub fn program() -> PathBuf {
    std::env::var_os("GPULOCK_TEST_PROGRAM").map_or_else(|| env!("CARGO_BIN_EXE_gpulock").into(), PathBuf::from)
}

/// gpulock in `folder`, with `cache`, and nothing else that the surroundings configure but how to reach a registry.
pub fn gpulock(folder: &Path, cache: &Path) -> Command {
    let mut command = Command::new(program());
    clear(&mut command, "GPULOCK_", &["GPULOCK_MIRROR", "GPULOCK_HTTP_TIMEOUT"]);
    command.current_dir(folder).env("GPULOCK_CACHE_DIR", cache);
    command
}

/// The newest uv that the tests know to agree with, as `.ci/run` installs it.
pub fn uv() -> Option<Command> {
    let program = std::env::var("GPULOCK_TEST_UV").unwrap_or_else(|_| "uv".into());
    if !Command::new(&program).arg("--version").output().is_ok_and(|output| output.status.success()) {
        println!("skipped: no uv on PATH, and GPULOCK_TEST_UV names none");
        return None;
    }
    let mut command = Command::new(program);
    let reach =
        ["UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_CACHE_DIR", "UV_HTTP_TIMEOUT", "UV_NATIVE_TLS", "UV_SYSTEM_CERTS"];
    clear(&mut command, "UV_", &reach);
    command.env("UV_NO_CONFIG", "1").env("UV_NO_PROGRESS", "1");
    Some(command)
}

/// `program -m pip` without wheels of this machine.
pub fn python(program: &Path) -> Command {
    let mut command = Command::new(program);
    let reach = ["PIP_INDEX_URL", "PIP_CERT", "PIP_TRUSTED_HOST", "PIP_PROXY", "PIP_DEFAULT_TIMEOUT", "PIP_CACHE_DIR"];
    clear(&mut command, "PIP_", &reach);
    clear(&mut command, "PYTHON", &[]);
    command.envs([("PIP_DISABLE_PIP_VERSION_CHECK", "1"), ("PIP_NO_INPUT", "1"), ("PIP_PROGRESS_BAR", "off")]);
    command
}

fn clear(command: &mut Command, prefix: &str, but: &[&str]) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with(prefix) && !but.contains(&&*text) {
            command.env_remove(&name);
        }
    }
}

/// Runs it to its end; it must succeed.
pub fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Standard output of a command that must succeed.
pub fn stdout(command: &mut Command) -> String {
    String::from_utf8(succeed(command).stdout).unwrap().trim_end().to_owned()
}

/// Does it, and how long it took.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let done = work();
    (done, start.elapsed())
}

/// Every file below a folder.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => files.extend(self::files(&entry.path())),
            false => files.push(entry.path()),
        }
    }
    files.sort();
    files
}

/// Bytes as people read them.
pub fn gb(bytes: u64) -> String {
    format!("{:.2} GB", bytes as f64 / 1e9)
}
