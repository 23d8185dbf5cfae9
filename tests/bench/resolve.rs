//! Whole processes: an offline resolve of torch 2.9.1 with torchvision, without a cache and with a warm one, beside
//! `uv pip compile --offline` of the same pins with a warm cache, all alternating; then the growth with 1, 4 and 16
//! targets. Prints least, median and most of the wall clock, and peak memory; asserts nothing about them.
//!
//! uv is the one that GPULOCK_BENCH_UV names, or the one on PATH:
//! `python3 -m venv uv && uv/bin/pip install uv && GPULOCK_BENCH_UV=$PWD/uv/bin/uv cargo bench`.
//! It runs in two forms: told its interpreter, and left to find one as it does by itself. The second is slower where the
//! first `python3` on PATH is a shim. Both caches are warmed once, over the network; what cannot be warmed is left out.
//! GPULOCK_BENCH_RUNS: runs of each, 41 by default.

use std::fs;
use std::path::{Path, PathBuf};
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

/// What is timed, and how it went.
struct Case {
    name: String,
    command: Command,
    /// Removed before each run: what is there would be preferred.
    output: PathBuf,
    samples: Vec<Sample>,
}

impl Case {
    fn new(name: impl Into<String>, command: Command, output: PathBuf) -> Self {
        Self { name: name.into(), command, output, samples: Vec::new() }
    }

    fn run(&mut self) {
        let _ = fs::remove_file(&self.output);
        self.command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let start = Instant::now();
        let child = self.command.spawn().expect("the program starts");
        let done = child.wait4().expect("a child to wait for");
        let wall = start.elapsed();
        assert!(done.status.success() && self.output.exists(), "{:?}: {}", self.command, done.status);
        self.samples.push(Sample { wall, cpu: done.rusage.utime + done.rusage.stime, peak: done.rusage.maxrss });
    }

    /// Prints a line of the table; gives the median of the wall clock.
    fn report(&self) -> f64 {
        let sorted = |time: fn(&Sample) -> Duration| {
            let mut times: Vec<f64> = self.samples.iter().map(|sample| time(sample).as_secs_f64() * 1e3).collect();
            times.sort_by(f64::total_cmp);
            times
        };
        let (wall, cpu) = (sorted(|sample| sample.wall), sorted(|sample| sample.cpu));
        let middle = wall.len() / 2;
        let peak = self.samples.iter().map(|sample| sample.peak).max().unwrap_or_default() as f64 / 1e6;
        let (least, most) = (wall[0], wall[wall.len() - 1]);
        println!("{:<44} {least:>8.2} {:>9.2} {most:>8.2} {:>8.2} {peak:>8.1}", self.name, wall[middle], cpu[middle]);
        wall[middle]
    }
}

/// Runs all cases in turn, so that what else the machine does strikes all of them alike.
fn alternate(cases: &mut [Case], runs: usize) {
    for _ in 0..runs {
        cases.iter_mut().for_each(Case::run);
    }
}

fn gpulock(folder: &Path, cache: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpulock"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GPULOCK_") {
            command.env_remove(name);
        }
    }
    command.current_dir(folder).args(["resolve", "--cache-dir"]).arg(folder.join(cache));
    command
}

/// The same stack that uv is asked for.
fn one_off(folder: &Path, cache: &str, lock: &str) -> Command {
    let mut command = gpulock(folder, cache);
    command.args(["--gpu", "A100", "--driver", "580.65.06", "--python", PYTHON, "--lock", lock]);
    command.args(["--torch", &format!("=={TORCH}"), "--torchvision", &format!("=={TORCHVISION}")]);
    command
}

