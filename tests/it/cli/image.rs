//! `[image]` and `[env]` of the manifest reach the lock, and nothing else changes.

use super::program::{GOOD, Place};

const IMAGE: &str = "\n[image]\nos = \"ubuntu22.04\"\nflavor = \"base\"\n\n[env]\nNCCL_DEBUG = \"a \\\"b\\\"\\n$c\"\n";

#[test]
fn the_lock_has_them() {
    let place = Place::with(&format!("{GOOD}{IMAGE}"));
    let json = place.run(&["resolve", "--offline", "--format", "json"]).code(0).json();
    assert_eq!(json["revision"], 1);
    let target = &json["targets"][0];
    assert_eq!(target["image"]["ref"], "nvidia/cuda:12.8.1-base-ubuntu22.04");
    assert_eq!(target["image"]["uv"]["ref"], "ghcr.io/astral-sh/uv:0.13.0");
    assert_eq!(target["image"].get("digest"), None);
    assert_eq!(target["env"]["NCCL_DEBUG"], "a \"b\"\n$c");
    assert!(place.lock().contains("revision = 1\n") && place.lock().contains("image = { os = \"ubuntu22.04\""));
    place.run(&["resolve", "--offline", "--check"]).code(0);
    place.run(&["resolve", "--locked"]).code(0);
    place.put("gpulock.toml", format!("{GOOD}{}", IMAGE.replace("base", "runtime")));
    place.run(&["resolve", "--offline", "--check"]).code(1).says(&["-base-ubuntu22.04 -> nvidia/cuda:12.8.1-runtime-"]);
    place.run(&["resolve", "--locked"]).code(1);
}

#[test]
fn without_them_it_is_as_before() {
    let place = Place::locked();
    assert!(place.lock().contains("revision = 0\n"));
    assert!(!place.lock().contains("image =") && !place.lock().contains("env ="));
}

#[test]
fn an_image_that_is_not_known_is_a_warning() {
    let place = Place::with(&format!("{GOOD}\n[image]\nos = \"ubunut22.04\"\n"));
    place.run(&["resolve", "--offline"]).code(0).says(&["warning[image-unknown]", "did you mean `ubuntu22.04`?"]);
    assert!(place.lock().contains("image = { os = \"ubunut22.04\", flavor = \"slim\" }\n"));
}
