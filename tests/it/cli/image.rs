//! `[image]` and `[env]` of the manifest reach the lock, and nothing else changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gpulock::digest::sha256;

use super::cache::torch;
use super::program::{GOOD, Place, Ran};
use crate::registry::server::{Server, html, ranged, reply};

const IMAGE: &str = "\n[image]\nos = \"ubuntu22.04\"\nflavor = \"base\"\n\n[env]\nNCCL_DEBUG = \"a \\\"b\\\"\\n$c\"\n";

#[test]
fn the_lock_has_them() {
    let place = Place::with(&format!("{GOOD}{IMAGE}"));
    let json = place.run(&["resolve", "--offline", "--format", "json"]).code(0).json();
    assert_eq!(json["revision"], 2);
    assert!(place.lock().contains(&format!("\ncontent = {}\n", json["content"])));
    let target = &json["targets"][0];
    assert_eq!(target["image"]["ref"], "nvidia/cuda:12.8.1-base-ubuntu22.04");
    assert_eq!(target["image"]["uv"]["ref"], "ghcr.io/astral-sh/uv:0.13.0");
    assert_eq!(target["image"].get("digest"), None);
    assert_eq!(target["env"]["NCCL_DEBUG"], "a \"b\"\n$c");
    assert!(place.lock().contains("revision = 2\n") && place.lock().contains("image = { os = \"ubuntu22.04\""));
    place.run(&["resolve", "--offline", "--check"]).code(0);
    place.run(&["resolve", "--locked"]).code(0);
    place.put("gpulock.toml", format!("{GOOD}{}", IMAGE.replace("base", "runtime")));
    place.run(&["resolve", "--offline", "--check"]).code(1).says(&["-base-ubuntu22.04 -> nvidia/cuda:12.8.1-runtime-"]);
    place.run(&["resolve", "--locked"]).code(1);
}

#[test]
fn without_them_it_is_as_before() {
    let place = Place::locked();
    assert!(place.lock().contains("revision = 2\n"));
    assert!(!place.lock().contains("image =") && !place.lock().contains("env ="));
}

#[test]
fn an_image_that_is_not_known_is_a_warning() {
    let place = Place::with(&format!("{GOOD}\n[image]\nos = \"ubunut22.04\"\n"));
    place.run(&["resolve", "--offline"]).code(0).says(&["warning[image-unknown]", "did you mean `ubuntu22.04`?"]);
    assert!(place.lock().contains("image = { os = \"ubunut22.04\", flavor = \"slim\" }\n"));
}

/// The index of a Python image; each turn another one.
fn image_index(turn: usize) -> Vec<u8> {
    let digest = sha256(b"x");
    let entry =
        format!("{{\"digest\": \"{digest}\", \"platform\": {{\"os\": \"linux\", \"architecture\": \"amd64\"}}}}");
    format!("{{\"schemaVersion\": 2, \"manifests\": [{entry}], \"annotations\": {{\"turn\": \"{turn}\"}}}}").into()
}

#[test]
fn an_online_resolve_asks_for_digests_and_keeps_them() {
    let made = torch("2.8.0");
    let turn = Arc::new(AtomicUsize::new(0));
    let now = Arc::clone(&turn);
    let server = Server::start(move |seen| match (seen.path.as_str(), now.load(Ordering::Relaxed)) {
        ("/pypi/simple/torch/", _) => {
            html(format!("<a href=\"/files/{0}#sha256={1}\">{0}</a>", made.file, made.sha256))
        }
        ("/v2/library/python/manifests/3.11-slim-bookworm", turn @ (0..5 | 6..9)) => reply(200, "", image_index(turn)),
        (path, 5) if path.starts_with("/v2/") => reply(503, "", "down"),
        (path, _) if path == format!("/files/{}", made.file) => ranged(seen, &made.bytes),
        _ => reply(404, "", "no"),
    });
    let place = Place::with(&format!("{GOOD}\n[image]\nflavor = \"slim\"\n"));
    let mirror = format!("docker.io={}", server.url);
    let resolve = |more: &[&str]| {
        let arguments = [&["resolve", "--registry-mirror", &mirror], more].concat();
        Ran::of(place.mirrored(&server.url, &arguments).output().unwrap())
    };
    let digest = |turn| format!("digest = \"{}\"", sha256(&image_index(turn)));
    resolve(&[]).code(0);
    assert!(place.lock().contains(&digest(0)), "{}", place.lock());
    let asked = || server.count("3.11-slim-bookworm");
    assert_eq!(asked(), 1);
    // The tag moves, the lock does not, and nobody asks.
    turn.store(1, Ordering::Relaxed);
    resolve(&["--check"]).code(0);
    resolve(&["--check", "--upgrade"]).code(0);
    resolve(&[]).code(0);
    assert!(place.lock().contains(&digest(0)) && asked() == 1);
    resolve(&["--offline", "--check"]).code(0);
    let text = place.run(&["dockerfile", "--require-digest"]).code(0).out;
    let at = format!("FROM python:3.11-slim-bookworm@{} AS python\n", sha256(&image_index(0)));
    assert!(text.contains(&at), "{text}");
    resolve(&["--upgrade"]).code(0);
    assert!(place.lock().contains(&digest(1)));
    // A registry that is down knows nothing of it: the same image keeps its digest.
    turn.store(5, Ordering::Relaxed);
    resolve(&["--upgrade"]).code(0).says(&["warning[image-registry]"]);
    assert!(place.lock().contains(&digest(1)), "{}", place.lock());
    // What is gone is a warning: the image has its tag still.
    turn.store(9, Ordering::Relaxed);
    resolve(&["--upgrade"]).code(0).says(&["warning[image-missing-tag]", "there is no tag `3.11-slim-bookworm`"]);
    assert!(place.lock().contains("ref = \"python:3.11-slim-bookworm\" }"), "{}", place.lock());
    let bad = Ran::of(place.command(&["resolve", "--registry-mirror", "nonsense"]).output().unwrap());
    bad.code(2).says(&["write REGISTRY=URL"]);
}
