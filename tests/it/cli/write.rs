//! The old text or the new one, never a part, and nothing left beside it.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::thread;

use gpulock::cli::write::{Written, atomically};
use gpulock::diag::Class;

/// Names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_file_is_created_changed_and_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gpulock.lock");
    assert_eq!(atomically(&path, "one").unwrap(), Written::Created);
    assert_eq!(atomically(&path, "two").unwrap(), Written::Changed);
    assert_eq!(atomically(&path, "two").unwrap(), Written::Unchanged);
    assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names(folder.path()).len()), ("two", 1));
    // As any new file, not as a temporary one.
    let plain = folder.path().join("plain");
    fs::write(&plain, "").unwrap();
    assert_eq!(mode(&path), mode(&plain));
}

#[test]
fn permissions_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gpulock.lock");
    fs::write(&path, "old").unwrap();
    for bits in [0o600, 0o664, 0o755] {
        fs::set_permissions(&path, Permissions::from_mode(bits)).unwrap();
        atomically(&path, &format!("{bits}")).unwrap();
        assert_eq!(mode(&path), bits);
    }
}

#[test]
fn a_link_stays_and_its_target_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("real")).unwrap();
    fs::write(at("real/lock"), "old").unwrap();
    symlink("real/lock", at("middle")).unwrap();
    symlink("middle", at("gpulock.lock")).unwrap();
    atomically(&at("gpulock.lock"), "new").unwrap();
    assert_eq!(fs::read_to_string(at("real/lock")).unwrap(), "new");
    assert!(fs::symlink_metadata(at("gpulock.lock")).unwrap().is_symlink());
    // A link to what is not there yet creates that.
    symlink("real/later", at("dangling")).unwrap();
    assert_eq!(atomically(&at("dangling"), "x").unwrap(), Written::Created);
    assert_eq!(names(&at("real")), ["later", "lock"]);
    symlink("loop", at("loop")).unwrap();
    assert!(atomically(&at("loop"), "x").is_err());
}

#[test]
fn refusals_leave_everything_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gpulock.lock");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
    let refused = atomically(&path, "new").unwrap_err();
    assert_eq!(refused.class, Class::Unanswerable);
    assert!(refused.to_string().contains("read-only") && refused.to_string().contains("the file is as it was"));
    assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names(folder.path()).len()), ("old", 1));
    let missing = atomically(&folder.path().join("none/gpulock.lock"), "x").unwrap_err();
    assert!(missing.to_string().contains("its folder does not exist"));
    let taken = atomically(folder.path(), "x").unwrap_err();
    assert!(taken.to_string().contains("a folder of that name"));
}

#[test]
fn a_read_only_folder_is_said_to_be_one() {
    // Nobody can create files there, root included.
    let refused = atomically(Path::new("/proc/gpulock.lock"), "x").unwrap_err();
    let said = refused.to_string();
    assert!(said.starts_with("cannot write /proc/gpulock.lock: files cannot be made in its folder"), "{said}");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let refused = atomically(&folder.path().join("file/gpulock.lock"), "x").unwrap_err();
    assert!(refused.to_string().contains("is a file, not a folder"), "{refused}");
}

#[test]
fn a_full_disk_keeps_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let mount = |arguments: &[&str], program: &str| {
        Command::new(program).args(arguments).arg(folder.path()).output().is_ok_and(|output| output.status.success())
    };
    if !mount(&["-t", "tmpfs", "-o", "size=64k", "tmpfs"], "mount") {
        println!("skipped: this user may not mount a small file system");
        return;
    }
    let path = folder.path().join("gpulock.lock");
    atomically(&path, "old").unwrap();
    let result = atomically(&path, &"new\n".repeat(100_000));
    let left = (fs::read_to_string(&path).unwrap(), names(folder.path()).len());
    assert!(mount(&[], "umount"));
    assert!(result.unwrap_err().to_string().contains("the disk is full"));
    assert_eq!(left, ("old".to_owned(), 1));
}

