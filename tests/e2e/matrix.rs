//! The matrix against the live registry: an audit finds no difference, and an update brings back a release that a copy
//! of the matrix lacks, with everything that an index can tell.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use toml_edit::DocumentMut;

use super::known;
use super::run::{self, files, folder, gpulock, stdout, succeed, timed};

/// The release that is taken out.
const TORCH: &str = "2.15.0";

fn embedded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("compat-matrix")
}

#[test]
fn network_matrix_audit() {
    if !run::network() {
        return;
    }
    let folder = folder();
    let mut command = gpulock(folder.path(), &folder.path().join("cache"));
    let (output, took) = timed(|| command.args(["matrix", "audit", "--format", "json"]).output().unwrap());
    let text = String::from_utf8_lossy(&output.stdout);
    let audit: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert!(output.status.success(), "{:#}", audit["differences"]);
    assert_eq!(audit["differences"], Value::Array(Vec::new()));
    let compared = audit["compared"].as_array().unwrap();
    let counts: Vec<String> =
        compared.iter().map(|one| format!("{} {}", one["count"], known::text(one, "kind"))).collect();
    println!("audit: no difference in {} ({took:.1?})", counts.join(", "));
    for unchecked in audit["not_checked"].as_array().unwrap() {
        println!("not checked: {}", unchecked.as_str().unwrap());
    }
    assert!(compared.iter().any(|one| one["kind"] == "sha256" && one["count"].as_u64().unwrap() > 1000), "{counts:?}");
}

/// A copy of the matrix without `TORCH`.
fn copy_without(at: &Path) {
    let minor = TORCH.rsplit_once('.').unwrap().0;
    for path in files(&embedded()) {
        let name = path.strip_prefix(embedded()).unwrap();
        // The rest is the build script.
        if !["toml", "jsonl"].iter().any(|kind| path.extension().is_some_and(|it| it == *kind))
            || name == Path::new(&format!("torch/{minor}.toml"))
        {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let release = format!("{{\"version\":\"{TORCH}\"");
        let gone = |line: &&str| name == Path::new("snapshot/torch.jsonl") && line.starts_with(&release);
        let kept: String = text.split_inclusive('\n').filter(|line| !gone(line)).collect();
        fs::create_dir_all(at.join(name).parent().unwrap()).unwrap();
        fs::write(at.join(name), kept).unwrap();
    }
}

/// What an index can tell of the builds of `TORCH`; the rest is documents and people.
fn facts(matrix: &Path) -> Vec<String> {
    let minor = TORCH.rsplit_once('.').unwrap().0;
    let text = fs::read_to_string(matrix.join(format!("torch/{minor}.toml"))).unwrap();
    let document: DocumentMut = text.parse().unwrap();
    let release = document["release"].as_array_of_tables().unwrap().iter().next().unwrap().clone();
    let mut facts = Vec::new();
    let mut add = |table: &toml_edit::Table, keys: &[&str]| {
        for key in keys {
            facts.push(format!("{key} = {}", table.get(key).map_or_else(String::new, |item| item.to_string())));
        }
    };
    add(&release, &["version", "released", "requires-python", "torchvision", "torchaudio"]);
    for build in release["build"].as_array_of_tables().unwrap() {
        add(build, &["variant", "index", "platform", "cuda", "toolkit", "python", "glibc", "cudnn", "nccl", "triton"]);
        add(build, &["code", "cxx11-abi"]);
    }
    facts
}

#[test]
fn network_matrix_update() {
    if !run::network() {
        return;
    }
    let folder = folder();
    let matrix = folder.path().join("matrix");
    copy_without(&matrix);
    let command = || {
        let mut command = gpulock(folder.path(), &folder.path().join("cache"));
        command.args(["--matrix", "matrix"]);
        command
    };
    let (said, took) =
        timed(|| stdout(command().args(["matrix", "update", "--exclude-newer", &known::exclude_newer()])));
    println!("{said}\nupdate: {took:.1?}");
    assert_eq!(facts(&matrix), facts(&embedded()));
    for path in files(&matrix) {
        let name = path.strip_prefix(&matrix).unwrap();
        if name.extension().is_some_and(|kind| kind == "jsonl") {
            assert!(fs::read(&path).unwrap() == fs::read(embedded().join(name)).unwrap(), "{}", name.display());
        }
    }
    println!("{}", stdout(command().args(["matrix", "check"])));

    // What is locked with it is what the whole matrix gives.
    let torch = format!("=={TORCH}");
    let resolve =
        ["resolve", "--offline", "--quiet", "--gpu", "A100", "--driver", "595", "--python", "3.12", "--torch"];
    let lock = |mut command: std::process::Command, file: &str| {
        succeed(command.args(resolve).args([&torch, "--lock", file]));
        let text = fs::read_to_string(folder.path().join(file)).unwrap();
        // What the matrix is called, and the hash over that too.
        let is_of_matrix = |line: &&str| line.starts_with("matrix = ") || line.starts_with("content = ");
        text.lines().filter(|line| !is_of_matrix(line)).map(str::to_owned).collect::<Vec<_>>()
    };
    let whole = gpulock(folder.path(), &folder.path().join("cache"));
    assert_eq!(lock(command(), "updated.lock"), lock(whole, "whole.lock"));
}
