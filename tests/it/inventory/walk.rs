//! Which files of a subject are read.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::{library, link, names, package, read, troubles, venv, write};
use gpulock::elf::Problem;
use gpulock::inventory::Role;

#[test]
fn names_and_content_decide() {
    let folder = tempfile::tempdir().unwrap();
    let site = venv(folder.path());
    for name in ["a/_C.cpython-311-x86_64-linux-gnu.so", "a.libs/libx-1a2b.so.1.0", "a/libold.so.bak"] {
        write(&site, name, library(name));
    }
    let tool = write(&site, "a/bin/ptxas", library("ptxas"));
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    write(&site, "a/LICENSE", library("no program: it may not be run"));
    let script = write(&site, "a/bin/script", "#!/bin/sh\n");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    write(&site, "a/notes.so.txt", "no library");
    write(&site, "a/module.py", library("not by that name"));
    write(&site, "a/liblinked.so", "/* GNU ld script */\nINPUT(-lx)\n");
    write(&site, "a/libtext.so", "text");
    write(&site, "a/libempty.so", "");
    // Libraries may lie beside `python3.11`; programs there belong to the environment and to no package.
    write(folder.path(), "lib/libtbb.so.12", library("tbb"));
    let python = write(folder.path(), "bin/python", library("python"));
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    let inventory = read(folder.path());
    let expected = [
        "lib/libtbb.so.12",
        "a/_C.cpython-311-x86_64-linux-gnu.so",
        "a/bin/ptxas",
        "a/libempty.so",
        "a/libold.so.bak",
        "a/libtext.so",
        "a.libs/libx-1a2b.so.1.0",
    ];
    assert_eq!(names(&inventory), expected);
    let programs: Vec<&str> =
        inventory.libraries().iter().filter(|l| l.role == Role::Program).map(|l| l.name.as_str()).collect();
    assert_eq!(programs, ["a/bin/ptxas"]);
    assert!(inventory.libraries().iter().find(|l| l.name == "a/libtext.so").unwrap().object.is_err());
    assert_eq!(troubles(&inventory), [""; 0]);
}

#[test]
fn each_inode_once() {
    let folder = tempfile::tempdir().unwrap();
    let site = venv(folder.path());
    let file = write(&site, "a/libx.so.1.2", library("x"));
    link("libx.so.1.2", &site, "a/libx.so");
    fs::hard_link(&file, site.join("a/libhard.so")).unwrap();
    link("gone.so", &site, "a/libdangling.so");
    let inventory = read(folder.path());
    assert_eq!(names(&inventory), ["a/libhard.so"]);
    let only = &inventory.libraries()[0];
    let others: Vec<_> = only.others.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(others, ["libx.so", "libx.so.1.2"]);
    assert_eq!(troubles(&inventory), [""; 0]);
    // The same library, whatever it is asked for by.
    let real = site.canonicalize().unwrap();
    for name in ["a/libx.so", "a/libx.so.1.2", "a/../a/libhard.so"] {
        assert_eq!(inventory.at(&real.join(name)).unwrap().place, only.place, "{name}");
    }
    assert!(inventory.at(&real.join("a/libdangling.so")).is_none());
    assert!(inventory.at(&real.join("a")).is_none());
}

/// uv with `--link-mode symlink`, and a package that is a link to a folder elsewhere.
#[test]
fn packages_may_be_links() {
    let folder = tempfile::tempdir().unwrap();
    let store = tempfile::tempdir().unwrap();
    let site = venv(folder.path());
    let kept = write(store.path(), "archive/a/liba.so", library("a"));
    link(&kept, &site, "a/liba.so");
    write(store.path(), "b/lib/libb.so", library("b"));
    link("../b", store.path(), "b/round");
    link(store.path().join("b"), &site, "b");
    link(&site, &site, "myself");
    package(&site, "a", "1.0", &format!("a/liba.so,,{}\n", library("a").len()));
    package(&site, "b", "2.0", "b/lib/libb.so,,\n");
    let inventory = read(folder.path());
    assert_eq!(names(&inventory), ["a/liba.so", "b/lib/libb.so"]);
    assert_eq!(inventory.libraries()[0].path, kept.canonicalize().unwrap());
    let owner = |at: usize| inventory.packages[inventory.libraries()[at].package.unwrap()].name.to_string();
    assert_eq!([owner(0), owner(1)], ["a", "b"]);
}

