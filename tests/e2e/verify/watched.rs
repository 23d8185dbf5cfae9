//! `gpulock verify -- COMMAND` on real wheels: what it records, what it says, and that the command does not notice.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::environment::{Changed, findings, healthy, named};
use crate::run::{folder, gpulock, network};

const TORCH: &str = "import torch; torch.backends.cudnn.version(); print('through')";

/// Runs a command under gpulock: its output and the report.
fn watch(words: &[&str], variables: &[(&str, String)]) -> (Output, Value) {
    let folder = folder();
    let report = folder.path().join("report.json");
    let mut gpulock = gpulock(folder.path(), &folder.path().join("cache"));
    gpulock.args(["verify", "--format", "json", "-o"]).arg(&report).arg("--").args(words);
    gpulock.env_remove("LD_LIBRARY_PATH").env_remove("LD_PRELOAD");
    gpulock.envs(variables.iter().map(|(name, value)| (name, value)));
    let output = gpulock.output().unwrap();
    let text = fs::read_to_string(&report).unwrap_or_default();
    let report = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {text} {}", String::from_utf8_lossy(&output.stderr)));
    (output, report)
}

/// Loads and failures in the loader's own words, read line by line: a name that was asked for and of which nothing was
/// made, though no file that was tried is there.
fn read_independently(environment: &Path, code: &str) -> (Vec<String>, BTreeSet<String>) {
    let folder = folder();
    let mut python = Command::new(environment.join("bin/python"));
    python.args(["-c", code]).env("LD_DEBUG", "files,libs").env("LD_DEBUG_OUTPUT", folder.path().join("x"));
    python.env_remove("LD_LIBRARY_PATH").env_remove("LD_PRELOAD").stdout(Stdio::null());
    assert!(python.status().unwrap().success());
    let file = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let text = fs::read_to_string(file).unwrap();
    let lines: Vec<&str> = text.lines().filter_map(|line| line.split_once(":\t")).map(|(_, line)| line).collect();
    let name = |line: &str| line.strip_prefix("file=").unwrap().split(" [").next().unwrap().to_owned();
    let loads: Vec<String> =
        lines.iter().filter(|line| line.ends_with("generating link map")).map(|line| name(line)).collect();
    let mut failures = BTreeSet::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("find library=")) {
        let asked = line.strip_prefix("find library=").unwrap().split(" [").next().unwrap();
        let rest = lines[at + 1..].iter().take_while(|line| !line.starts_with("find library="));
        let rest: Vec<&&str> = rest.take_while(|line| !line.starts_with("file=") || name(line) == asked).collect();
        let made = rest.iter().any(|line| line.ends_with("generating link map"));
        let tried: Vec<&str> = rest.iter().filter_map(|line| line.strip_prefix("  trying file=")).collect();
        if !made && !tried.iter().any(|path| Path::new(path).exists()) {
            failures.insert(asked.to_owned());
        }
    }
    (loads, failures)
}

#[test]
fn network_loads_and_failures_are_those_of_the_loader() {
    if !network() {
        return;
    }
    let Some(healthy) = healthy() else { return };
    let python = healthy.path().join("bin/python").display().to_string();
    let (output, report) = watch(&[&python, "-c", TORCH], &[]);
    assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b"through\n"[..]), "{report:#}");
    assert_eq!(findings(&report, &["error", "warning", "note"]), Vec::<String>::new());
    let (loads, failures) = read_independently(&healthy.path(), TORCH);
    let program = &report["run"]["programs"][0];
    let names = |key: &str| -> Vec<String> {
        program[key].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("loads"), loads);
    assert_eq!(names("failures").into_iter().collect::<BTreeSet<_>>(), failures);
    println!("{} loads, {} failures: {failures:?}", loads.len(), failures.len());
}

