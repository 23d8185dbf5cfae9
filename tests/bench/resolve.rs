//! Whole processes: an offline resolve of torch 2.9.1 with torchvision beside `uv pip compile --offline` of the same pins
//! with a warm cache, alternating; then the growth with 1, 4 and 16 targets. Prints medians and peak memory; asserts
//! nothing about them.
//!
//! uv is the one that GPULOCK_BENCH_UV names, or the one on PATH:
//! `python3 -m venv uv && uv/bin/pip install uv && GPULOCK_BENCH_UV=$PWD/uv/bin/uv cargo bench`.
//! Its cache is warmed once, over the network. GPULOCK_BENCH_RUNS: runs of each, 41 by default.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use wait4::Wait4;

const TORCH: &str = "2.9.1";
const TORCHVISION: &str = "0.24.1";
const PYTHON: &str = "3.11";

/// What one process took.
struct Sample {
    wall: Duration,
    /// Time on the processors, user and system.
    cpu: Duration,
    /// Bytes. Linux counts what this process had when it started the other one, which is a few MB.
    peak: u64,
}

fn sample(command: &mut Command) -> Sample {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let child = command.spawn().expect("the program starts");
    let done = child.wait4().expect("a child to wait for");
    let wall = start.elapsed();
    assert!(done.status.success(), "{command:?}: {}", done.status);
    Sample { wall, cpu: done.rusage.utime + done.rusage.stime, peak: done.rusage.maxrss }
}

/// The middle one and the least, in milliseconds.
fn spread(mut times: Vec<Duration>) -> (f64, f64) {
    times.sort();
    (times[times.len() / 2].as_secs_f64() * 1e3, times[0].as_secs_f64() * 1e3)
}

/// Prints a line of the table; gives the median of the wall clock.
fn line(name: &str, samples: &[Sample]) -> f64 {
    let (wall, least) = spread(samples.iter().map(|sample| sample.wall).collect());
    let (cpu, _) = spread(samples.iter().map(|sample| sample.cpu).collect());
    let peak = samples.iter().map(|sample| sample.peak).max().unwrap_or_default() as f64 / 1e6;
    println!("{name:<34} {wall:>9.2} {least:>9.2} {cpu:>9.2} {peak:>9.1}");
    wall
}

fn gpulock(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpulock"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GPULOCK_") {
            command.env_remove(name);
        }
    }
    command.current_dir(folder).env("GPULOCK_CACHE_DIR", folder.join("cache")).args(["resolve", "--offline"]);
    command
}

fn uv(folder: &Path) -> Option<impl Fn(bool) -> Command> {
    let program = std::env::var("GPULOCK_BENCH_UV").unwrap_or_else(|_| "uv".into());
    let version = Command::new(&program).arg("--version").output().ok().filter(|output| output.status.success());
    let Some(version) = version else {
        println!("no uv (GPULOCK_BENCH_UV, PATH): own figures only");
        return None;
    };
    fs::write(folder.join("requirements.in"), format!("torch=={TORCH}\ntorchvision=={TORCHVISION}\n")).unwrap();
    let folder = folder.to_path_buf();
    let command = move |offline: bool| {
        let mut command = Command::new(&program);
        command.current_dir(&folder).env("UV_NO_CONFIG", "1");
        command.args(["pip", "compile", "requirements.in", "-o", "requirements.txt", "--no-annotate", "--quiet"]);
        command.args(["--python-version", PYTHON, "--python-platform", "x86_64-manylinux_2_28", "--cache-dir", "uv"]);
        if offline {
            command.arg("--offline");
        }
        command
    };
    let warmed = command(false).output().is_ok_and(|output| output.status.success());
    if !warmed {
        println!("uv cannot warm its cache (no network?): own figures only");
        return None;
    }
    println!("{}", String::from_utf8_lossy(&version.stdout).trim());
    Some(command)
}

/// A manifest of `count` targets, no two alike.
fn targets(count: usize) -> String {
    let gpus = ["A100", "H100", "RTX 4090", "L40S"];
    let drivers = ["570.124.06", "575.51.03", "580.65.06", "590.44.01"];
    let tables = (0..count)
        .map(|i| format!("[target.t{i}]\ngpus = [\"{}\"]\ndriver = \"{}\"\n", gpus[i % 4], drivers[i / 4 % 4]));
    let stack = format!("[stack]\npython = \"{PYTHON}\"\ntorch = \"{TORCH}\"\ntorchvision = \"*\"\n");
    stack + &tables.collect::<String>()
}

fn main() {
    let runs = std::env::var("GPULOCK_BENCH_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(41).max(1);
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let uv = uv(at);
    println!("torch {TORCH}, torchvision {TORCHVISION}, Python {PYTHON}; {runs} runs of each, alternating\n");
    println!("{:<34} {:>9} {:>9} {:>9} {:>9}", "", "median ms", "least ms", "cpu ms", "peak MB");

    let (mut own, mut other) = (Vec::new(), Vec::new());
    let mut resolve = gpulock(at);
    resolve.args(["--gpu", "A100", "--driver", "580.65.06", "--python", PYTHON, "--lock", "one.lock"]);
    resolve.args(["--torch", &format!("=={TORCH}"), "--torchvision", &format!("=={TORCHVISION}")]);
    for _ in 0..runs {
        // Each run starts from nothing: what is there would be preferred by both.
        let _ = fs::remove_file(at.join("one.lock"));
        own.push(sample(&mut resolve));
        if let Some(uv) = &uv {
            let _ = fs::remove_file(at.join("requirements.txt"));
            other.push(sample(&mut uv(true)));
        }
    }
    let ours = line("gpulock resolve --offline", &own);
    if !other.is_empty() {
        let uvs = line("uv pip compile --offline", &other);
        println!("{:<34} {:>8.1}x", "ratio of the medians", uvs / ours);
    }
    println!();
    for count in [1, 4, 16] {
        let project = at.join(format!("targets-{count}"));
        fs::create_dir(&project).unwrap();
        fs::write(project.join("gpulock.toml"), targets(count)).unwrap();
        let samples: Vec<Sample> = (0..runs)
            .map(|_| {
                let _ = fs::remove_file(project.join("gpulock.lock"));
                sample(&mut gpulock(&project))
            })
            .collect();
        line(&format!("targets: {count}"), &samples);
    }
    if let Ok(yes) = Command::new("true").spawn().and_then(|child| child.wait4()) {
        println!("\nleast peak that this method sees: {:.1} MB (`true`)", yes.rusage.maxrss as f64 / 1e6);
    }
}
