//! Environments with files of every wrong kind: each is named as unreadable, the rest is judged, in bounded time.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::check::venv::module;
use crate::cli::program::Place;
use crate::link::fixture::Elf;

const SITE: &str = "venv/lib/python3.11/site-packages";

fn venv() -> Place {
    let place = Place::empty();
    fs::create_dir_all(place.path(SITE).join("x")).unwrap();
    place.put("venv/pyvenv.cfg", "home = /nowhere/bin\nversion = 3.11.7\n");
    place
}

fn put(place: &Place, name: impl AsRef<OsStr>, bytes: &[u8]) -> PathBuf {
    let path = place.path(SITE).join("x").join(PathBuf::from(name.as_ref()));
    fs::write(&path, bytes).unwrap();
    path
}

/// Severity, subject and words of each finding of unreadable files.
fn unreadable(report: &Value) -> Vec<(String, String, String)> {
    let findings = report["findings"].as_array().unwrap().iter();
    let own = findings.filter(|finding| finding["code"] == "library-unreadable");
    own.map(|finding| {
        let text = |name: &str| finding[name].as_str().unwrap_or_default().to_owned();
        (text("severity"), text("subject"), finding.to_string())
    })
    .collect()
}

/// An extension module that is sound, and asks for a library that is not there.
fn sound() -> Elf {
    module("sound").needed(&["libnowhere.so.7"])
}

const SOUND: &str = "sound.cpython-311-x86_64-linux-gnu.so";

fn number(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

#[test]
fn every_kind_of_bad_file_is_named() {
    let place = venv();
    let code = [0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];
    let with_code = |size: u64| {
        let section = [&code[..], &size.to_le_bytes(), &[0xcd; 80]].concat();
        Elf::library("libcode.so").section(".nv_fatbin", section).bytes()
    };
    let whole = sound().bytes();
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        bytes
    };
    let error = "error";
    let cases: [(&str, Vec<u8>, &str, &str); 12] = [
        ("truncated.so", whole[..whole.len() / 2].to_vec(), "", "beyond the file's"),
        ("header.so", whole[..40].to_vec(), error, "40 bytes end inside the ELF header"),
        ("empty.so", Vec::new(), error, "the file is empty"),
        ("text.so", b"version https://git-lfs.github.com/spec/v1\n".to_vec(), error, "not an ELF file"),
        ("word32.so", changed(&|bytes| bytes[4] = 1), "note", "32-bit little-endian"),
        ("big.so", changed(&|bytes| bytes[5] = 2), "note", "64-bit big-endian"),
        ("sections.so", changed(&|bytes| number(bytes, 40, 1 << 40)), "warning", "beyond the file's"),
        ("segments.so", changed(&|bytes| number(bytes, 32, 1 << 40)), error, "program header table"),
        ("endless.so", changed(&|bytes| bytes[56..58].fill(0xff)), error, "65535 program headers"),
        ("code0.so", with_code(0), "warning", "container of 0 bytes"),
        ("code9.so", with_code(1 << 50), "warning", "container of 1125899906842624 bytes"),
        ("code1.so", with_code(u64::MAX), "warning", "container of 18446744073709551615 bytes"),
    ];
    for (name, bytes, ..) in &cases {
        put(&place, name, bytes);
    }
    put(&place, SOUND, &whole);
    let report = place.run(&["verify", "venv", "--format", "json", "--integrity"]).code(1).json();
    let named = unreadable(&report);
    for (name, _, severity, words) in &cases {
        let own = named.iter().find(|(_, subject, _)| subject.ends_with(&format!("x/{name}")));
        let (said, _, text) = own.unwrap_or_else(|| panic!("{name} is not named: {named:#?}"));
        assert!(said.starts_with(severity) && text.contains(words), "{name}: {said} {text}");
    }
    assert_eq!(named.len(), cases.len(), "{named:#?}");
    // The rest is judged, and one file alone as well.
    let missing = report["findings"].as_array().unwrap().iter().any(|one| one.to_string().contains("libnowhere.so.7"));
    assert!(missing, "{report:#}");
    for (name, _, severity, words) in &cases {
        let path = format!("{SITE}/x/{name}");
        let ran = place.run(&["inspect", &path, "--format", "json"]);
        assert!(ran.out.contains(words) && matches!(ran.code, Some(0 | 2 | 3)), "{name} ({severity}): {ran:?}");
        let ran = place.run(&["verify", &path]);
        assert!(matches!(ran.code, Some(0..=3)) && !ran.err.contains("panicked"), "{name}: {ran:?}");
    }
}