/// A change, the code that is run, how it ends, and the rule that explains it.
type Broken = (&'static str, fn(&mut Changed), &'static str, i32, &'static str, &'static [&'static str]);

const BROKEN: [Broken; 5] = [
    (
        "a library that import needs",
        |env| env.remove("nvidia/cusparselt"),
        "import torch",
        1,
        "unresolved-needed",
        &["libcusparseLt.so.0"],
    ),
    (
        "NCCL older than torch needs",
        |env| env.replace("nvidia-nccl-cu12==2.20.5", "nvidia/nccl/lib"),
        "import torch",
        1,
        "nccl-mismatch",
        &["ncclGroupSimulateEnd", "2.20.5"],
    ),
    (
        "nvJitLink older than cuSPARSE needs",
        |env| env.replace("nvidia-nvjitlink-cu12==12.1.105", "nvidia/nvjitlink/lib"),
        "import torch",
        1,
        "nvjitlink-mismatch",
        &["12.1"],
    ),
    (
        "a part of cuDNN that is not there",
        |env| env.remove("nvidia/cudnn/lib/libcudnn_graph.so.9"),
        "import torch; torch.backends.cudnn.version()",
        134,
        "cudnn-sublibrary-missing",
        &["libcudnn_graph.so.9"],
    ),
    (
        "a part of cuDNN of another release",
        |env| env.replace("nvidia-cudnn-cu12==9.11.0.98", "nvidia/cudnn/lib/libcudnn_ops.so.9"),
        "import torch, os; torch.backends.cudnn.version(); os._exit(3)",
        3,
        "cudnn-version-mixed",
        &["9.11.0"],
    ),
];

#[test]
fn network_deaths_are_explained() {
    if !network() {
        return;
    }
    let Some(healthy) = healthy() else { return };
    for (name, change, code, status, rule, words) in BROKEN {
        let mut changed = Changed::copy(&healthy.path());
        change(&mut changed);
        let python = changed.path.join("bin/python").display().to_string();
        let (output, report) = watch(&[&python, "-c", code], &[]);
        println!("{name}: {}\n    {}", report["run"]["ended"], findings(&report, &["error", "note"]).join("\n    "));
        assert_eq!(
            (output.status.code(), &report["summary"]["error"]),
            (Some(status), &1.into()),
            "{name}: {report:#}"
        );
        assert!(named(&report, rule, words), "{name}: {report:#}");
        assert!(named(&report, "command-failed", &[rule]), "{name}: {report:#}");
    }
}

/// Streams, exit status, signals and children are the command's own.
#[test]
fn the_command_does_not_notice() {
    let folder = folder();
    let start = |words: &[&str]| {
        let mut gpulock = gpulock(folder.path(), &folder.path().join("cache"));
        gpulock.args(["verify", "--"]).args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        gpulock.spawn().unwrap()
    };
    let mut cat = start(&["cat"]);
    std::io::Write::write_all(&mut cat.stdin.take().unwrap(), b"in\0out").unwrap();
    let output = cat.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(3), &b"in\0out"[..]));
    let output = start(&["sh", "-c", "exit 7"]).wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.status.signal(), output.stdout.len()), (Some(7), None, 0));
    let output = start(&["sh", "-c", "kill -SEGV $$"]).wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(139) && said.contains("signal SIGSEGV"), "{said}");
    // A signal to gpulock reaches the command, which decides.
    let mut trap = start(&["sh", "-c", "trap 'echo told; exit 5' TERM; echo ready; while :; do sleep 0.05; done"]);
    let mut ready = [0; 6];
    std::io::Read::read_exact(trap.stdout.as_mut().unwrap(), &mut ready).unwrap();
    let kill = Command::new("kill").args(["-TERM", &trap.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let output = trap.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(5), &b"told\n"[..]));
    // What goes on after the command finds its loader's folder still there, and nothing on its standard output.
    let mut goes_on = start(&["sh", "-c", "(sleep 5; cat /dev/null; echo later) & echo first"]);
    let mut out = String::new();
    std::io::Read::read_to_string(goes_on.stdout.as_mut().unwrap(), &mut out).unwrap();
    let output = goes_on.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(out, "first\nlater\n", "{said}");
    assert!(said.contains("command-goes-on"), "{said}");
    let kept = said.lines().find_map(|line| line.split("seen: ").nth(1)?.split(": kept").next()).unwrap();
    fs::remove_dir_all(kept).unwrap();
    let left = std::env::temp_dir().read_dir().unwrap().flatten();
    assert_eq!(left.filter(|entry| entry.file_name().to_string_lossy().starts_with("gpulock-")).count(), 0);
}

/// The least of several runs with and without, so that other work of the machine counts little.
#[test]
fn network_listening_costs_little() {
    if !network() {
        return;
    }
    let Some(healthy) = healthy() else { return };
    let folder = folder();
    let python = healthy.path().join("bin/python");
    let least = |make: &dyn Fn() -> Command| -> Duration {
        let run = || {
            let started = Instant::now();
            assert!(make().stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success());
            started.elapsed()
        };
        (0..5).map(|_| run()).min().unwrap()
    };
    let plain = least(&|| {
        let mut command = Command::new(&python);
        command.args(["-c", "import torch"]);
        command
    });
    let watched = least(&|| {
        let mut command = gpulock(folder.path(), &folder.path().join("cache"));
        command.args(["verify", "--"]).arg(&python).args(["-c", "import torch"]);
        command
    });
    let times = watched.as_secs_f64() / plain.as_secs_f64();
    println!("import torch: {plain:.2?}, watched {watched:.2?}: {times:.2} times");
    // Without optimisation the rules themselves take longer.
    let most = if cfg!(debug_assertions) { 3.0 } else { 1.15 };
    assert!(times <= most, "{times}");
}

/// Reading alone and a run, side by side, for each environment that is put together wrongly: the run shows no fault that
/// reading missed.
#[test]
fn network_reading_and_running_agree() {
    if !network() {
        return;
    }
    let Some(healthy) = healthy() else { return };
    let ask = |changed: &mut Changed| -> String {
        changed.ask(&["--probe", "cudnn"]);
        let (report, _) = changed.verify();
        let all = report["findings"].as_array().unwrap().iter();
        let compared = all.filter(|one| one["code"] == "probe").map(|one| one["message"].as_str().unwrap().to_owned());
        compared.collect()
    };
    let healthy = healthy.path();
    println!("healthy: {}", ask(&mut Changed::copy(&healthy)));
    for case in &super::broken::CASES {
        let mut changed = Changed::copy(&healthy);
        (case.change)(&mut changed);
        let compared = ask(&mut changed);
        println!("{}: {compared}", case.name);
        let (read, run) = compared.split_once("; run of cudnn: ").unwrap();
        let seen = run.rsplit(", ").filter(|code| code.contains('-'));
        for code in seen {
            assert!(read.contains(code), "{}: reading missed {code}: {compared}", case.name);
        }
    }
}
