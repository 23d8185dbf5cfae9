//! Directories laid over the matrix that cannot be used.

use std::fs;

use crate::cli::program::{GOOD, Place, Ran};

const TORCH: &str = include_str!("../../../../compat-matrix/torch/2.8.toml");

/// Resolves with an overlay of one file, with no lock and with one; validates it too.
fn refused(file: &str, text: &str, words: &[&str]) -> Ran {
    let place = Place::locked();
    let path = place.path(&format!("facts/{file}"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    place.refuses(&["resolve", "--offline", "--upgrade", "--matrix", "facts"], 2).says(words);
    place.refuses(&["matrix", "check", "--matrix", "facts"], 1).says(words);
    fs::remove_file(place.path("gpulock.lock")).unwrap();
    place.refuses(&["resolve", "--offline", "--matrix", "facts"], 2)
}

#[test]
fn a_dangling_reference() {
    let words = ["error[matrix-reference]", "CUDA 12.55 is not in the matrix", "facts/torch/2.8.toml:", "help:"];
    let dangling = TORCH.replace("cuda = \"12.8\"", "cuda = \"12.55\"");
    assert_ne!(dangling, TORCH);
    refused("torch/2.8.toml", &dangling, &words);
    let index = TORCH.replace("index = \"pypi\"", "index = \"pipy\"");
    refused("torch/2.8.toml", &index, &["`pipy`", "facts/torch/2.8.toml:"]);
}

#[test]
fn broken_toml() {
    refused("torch/2.8.toml", "[[release\n", &["error[matrix-invalid]", "facts/torch/2.8.toml:1"]);
    refused("gpu.toml", "gpus = 1\n", &["error[matrix-invalid]", "facts/gpu.toml:1"]);
}

#[test]
fn a_good_one_is_used_and_named_in_the_lock() {
    let place = Place::locked();
    fs::create_dir_all(place.path("facts/torch")).unwrap();
    place.put("facts/torch/2.8.toml", TORCH.replace("[[release]]", "# a comment\n[[release]]"));
    let before = place.lock();
    place.run(&["matrix", "check", "--matrix", "facts"]).code(0);
    place.run(&["resolve", "--offline", "--check", "--matrix", "facts"]).code(0);
    fs::remove_file(place.path("gpulock.lock")).unwrap();
    place.run(&["resolve", "--offline", "--matrix", "facts"]).code(0);
    let hash = |lock: &str| lock.lines().find(|line| line.starts_with("matrix = ")).unwrap().to_owned();
    assert_ne!(hash(&before), hash(&place.lock()));
    // The hash of the matrix is part of what the lock's own hash is of.
    let rest = |lock: &str| -> Vec<String> {
        lock.lines()
            .filter(|line| !line.starts_with("matrix = ") && !line.starts_with("content = "))
            .map(str::to_owned)
            .collect()
    };
    assert!(rest(&before) == rest(&place.lock()));
}

#[test]
fn no_matrix() {
    let place = Place::with(GOOD);
    let with = |directory| place.refuses(&["resolve", "--offline", "--matrix", directory], 2);
    with("none").says(&["error[matrix-unreadable]", "none", "help:"]);
    with("gpulock.toml").says(&["error[matrix-unreadable]", "gpulock.toml", "help:"]);
    fs::create_dir(place.path("empty")).unwrap();
    with("empty").says(&["error[matrix-unreadable]", "holds no matrix", "laid out as compat-matrix/ is"]);
}
