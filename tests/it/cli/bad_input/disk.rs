//! Places that cannot be written to, and a process that is killed while it writes.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use gpulock::lock::Lock;

use crate::cli::program::{Place, Ran};

const RESOLVE: [&str; 2] = ["resolve", "--offline"];

/// Mounts a small file system at `small`, runs, unmounts; false where this user may not mount.
fn with_mount(place: &Place, options: &str, run: impl FnOnce() + std::panic::UnwindSafe) -> bool {
    let folder = place.path("small");
    fs::create_dir(&folder).unwrap();
    let program = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).arg(&folder).output();
        output.is_ok_and(|output| output.status.success())
    };
    if !program("mount", &["-t", "tmpfs", "-o", options, "tmpfs"]) {
        println!("skipped: this user may not mount a small file system");
        return false;
    }
    let result = std::panic::catch_unwind(run);
    assert!(program("umount", &[]));
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    true
}

#[test]
fn a_folder_of_that_name() {
    let place = Place::with(crate::cli::program::GOOD);
    fs::create_dir(place.path("gpulock.lock")).unwrap();
    place.refuses(&RESOLVE, 2).says(&["gpulock.lock is a folder, not a file", "help:"]);
    place.refuses(&["resolve", "--offline", "--upgrade"], 2).says(&["gpulock.lock is a folder", "help:"]);
}

#[test]
fn a_path_that_leads_nowhere() {
    let place = Place::with(crate::cli::program::GOOD);
    let lock = |path| place.refuses(&["resolve", "--offline", "--lock", path], 2);
    lock("none/gpulock.lock").says(&["error[cannot-write]", "its folder does not exist", "create the folder"]);
    lock("gpulock.toml/gpulock.lock").says(&["gpulock.toml/gpulock.lock cannot be read", "help:"]);
}

#[test]
fn a_read_only_folder() {
    let place = Place::with(crate::cli::program::GOOD);
    with_mount(&place, "size=64k,ro", || {
        let words = ["error[cannot-write]", "small/gpulock.lock: its file system is read-only", "another place"];
        place.refuses(&["resolve", "--offline", "--lock", "small/gpulock.lock"], 2).says(&words);
        place.refuses(&["resolve", "--offline", "-o", "small/report.txt", "--dry-run"], 2).says(&["is read-only"]);
    });
    // Nobody can create files there, root included.
    place.refuses(&["resolve", "--offline", "--lock", "/proc/gpulock.lock"], 2).says(&["cannot write /proc", "help:"]);
}

#[test]
fn a_read_only_lock() {
    let place = Place::locked();
    let mut permissions = fs::metadata(place.path("gpulock.lock")).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(place.path("gpulock.lock"), permissions).unwrap();
    place.put("gpulock.toml", crate::cli::program::GOOD.replace("2.8.0", "2.7.1"));
    place.refuses(&RESOLVE, 2).says(&["cannot write gpulock.lock", "read-only", "the file is as it was"]);
}

#[test]
fn a_full_disk() {
    let place = Place::with(crate::cli::program::GOOD);
    with_mount(&place, "size=16k", || {
        let lock = ["resolve", "--offline", "--lock", "small/gpulock.lock"];
        place.refuses(&lock, 2).says(&["error[cannot-write]", "the disk is full", "free some space"]);
    });
    fs::remove_dir(place.path("small")).unwrap();
    with_mount(&place, "size=32k", || {
        // Room for one lock and not for the second beside it.
        let lock = |gpu, torch| {
            ["resolve", "--offline", "--lock", "small/gpulock.lock", "--driver", "580", "--gpu", gpu, "--torch", torch]
        };
        place.run(&lock("A100", "2.8.0")).code(0);
        place.refuses(&lock("H100", "2.10.0"), 2).says(&["the disk is full", "the file is as it was"]);
    });
}

#[test]
fn outputs_that_are_full_or_gone() {
    let place = Place::locked();
    let shell = |line: &str| {
        let binary = env!("CARGO_BIN_EXE_gpulock");
        Ran::of(place.shell(&line.replace("gpulock ", &format!("{binary} "))).output().unwrap())
    };
    let full = "cannot write to standard output: No space left on device";
    shell("gpulock export requirements >/dev/full").code(2).says(&[full]);
    for words in [
        "completions bash",
        "man",
        "--help",
        "--version",
        "help resolve",
        "matrix show",
        "why torch",
        "resolve --locked",
    ] {
        shell(&format!("gpulock {words} >/dev/full")).code(2).says(&[full]);
        // A reader that is gone before the first byte is no error either.
        let gone = format!("(sleep 0.2; gpulock {words}; echo $? >&2) | true");
        assert_eq!(shell(&gone).code(0).err, "0\n", "{words}");
    }
    shell("gpulock resolve --locked --lock none 2>/dev/full").code(1);
    // A reader that has seen enough is no error.
    shell("(gpulock export requirements; echo $? >&2) | head -n 1 >/dev/null").code(0).says(&["0"]);
    shell("(gpulock completions bash; echo $? >&2) | head -n 1 >/dev/null").code(0).says(&["0"]);
}

#[test]
fn killed_at_any_time() {
    let place = Place::locked();
    let other = Place::with(&crate::cli::program::GOOD.replace("2.8.0", "2.7.1"));
    let start = Instant::now();
    other.run(&RESOLVE).code(0);
    let whole = start.elapsed();
    let (first, second) = (place.lock(), other.lock());
    assert_ne!(first, second);
    let mut ended = 0;
    for round in 0..50_u32 {
        // From no lock, and from the lock of the other manifest.
        let (manifest, old) = match round % 3 {
            0 => (other.text("gpulock.toml"), Some(&first)),
            1 => (crate::cli::program::GOOD.to_owned(), Some(&second)),
            _ => (crate::cli::program::GOOD.to_owned(), None),
        };
        place.put("gpulock.toml", &manifest);
        let _ = fs::remove_file(place.path("gpulock.lock"));
        old.inspect(|old| place.put("gpulock.lock", old));
        let quiet = || Stdio::null();
        let mut victim = place.command(&RESOLVE).stdout(quiet()).stderr(quiet()).spawn().unwrap();
        // Spread over the whole run, thickest around its end, where the lock is written.
        let part = f64::from(round * 37 % 50) / 50.0;
        std::thread::sleep(whole.mul_f64(0.2 + 1.1 * part.sqrt()).min(Duration::from_secs(5)));
        ended += u32::from(victim.try_wait().unwrap().is_some());
        let _ = victim.kill();
        victim.wait().unwrap();
        match fs::read_to_string(place.path("gpulock.lock")) {
            Ok(text) => {
                assert!(text == first || text == second, "round {round}: neither the old lock nor a new one");
                Lock::parse(&text, "gpulock.lock").unwrap();
            }
            Err(error) => assert!(old.is_none(), "round {round}: {error}"),
        }
        let stray: Vec<String> = place.names().into_iter().filter(|name| name.starts_with(".gpulock")).collect();
        // A process that is killed cannot clean up; the next one does not stumble over what is left.
        stray.iter().for_each(|name| fs::remove_file(place.path(name)).unwrap());
    }
    println!("{ended} of 50 had ended before they were killed");
}

#[test]
fn two_at_once() {
    let place = Place::with(crate::cli::program::GOOD);
    let all: Vec<_> =
        (0..6).map(|_| place.command(&RESOLVE).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()).collect();
    for mut one in all {
        assert!(one.wait().unwrap().success());
    }
    assert_eq!(place.lock(), Place::locked().lock());
    assert_eq!(place.names(), ["gpulock.lock", "gpulock.toml"]);
}
