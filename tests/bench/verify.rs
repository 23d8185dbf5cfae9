//! Whole processes on a real environment: `gpulock verify` beside `ldd` over all its libraries and, once, `cuobjdump` over
//! all of them, as users would otherwise ask; `gpulock verify --integrity` beside `openssl dgst -sha256`; then the growth
//! with 1, 4 and 16 times the packages. Prints times, the memory of a process that is its own, and ratios; asserts nothing
//! about them.
//!
//! GPULOCK_BENCH_ENV: the virtual environment. GPULOCK_BENCH_GPU and GPULOCK_BENCH_DRIVER: A100 and 570 by default.
//! GPULOCK_BENCH_RUNS: runs of each, 11 by default. `cuobjdump` is the one of the environment's triton.
//!
//! The growth is that of a site-packages folder with the environment's packages 1, 4 and 16 times, as hard links (symbolic
//! ones where the build lies on another disk): what is read of a folder and its files is read so often, but each inode
//! once, as everywhere. Libraries up to 4 MB are copied besides, so that reading ELF files grows too; larger ones would
//! fill the disk.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use wait4::Wait4;
use walkdir::WalkDir;

/// Libraries up to this size are copied.
const COPIED: u64 = 4 << 20;

/// What one process, with those that it waited for, took.
struct Sample {
    wall: Duration,
    cpu: Duration,
    /// Most anonymous memory that was seen, in bytes; of the first process alone.
    anonymous: u64,
}

/// Anonymous memory of a process now, in bytes.
fn anonymous(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    Some(line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()? << 10)
}

/// Looks at the memory each millisecond if `watched`, which costs time.
fn sample(command: &mut Command, watched: bool) -> Sample {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let child = command.spawn().expect("the program starts");
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let id = child.id();
    let watcher = watched.then(|| {
        std::thread::spawn(move || {
            let mut most = 0;
            while stopped.recv_timeout(Duration::from_millis(1)) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                most = most.max(anonymous(id).unwrap_or(0));
            }
            most
        })
    });
    let done = child.wait4().expect("a child to wait for");
    let wall = start.elapsed();
    drop(stop);
    let anonymous = watcher.map_or(0, |watcher| watcher.join().unwrap());
    // A finding is an answer; what could not be answered is no measurement.
    let code = done.status.code();
    assert!(matches!(code, Some(0 | 1)), "{command:?}: {code:?}");
    Sample { wall, cpu: done.rusage.utime + done.rusage.stime, anonymous }
}

/// Prints a line of the table; gives the median of the wall clock in milliseconds.
fn line(name: &str, samples: &[Sample], memory: u64) -> f64 {
    let sorted = |time: fn(&Sample) -> Duration| {
        let mut times: Vec<f64> = samples.iter().map(|sample| time(sample).as_secs_f64() * 1e3).collect();
        times.sort_by(f64::total_cmp);
        times
    };
    let (wall, cpu) = (sorted(|sample| sample.wall), sorted(|sample| sample.cpu));
    let (middle, last) = (wall.len() / 2, wall.len() - 1);
    let memory = if memory == 0 { "-".into() } else { format!("{:.1}", memory as f64 / 1e6) };
    let (least, median, most, cpu) = (wall[0], wall[middle], wall[last], cpu[middle]);
    println!("{name:<34} {least:>9.1} {median:>9.1} {most:>9.1} {cpu:>9.1} {memory:>9}");
    median
}

fn verify(subject: &Path, more: &[&str]) -> Command {
    let setting = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.into());
    let (gpu, driver) = (setting("GPULOCK_BENCH_GPU", "A100"), setting("GPULOCK_BENCH_DRIVER", "570"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpulock"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GPULOCK_") {
            command.env_remove(name);
        }
    }
    // Not where a lock lies.
    command.current_dir("/").arg("verify").arg(subject).args(["--gpu", &gpu, "--driver", &driver]).args(more);
    command
}

/// A shell command over the names in the file `list`, one a line.
fn shell(text: &str, list: &Path) -> Command {
    let mut command = Command::new("sh");
    // What such a tool says of a single file is not asked.
    command.arg("-c").arg(format!("{text}; true")).env("LIST", list);
    command
}

/// All regular files that are named as libraries.
fn libraries(environment: &Path) -> Vec<PathBuf> {
    let named = |name: &str| name.ends_with(".so") || name.contains(".so.");
    let files = WalkDir::new(environment).into_iter().filter_map(Result::ok);
    let files = files.filter(|entry| entry.file_type().is_file() && named(&entry.file_name().to_string_lossy()));
    files.map(walkdir::DirEntry::into_path).collect()
}

fn site_packages(environment: &Path) -> Option<PathBuf> {
    let mut folders = WalkDir::new(environment).max_depth(3).into_iter().filter_map(Result::ok);
    folders.find(|entry| entry.file_name() == "site-packages").map(walkdir::DirEntry::into_path)
}