#[test]
fn what_is_no_file_and_names_that_are_no_text() {
    let place = venv();
    let folder = place.path(SITE).join("x");
    assert!(Command::new("mkfifo").arg(folder.join("pipe.so")).status().unwrap().success());
    symlink("/dev/zero", folder.join("zero.so")).unwrap();
    symlink("loop2.so", folder.join("loop1.so")).unwrap();
    symlink("loop1.so", folder.join("loop2.so")).unwrap();
    symlink("/", folder.join("machine")).unwrap();
    symlink("..", folder.join("up")).unwrap();
    for name in [&b"new\nline.so"[..], b"no\xfftext.so"] {
        put(&place, OsStr::from_bytes(name), b"text");
    }
    put(&place, SOUND, &sound().bytes());
    let begin = Instant::now();
    let report = place.run(&["verify", "venv", "--format", "json"]).code(1).json();
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    let mut named: Vec<String> = unreadable(&report).into_iter().map(|(_, subject, _)| subject).collect();
    named.sort();
    let all = ["loop1.so", "loop2.so", "new\\nline.so", "no\u{fffd}text.so", "pipe.so", "zero.so"];
    assert_eq!(named, all.map(|name| format!("x/{name}")));
    let text = place.run(&["verify", "venv"]).code(1).out;
    assert!(text.contains("x/new\\nline.so") && text.contains("libnowhere.so.7"), "{text}");
}

/// For another processor and without section headers: both are read.
#[test]
fn other_processors_and_stripped_files() {
    let place = venv();
    put(&place, "arm.so", &Elf { machine: Some(183), ..sound() }.bytes());
    let mut stripped = sound().section(".nv_fatbin", Vec::new()).bytes();
    stripped[40..48].fill(0);
    stripped[60..64].fill(0);
    put(&place, "stripped.so", &stripped);
    let json = |name: &str| {
        let ran = place.run(&["inspect", &format!("{SITE}/x/{name}"), "--format", "json"]).code(0);
        ran.json()["files"][0].clone()
    };
    assert_eq!(
        (json("arm.so")["machine"].clone(), json("arm.so")["needed"][0].clone()),
        ("aarch64".into(), "libnowhere.so.7".into())
    );
    assert_eq!(json("stripped.so")["needed"][0], "libnowhere.so.7");
    let report = place.run(&["verify", "venv", "--format", "json"]);
    assert_eq!(report.code, Some(3), "{report:?}");
    assert!(unreadable(&report.json()).is_empty(), "{report:?}");
}

/// Thousands of files that all are libraries, and none of them sound; fifty thousand of other kinds are walked elsewhere.
#[test]
fn thousands_of_libraries() {
    let place = venv();
    for folder in 0..5 {
        let folder = place.path(SITE).join(format!("x/{folder}"));
        fs::create_dir(&folder).unwrap();
        (0..1000).for_each(|i| fs::write(folder.join(format!("lib{i}.so")), b"\x7fELF").unwrap());
    }
    let begin = Instant::now();
    let report = place.run(&["verify", "venv", "--format", "json"]).code(1).json();
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
    assert_eq!(unreadable(&report).len(), 5000);
}

/// The file is cut off again and again while it is read: an answer each time.
#[test]
fn a_file_that_shrinks_while_it_is_read() {
    let place = venv();
    let names: Vec<String> = (0..2000).map(|i| format!("symbol_{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let whole = Elf::library("libshrinks.so").defines(&names).bytes();
    let path = put(&place, "shrinks.so", &whole);
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut length = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                length = (length + 4099) % whole.len();
                fs::write(&path, &whole).unwrap();
                fs::File::options().write(true).open(&path).unwrap().set_len(length as u64).unwrap();
            }
        });
        for _ in 0..25 {
            let ran = place.run(&["verify", "venv", "--format", "json"]);
            assert!(matches!(ran.code, Some(0 | 1 | 3)) && !ran.err.contains("panicked"), "{ran:?}");
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