/// Fills the cache over the network; whether that went well.
fn warm(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

fn own_cases(folder: &Path) -> Vec<Case> {
    let case = |name: &str, cache: &str| {
        let lock = format!("{cache}.lock");
        let mut command = one_off(folder, cache, &lock);
        command.arg("--offline");
        Case::new(format!("gpulock resolve --offline, {name}"), command, folder.join(lock))
    };
    let mut cases = vec![case("no cache", "none")];
    if warm(&mut one_off(folder, "warm", "online.lock")) {
        cases.push(case("warm cache", "warm"));
    } else {
        println!("gpulock cannot warm its cache (no network?): without a cache only");
    }
    cases
}

fn uv_cases(folder: &Path) -> Vec<Case> {
    let program = std::env::var("GPULOCK_BENCH_UV").unwrap_or_else(|_| "uv".into());
    let printed = |command: &mut Command| {
        let output = command.output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(version) = printed(Command::new(&program).arg("--version")) else {
        println!("no uv (GPULOCK_BENCH_UV, PATH): own figures only");
        return Vec::new();
    };
    fs::write(folder.join("requirements.in"), format!("torch=={TORCH}\ntorchvision=={TORCHVISION}\n")).unwrap();
    let compile = |python: Option<&str>| {
        let mut command = Command::new(&program);
        command.current_dir(folder).env("UV_NO_CONFIG", "1");
        command.args(["pip", "compile", "requirements.in", "-o", "requirements.txt", "--no-annotate", "--quiet"]);
        command.args(["--python-version", PYTHON, "--python-platform", "x86_64-manylinux_2_28", "--cache-dir", "uv"]);
        command.args(python.iter().flat_map(|python| ["--python", python]));
        command
    };
    let real = "import os, sys; print(os.path.realpath(sys.executable))";
    let python = printed(Command::new("python3").args(["-c", real]));
    let forms = [("interpreter named", python.as_deref()), ("interpreter looked for", None)];
    let mut cases = Vec::new();
    for (name, python) in forms {
        if (name, python) == ("interpreter named", None) {
            println!("no python3 on PATH that could be named to uv");
            continue;
        }
        if !warm(&mut compile(python)) {
            println!("uv cannot warm its cache (no network, no Python?): not compared, {name}");
            continue;
        }
        let mut command = compile(python);
        command.arg("--offline");
        let output = folder.join("requirements.txt");
        cases.push(Case::new(format!("uv pip compile --offline, {name}"), command, output));
    }
    println!("{version}; named: {}", python.as_deref().unwrap_or("none"));
    cases
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
    let mut cases = own_cases(at);
    let own = cases.len();
    cases.extend(uv_cases(at));
    println!("torch {TORCH}, torchvision {TORCHVISION}, Python {PYTHON}; {runs} runs of each, alternating\n");
    println!("{:<44} {:>8} {:>9} {:>8} {:>8} {:>8}", "", "least ms", "median ms", "most ms", "cpu ms", "peak MB");
    alternate(&mut cases, runs);
    let medians: Vec<f64> = cases.iter().map(Case::report).collect();
    println!();
    for (ours, median) in cases.iter().zip(&medians).take(own) {
        for (theirs, other) in cases.iter().zip(&medians).skip(own) {
            println!("{:>6.1}x  {} : {}", other / median, ours.name, theirs.name);
        }
    }
    println!();
    let caches = &["none", "warm"][..own];
    let mut growth: Vec<Case> = Vec::new();
    for (cache, count) in caches.iter().flat_map(|cache| [1, 4, 16].map(|count| (cache, count))) {
        let project = at.join(format!("{cache}-{count}"));
        fs::create_dir(&project).unwrap();
        fs::write(project.join("gpulock.toml"), targets(count)).unwrap();
        let mut command = gpulock(at, cache);
        command.current_dir(&project).arg("--offline");
        let name = format!("targets: {count}, {}", if *cache == "none" { "no cache" } else { "warm cache" });
        growth.push(Case::new(name, command, project.join("gpulock.lock")));
    }
    alternate(&mut growth, runs);
    for case in &growth {
        case.report();
    }
    if let Ok(yes) = Command::new("true").spawn().and_then(|child| child.wait4()) {
        println!("\nleast peak that this method sees: {:.1} MB (`true`)", yes.rusage.maxrss as f64 / 1e6);
    }
}