/// A site-packages folder that has the packages of `site` `times` times: once as they are, the others in folders.
fn multiplied(site: &Path, libraries: &[PathBuf], folder: &Path, times: usize) -> PathBuf {
    let grown = folder.join(format!("{times}/site-packages"));
    for i in 0..times {
        let part = if i == 0 { grown.clone() } else { grown.join(format!("part{i}")) };
        for file in WalkDir::new(site).min_depth(1).into_iter().filter_map(Result::ok) {
            let to = part.join(file.path().strip_prefix(site).unwrap());
            if file.file_type().is_dir() {
                fs::create_dir_all(&to).unwrap();
                continue;
            }
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            let copied = libraries.iter().any(|library| library == file.path())
                && file.metadata().is_ok_and(|metadata| metadata.len() <= COPIED);
            match copied {
                true => drop(fs::copy(file.path(), &to).unwrap()),
                false => fs::hard_link(file.path(), &to).or_else(|_| symlink(file.path(), &to)).unwrap(),
            }
        }
    }
    grown
}

fn main() {
    let Some(environment) = std::env::var_os("GPULOCK_BENCH_ENV").map(PathBuf::from) else {
        println!("verify: GPULOCK_BENCH_ENV names no environment, nothing is measured");
        return;
    };
    let environment = environment.canonicalize().expect("GPULOCK_BENCH_ENV is a folder");
    let runs = std::env::var("GPULOCK_BENCH_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(11).max(1);
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let files = libraries(&environment);
    let list = folder.path().join("list");
    let names: String = files.iter().map(|file| format!("{}\n", file.display())).collect();
    fs::write(&list, names).unwrap();
    let bytes: u64 = files.iter().filter_map(|file| fs::metadata(file).ok()).map(|metadata| metadata.len()).sum();
    println!("{} libraries of {:.2} GB; {runs} runs of each, alternating\n", files.len(), bytes as f64 / 1e9);
    println!("{:<34} {:>9} {:>9} {:>9} {:>9} {:>9}", "", "least ms", "median ms", "most ms", "cpu ms", "anon MB");

    let ldd = || shell("while read -r file; do ldd \"$file\"; done < \"$LIST\"", &list);
    // All that is read is in memory from here on.
    let memory = sample(&mut verify(&environment, &[]), true).anonymous;
    let (mut own, mut other) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        own.push(sample(&mut verify(&environment, &[]), false));
        other.push(sample(&mut ldd(), false));
    }
    let ours = line("gpulock verify", &own, memory);
    let ratio = |name: &str, theirs: f64, ours: f64| println!("{name:<34} {:>19.1}x", theirs / ours);
    ratio("  ratio of the medians", line("ldd of each", &other, 0), ours);

    let tool = WalkDir::new(&environment).into_iter().filter_map(Result::ok);
    match tool.map(walkdir::DirEntry::into_path).find(|path| path.ends_with("bin/cuobjdump")) {
        None => println!("no cuobjdump in the environment"),
        Some(tool) => {
            let text = "while read -r file; do \"$TOOL\" --list-elf \"$file\"; \"$TOOL\" --list-ptx \"$file\"; done < \"$LIST\"";
            let once = [sample(shell(text, &list).env("TOOL", tool), false)];
            ratio("  ratio", line("cuobjdump of each, once", &once, 0), ours);
        }
    }

    let has_integrity = Command::new(env!("CARGO_BIN_EXE_gpulock")).args(["verify", "--help"]).output();
    if has_integrity.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains("--integrity")) {
        let (mut own, mut other) = (Vec::new(), Vec::new());
        let memory = sample(&mut verify(&environment, &["--integrity"]), true).anonymous;
        for _ in 0..3 {
            own.push(sample(&mut verify(&environment, &["--integrity"]), false));
            let text = "tr '\\n' '\\0' < \"$LIST\" | xargs -0 -n 8 -P \"$(nproc)\" openssl dgst -sha256";
            other.push(sample(&mut shell(text, &list), false));
        }
        let ours = line("gpulock verify --integrity", &own, memory);
        ratio("  ratio of the medians", line("openssl, libraries alone", &other, 0), ours);
    }

    println!();
    let Some(site) = site_packages(&environment) else { return };
    let mut single = None;
    for times in [1, 4, 16] {
        let grown = multiplied(&site, &files, folder.path(), times);
        let memory = sample(&mut verify(&grown, &[]), true).anonymous;
        let samples: Vec<Sample> = (0..runs).map(|_| sample(&mut verify(&grown, &[]), false)).collect();
        let median = line(&format!("packages: {times}x"), &samples, memory);
        println!("{:<34} {:>19.1}x", "  of the time for 1x", median / *single.get_or_insert(median));
        fs::remove_dir_all(grown.parent().unwrap()).unwrap();
    }
}