#[test]
fn what_is_no_file_is_named_and_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let site = venv(folder.path());
    fs::create_dir_all(site.join("a")).unwrap();
    assert!(Command::new("mkfifo").arg(site.join("a/pipe.so")).status().unwrap().success());
    std::os::unix::net::UnixListener::bind(site.join("a/socket.so")).unwrap();
    link("/dev/zero", &site, "a/zero.so");
    link("loop2.so", &site, "a/loop1.so");
    link("loop1.so", &site, "a/loop2.so");
    write(&site, "a/libgood.so", library("good"));
    let inventory = read(folder.path());
    assert_eq!(names(&inventory), ["a/libgood.so"]);
    let mut troubles = troubles(&inventory);
    troubles.sort();
    assert_eq!(
        troubles,
        [
            "a/loop1.so: its links lead in a circle",
            "a/loop2.so: its links lead in a circle",
            "a/pipe.so: it is a named pipe, not a file",
            "a/socket.so: it is a socket, not a file",
            "a/zero.so: it leads to what is not a regular file",
        ]
    );
    assert!(inventory.at(&site.canonicalize().unwrap().join("a/pipe.so")).is_none());
}

/// Nor do `.pth` files lead there.
#[test]
fn links_to_what_is_around_the_subject_are_not_followed() {
    let around = tempfile::tempdir().unwrap();
    let folder = around.path().join("venv");
    let site = venv(&folder);
    write(around.path(), "libaround.so", "text");
    write(&site, "a/libgood.so", library("good"));
    for (name, target) in [("a/machine", "/"), ("a/up", "../.."), ("a/kernel", "/proc/self"), ("a/all", "/sys")] {
        link(target, &site, name);
    }
    link(around.path(), &site, "a/around");
    write(&site, "a.pth", "/\n/proc\n/sys/kernel\n");
    let begin = std::time::Instant::now();
    assert_eq!(names(&read(&folder)), ["a/libgood.so"]);
    assert!(begin.elapsed().as_secs() < 20, "{:?}", begin.elapsed());
}

#[test]
fn what_may_not_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let site = venv(folder.path());
    let secret = write(&site, "a/libsecret.so", library("secret"));
    let closed = write(&site, "closed/libx.so", library("x")).parent().unwrap().to_owned();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let all = fs::read(&secret).is_ok();
    let inventory = read(folder.path());
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
    if all {
        eprintln!("not tested: this user may read everything");
        return;
    }
    assert_eq!(inventory.libraries()[0].object.as_ref().unwrap_err().problem, Problem::Io);
    assert!(troubles(&inventory)[0].starts_with("closed: it cannot be listed: "), "{:?}", troubles(&inventory));
}

#[test]
fn strange_names_are_read_and_shown_on_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let site = venv(folder.path());
    for name in [&b"a\nb.so"[..], b"c\xffd.so"] {
        fs::write(site.join(std::ffi::OsStr::from_bytes(name)), library("x")).unwrap();
    }
    assert_eq!(names(&read(folder.path())), ["a\\nb.so", "c\u{fffd}d.so"]);
}

#[test]
fn another_environment_inside_is_not_part_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let site = venv(folder.path());
    write(&site, "liba.so", library("a"));
    let other = venv(&site.join("tool/venv"));
    write(&other, "libb.so", library("b"));
    write(&site, "x/.git/objects/libc.so", library("c"));
    assert_eq!(names(&read(folder.path())), ["liba.so"]);
}

/// Also a bound on time: 50,000 files in a second, even unoptimised on a busy machine.
#[test]
fn fifty_thousand_files() {
    let folder = tempfile::tempdir().unwrap();
    let site = venv(folder.path());
    for i in 0..100 {
        let sub = site.join(format!("p/{i}"));
        fs::create_dir_all(&sub).unwrap();
        (0..500).for_each(|j| fs::write(sub.join(format!("m{j}.py")), "").unwrap());
    }
    write(&site, "p/99/libx.so", library("x"));
    let begin = std::time::Instant::now();
    assert_eq!(names(&read(folder.path())), ["p/99/libx.so"]);
    assert!(begin.elapsed().as_secs() < 20, "{:?}", begin.elapsed());
}
