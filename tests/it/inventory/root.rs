//! Links inside a root, as after `chroot`.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use super::{link, write};
use gpulock::inventory::{Root, Unresolved, shown};

/// What `path` leads to, or why it leads nowhere.
fn led(root: &Root, path: &str) -> String {
    match root.resolve(Path::new(path)) {
        Ok(path) => shown(&path),
        Err(Unresolved::Missing) => "missing".into(),
        Err(Unresolved::Loop) => "loop".into(),
        Err(Unresolved::Io(error)) => error.to_string(),
    }
}

/// A root with links of every kind, and where each of `PATHS` leads in it.
fn plant(folder: &Path) {
    write(folder, "usr/lib/x/libc.so.6", "");
    write(folder, "etc/passwd", "inside");
    link("usr/lib", folder, "lib");
    link("/usr/lib/x", folder, "absolute");
    link("../../../../../../etc/passwd", folder, "usr/up");
    link("/etc/passwd", folder, "usr/passwd");
    link("b", folder, "loops/a");
    link("a", folder, "loops/b");
    link(".", folder, "self");
    link("nothing", folder, "dangling");
    link("x/../x/./libc.so.6", folder, "usr/lib/winding");
    let mut last = "etc/passwd".to_owned();
    for i in 0..41 {
        link(format!("/{last}"), folder, &format!("chain/{i}"));
        last = format!("chain/{i}");
    }
}

const PATHS: [(&str, &str); 19] = [
    ("/", "/"),
    ("/lib/x/libc.so.6", "/usr/lib/x/libc.so.6"),
    ("lib/x//./libc.so.6", "/usr/lib/x/libc.so.6"),
    ("/absolute/libc.so.6", "/usr/lib/x/libc.so.6"),
    ("/usr/up", "/etc/passwd"),
    ("/usr/passwd", "/etc/passwd"),
    ("/../../etc/passwd", "/etc/passwd"),
    ("/lib/x/../../lib", "/usr/lib"),
    ("/absolute/..", "/usr/lib"),
    ("/lib/winding", "/usr/lib/x/libc.so.6"),
    ("/loops/a", "loop"),
    ("/loops/a/x", "loop"),
    ("/self/self/self/etc", "/etc"),
    ("/dangling", "missing"),
    ("/etc/passwd/..", "missing"),
    ("/etc/passwd/x", "missing"),
    ("/nowhere/x", "missing"),
    ("/chain/39", "/etc/passwd"),
    ("/chain/40", "loop"),
];

#[test]
fn links_stay_inside() {
    let folder = tempfile::tempdir().unwrap();
    plant(folder.path());
    let root = Root::new(folder.path().canonicalize().unwrap());
    // Twice: what was found is remembered.
    for (path, expected) in PATHS.iter().chain(&PATHS) {
        assert_eq!(led(&root, path), *expected, "{path}");
    }
}

/// The kernel agrees, where this process may change its root.
#[test]
fn as_chroot_does() {
    let folder = tempfile::tempdir().unwrap();
    plant(folder.path());
    let root = Root::new(folder.path().canonicalize().unwrap());
    let code = "import os, sys\nos.chroot(sys.argv[1]); os.chdir('/')\nfor path in sys.argv[2:]:\n try:\n  print(os.path.realpath(path, strict=True) if os.stat(path) else '')\n except FileNotFoundError: print('missing')\n except NotADirectoryError: print('missing')\n except OSError: print('loop')\n";
    let paths: Vec<&str> = PATHS.iter().map(|(path, _)| *path).collect();
    let asked = Command::new("python3").args(["-c", code]).arg(folder.path()).args(&paths).output();
    let Some(output) = asked.ok().filter(|output| output.status.success()) else {
        eprintln!("not compared: this process may not change its root");
        return;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    for (path, kernel) in paths.iter().zip(text.lines()) {
        assert_eq!(led(&root, path), kernel, "{path}");
    }
    assert_eq!(text.lines().count(), paths.len());
}

#[test]
fn long_and_deep_paths_end() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::new(folder.path().canonicalize().unwrap());
    assert_eq!(led(&root, &"/a".repeat(5000)), "missing");
    assert_eq!(led(&root, &format!("/{}", "a".repeat(300))), "missing");
    link("x/".repeat(1900), folder.path(), "x");
    assert_eq!(led(&root, "/x"), "loop");
}

#[test]
fn only_regular_files_are_opened() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.so");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    link("pipe.so", folder.path(), "link.so");
    link("/dev/zero", folder.path(), "zero.so");
    write(folder.path(), "file", "text");
    let root = Root::new(folder.path().canonicalize().unwrap());
    let why = |path: &str| root.open(Path::new(path)).err().map(|why| why.to_string());
    assert_eq!(why("/pipe.so").unwrap(), "it is a named pipe, not a regular file");
    assert_eq!(why("/link.so").unwrap(), "it is a named pipe, not a regular file");
    assert_eq!(why("/zero.so").unwrap(), "there is no such file");
    let machine = Root::new("/");
    let device = machine.open(&folder.path().join("zero.so")).unwrap_err();
    assert_eq!(device.to_string(), "it is a device, not a regular file");
    assert_eq!(root.read(Path::new("/file"), 4).unwrap(), b"text");
    assert!(root.read(Path::new("/file"), 3).is_err());
}

#[test]
fn names_are_shown_on_one_line() {
    let name = std::ffi::OsStr::from_bytes(b"/a\nb\xff\x1b[31m\xc3\xa9");
    assert_eq!(shown(Path::new(name)), "/a\\nb\u{fffd}\\u{1b}[31m\u{e9}");
    let folder = tempfile::tempdir().unwrap();
    let root = Root::new(folder.path().canonicalize().unwrap());
    let strange = std::ffi::OsStr::from_bytes(b"a\nb\xff.so");
    fs::write(folder.path().join(strange), "").unwrap();
    assert_eq!(root.resolve(&Path::new("/").join(strange)).unwrap().file_name(), Some(strange));
}