#[test]
fn writers_at_once_leave_the_text_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gpulock.lock");
    atomically(&path, &"0".repeat(100_000)).unwrap();
    thread::scope(|scope| {
        for writer in ["1", "2", "3", "4"] {
            let path = &path;
            scope.spawn(move || {
                for _ in 0..20 {
                    atomically(path, &writer.repeat(100_000)).unwrap();
                }
            });
        }
        for _ in 0..200 {
            let seen = fs::read_to_string(&path).unwrap();
            assert_eq!(seen.len(), 100_000);
            assert!(seen.bytes().all(|byte| byte == seen.as_bytes()[0]));
        }
    });
    assert_eq!(names(folder.path()), ["gpulock.lock"]);
}

/// Where [`writes_until_killed`] writes, when it does.
const VICTIM: &str = "GPULOCK_TEST_VICTIM";

/// Not a test of its own: the process that [`a_killed_writer_leaves_a_whole_file`] kills.
#[test]
fn writes_until_killed() {
    let Some(path) = std::env::var_os(VICTIM) else { return };
    for text in ["1", "2"].iter().cycle() {
        atomically(Path::new(&path), &text.repeat(1_000_000)).unwrap();
    }
}

#[test]
fn a_killed_writer_leaves_a_whole_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gpulock.lock");
    atomically(&path, &"0".repeat(1_000_000)).unwrap();
    for round in 0..10 {
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "cli::write::writes_until_killed"])
            .env(VICTIM, &path)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(std::time::Duration::from_millis(20 + 7 * round));
        victim.kill().unwrap();
        victim.wait().unwrap();
        let seen = fs::read(&path).unwrap();
        assert_eq!(seen.len(), 1_000_000);
        assert!(seen.iter().all(|byte| *byte == seen[0]));
    }
}

#[test]
fn a_device_is_written_to() {
    assert_eq!(atomically(Path::new("/dev/null"), "x").unwrap(), Written::Changed);
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn what_a_killed_writer_left_goes_after_a_while() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gpulock.lock");
    let [old, new, other] = [".gpulock.lock.abcdefgh", ".gpulock.lock.ijklmnop", ".gpulock.lock.backup-of-mine"]
        .map(|name| folder.path().join(name));
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(7200);
    for file in [&old, &new, &other] {
        std::fs::write(file, "").unwrap();
    }
    for file in [&old, &other] {
        std::fs::File::options().write(true).open(file).unwrap().set_modified(long_ago).unwrap();
    }
    atomically(&path, "text").unwrap();
    assert!(!old.exists() && new.exists() && other.exists());
}

#[test]
fn an_open_file_or_pipe_is_written_to_after_what_is_there() {
    let place = super::program::Place::locked();
    let program = env!("CARGO_BIN_EXE_gpulock");
    let text = place.run(&["export", "env"]).code(0).out;
    let shell = |line: &str| {
        let output = place.shell(&line.replace("EXPORT", &format!("{program} export env -o"))).output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/dev/stderr", "/dev/fd/3", "/proc/thread-self/fd/3"] {
        let to = if name.ends_with("err") {
            "2"
        } else if name.ends_with('3') {
            "3"
        } else {
            "1"
        };
        shell(&format!("echo before > log; EXPORT {name} {to}>> log"));
        assert_eq!(place.text("log"), format!("before\n{text}"), "{name}");
        assert_eq!(shell(&format!("EXPORT {name} {to}>&1 | cat")), text, "{name}");
    }
    // The place in the file is the shell's too.
    shell("{ echo before; EXPORT /dev/stdout; echo after; } > log");
    assert_eq!(place.text("log"), format!("before\n{text}after\n"));
    assert_eq!(shell("mkfifo pipe; cat pipe & EXPORT pipe; wait"), text);
    std::os::unix::fs::symlink("/dev/stdout", place.path("link")).unwrap();
    assert_eq!(shell("EXPORT link"), text);
    assert_eq!(names(&place.path("")), ["gpulock.lock", "gpulock.toml", "link", "log", "pipe"]);
}
