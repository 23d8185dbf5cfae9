//! Docker's credential helpers that do not end as they should.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use gpulock::digest::sha256;
use serde_json::json;

use super::server::{Server, reply};
use crate::cli::program::{Place, Ran};

const LOGIN: &str = r#"printf '{"ServerURL": "x", "Username": "me", "Secret": "secret"}'"#;
/// `me:secret` in base64.
const SENT: &str = "Basic bWU6c2VjcmV0";

/// Of an image whose configuration is not there.
fn manifest() -> String {
    let config = json!({"digest": sha256(b"x"), "size": 1});
    json!({"schemaVersion": 2, "config": config, "layers": []}).to_string()
}

/// Reads an image of a registry that wants the login of a helper, which is this script.
fn run(script: &str) -> (Place, Server, Ran) {
    let server = Server::start(|seen| match seen.headers.get("authorization").map(String::as_str) {
        // Each path is refused first, so that the login is wanted several times.
        Some(SENT) if seen.before == 1 && seen.path.contains("/manifests/") => reply(200, "", manifest()),
        Some(SENT) if seen.before == 1 => reply(404, "", ""),
        _ => reply(401, "", "").header("WWW-Authenticate", "Basic realm=\"x\""),
    });
    let place = Place::empty();
    let helper = place.path("docker-credential-odd");
    fs::write(&helper, format!("#!/bin/sh\necho $$ >>asked\n{script}\n")).unwrap();
    fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).unwrap();
    place.put("config.json", json!({"credsStore": "odd"}).to_string());
    let host = server.url.trim_start_matches("http://");
    let folder = place.path("").display().to_string();
    let mut command = place.command(&["verify", &format!("registry:{host}/a:1")]);
    command.env("PATH", format!("{folder}:/usr/bin:/bin")).env("DOCKER_CONFIG", &folder);
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (place, server, Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) })
}

/// The processes whose numbers a helper wrote into a file, and whether each runs.
fn processes(place: &Place, file: &str) -> Vec<(u32, bool)> {
    let runs = |id: u32| (id, Path::new(&format!("/proc/{id}")).exists());
    place.text(file).lines().map(|line| runs(line.parse().unwrap())).collect()
}

#[test]
fn one_that_goes_on_is_ended_and_its_answer_used() {
    for script in [format!("{LOGIN}; exec >&-; exec sleep 1000"), format!("{LOGIN}; exec sleep 1000")] {
        let (place, server, ran) = run(&script);
        assert!(ran.err.contains("HTTP status 404"), "{}", ran.err);
        assert!(server.seen().iter().any(|seen| seen.headers.get("authorization").map(String::as_str) == Some(SENT)));
        // It was asked once, for one registry, and does not run any more.
        let asked = processes(&place, "asked");
        assert!(asked.len() == 1 && !asked[0].1, "{asked:?}");
    }
}

#[test]
fn what_one_leaves_behind_holds_nothing_up() {
    let (place, _, ran) = run(&format!("sleep 1000 & echo $! >left; {LOGIN}"));
    assert!(ran.err.contains("HTTP status 404"), "{}", ran.err);
    let (left, runs) = processes(&place, "left")[0];
    assert!(runs, "it was waited for");
    assert!(place.shell(&format!("kill {left}")).status().unwrap().success());
}
