//! What is named as a file and is none: a pipe that nobody writes to, a device without an end, a socket, a folder.

use std::fs;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::cli::program::{GOOD, Place, Ran};

/// Runs what must not hang.
pub fn in_time(mut command: Command, limit: Duration) -> Ran {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
    let id = child.id().to_string();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    match receiver.recv_timeout(limit) {
        Ok(output) => Ran::of(output.unwrap()),
        Err(_) => {
            Command::new("kill").args(["-KILL", &id]).status().unwrap();
            panic!("still running after {limit:?}: {:?}", command.get_args().next());
        }
    }
}

fn quick(place: &Place, arguments: &[&str]) -> Ran {
    in_time(place.command(arguments), Duration::from_secs(20))
}

fn pipe(place: &Place, name: &str) {
    let _ = fs::remove_file(place.path(name));
    assert!(Command::new("mkfifo").arg(place.path(name)).status().unwrap().success());
}

#[test]
fn pipes_are_not_waited_for() {
    let words = ["error[cannot-read]", "is a named pipe, not a regular file", "help:"];
    let place = Place::locked();
    pipe(&place, "pipe");
    std::os::unix::fs::symlink("pipe", place.path("pyproject.toml")).unwrap();
    for arguments in [
        &["resolve", "--offline", "--manifest", "pipe"][..],
        &["resolve", "--offline", "--manifest", "pyproject.toml"],
        &["resolve", "--offline", "--lock", "pipe"],
        &["resolve", "--offline", "--lock", "pipe", "--upgrade"],
        &["resolve", "--locked", "--lock", "pipe"],
        &["export", "requirements", "--lock", "pipe"],
        &["export", "uv", "--pyproject", "pipe"],
        &["why", "torch", "--lock", "pipe"],
        &["init", "--force", "pipe"],
    ] {
        quick(&place, arguments).code(2).says(&words);
    }
    pipe(&place, "gpulock.toml");
    quick(&place, &["resolve", "--offline"]).code(2).says(&words);
    fs::remove_file(place.path("gpulock.toml")).unwrap();
    pipe(&place, "requirements.txt");
    quick(&place, &["init"]).code(2).says(&words);
    fs::create_dir(place.path("m")).unwrap();
    pipe(&place, "m/gpu.toml");
    quick(&place, &["matrix", "check", "--matrix", "m"]).code(2).says(&words);
}

#[test]
fn other_things_are_no_files_either() {
    let place = Place::with(GOOD);
    let manifest = |name: &str| quick(&place, &["resolve", "--offline", "--manifest", name]).code(2);
    manifest("/dev/zero").says(&["/dev/zero is a device, not a regular file"]);
    let _socket = UnixListener::bind(place.path("socket")).unwrap();
    manifest("socket").says(&["socket is a socket, not a regular file"]);
    fs::create_dir(place.path("folder")).unwrap();
    manifest("folder").says(&["folder is a folder, not a file"]);
    fs::File::create(place.path("large")).unwrap().set_len(1 << 40).unwrap();
    manifest("large").says(&["large is too large to be what is asked for"]);
    quick(&place, &["resolve", "--offline", "--lock", "/dev/zero"]).code(2).says(&["is a device"]);
}

#[test]
fn pipes_of_the_registry_client() {
    let place = Place::with(GOOD);
    pipe(&place, "pipe");
    let with = |name: &str, value: &str, arguments: &[&str]| {
        let mut command = place.command(arguments);
        command.env(name, value);
        in_time(command, Duration::from_secs(20))
    };
    let netrc = ["resolve", "--offline", "--dry-run"];
    with("NETRC", "pipe", &netrc).code(2).says(&["pipe is a named pipe"]);
    with("NETRC", "/dev/zero", &netrc).code(2).says(&["/dev/zero is a device"]);
    with("NETRC", "/dev/null", &netrc).code(0);
    with("NETRC", "none", &netrc).code(0);
    let https = ["resolve", "--mirror", "pypi=https://127.0.0.1:1/simple"];
    with("SSL_CERT_FILE", "pipe", &https).code(2).says(&["pipe: it is a named pipe", "SSL_CERT_FILE"]);
    with("REQUESTS_CA_BUNDLE", "/dev/zero", &https).code(2).says(&["/dev/zero: it is a device"]);
    fs::create_dir_all(place.path("index/torch")).unwrap();
    pipe(&place, "index/torch/index.html");
    let local = format!("pypi=file://{}", place.path("index").display());
    quick(&place, &["resolve", "--mirror", &local]).code(2).says(&["error[index-unreachable]", "it is a named pipe"]);
}
