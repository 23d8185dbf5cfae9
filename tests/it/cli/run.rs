//! `gpulock verify -- COMMAND` where the command does not start, says nothing, or leaves processes behind.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::program::{Place, Ran};

#[test]
fn what_does_not_start() {
    let place = Place::empty();
    let put = |name: &str, text: &str, mode: u32| {
        place.put(name, text);
        fs::set_permissions(place.path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    put("plain", "echo hello\n", 0o755);
    put("elsewhere", "#!/nowhere/python\n", 0o755);
    put("text", "#!/bin/sh\n", 0o644);
    for (program, why, fix) in [
        ("no-such-program", "no folder of PATH has it", "name its path"),
        ("./nowhere", "it is not there", "name a program that is there"),
        ("./plain", "it is neither a program of this machine nor a script", "gpulock verify -- sh ./plain"),
        ("./elsewhere", "it is there, and the interpreter that it names", "install that interpreter"),
        ("./text", "it may not be executed", "chmod +x ./text"),
        ("/", "it is a folder", "name a program"),
    ] {
        let ran = place.refuses(&["verify", "--", program, "argument"], 2);
        let said = format!("error[cannot-run]: {program} argument cannot be run: {why}");
        assert!(ran.err.contains(&said) && ran.err.contains(fix), "{ran:?}");
    }
}

/// A program without a loader: `exit(0)` in machine code.
#[test]
#[cfg(target_arch = "x86_64")]
fn what_says_nothing() {
    let numbers = |all: &[u64]| all.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    let mut program = b"\x7fELF\x02\x01\x01".to_vec();
    program.resize(16, 0);
    program.extend([2, 0, 62, 0, 1, 0, 0, 0]);
    program.extend(numbers(&[0x40_0078, 64, 0]));
    program.extend([0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    program.extend([1, 0, 0, 0, 5, 0, 0, 0]);
    program.extend(numbers(&[0, 0x40_0000, 0x40_0000, 0x81, 0x81, 0x1000]));
    program.extend([0xb8, 60, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05]);
    let place = Place::empty();
    place.put("static", program);
    fs::set_permissions(place.path("static"), fs::Permissions::from_mode(0o755)).unwrap();
    let ran = place.run(&["verify", "--", "./static"]).code(3);
    assert!(ran.err.contains("note[nothing-heard]: nothing was heard of the command's loader"), "{ran:?}");
    let ran = place.run(&["verify", "--", "/bin/true"]).code(3);
    assert!(!ran.err.contains("nothing-heard"), "{ran:?}");
}

/// What serves a program ends when it sees that the program has, as Python's fork server does: nothing is left for it.
#[test]
fn what_ends_soon_after() {
    let place = Place::empty();
    fs::create_dir(place.path("tmp")).unwrap();
    let helper = "(while kill -0 $$ 2>/dev/null; do sleep 0.01; done; sleep 0.1) >/dev/null 2>&1 &";
    let mut command = place.command(&["verify", "--", "/bin/sh", "-c", helper]);
    let ran = Ran::of(command.env("PATH", "/usr/bin:/bin").env("TMPDIR", place.path("tmp")).output().unwrap());
    assert!(!ran.err.contains("command-goes-on"), "{ran:?}");
    assert_eq!(fs::read_dir(place.path("tmp")).unwrap().count(), 0);
}

/// A probe is not asked of a process in silence.
#[test]
fn a_probe_needs_an_environment() {
    let place = Place::empty();
    let pid = format!("pid:{}", std::process::id());
    let ran = place.run(&["verify", &pid, "--probe", "torch"]).code(2);
    assert!(ran.err.contains("a probe runs in a virtual environment, with its Python"), "{ran:?}");
}
