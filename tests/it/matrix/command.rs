//! `gpulock matrix` as a process: what it prints and how it exits.

use std::path::Path;
use std::process::{Command, Output};

use gpulock::matrix::Files;

fn gpulock(folder: &Path, args: &[&str]) -> Output {
    let cache = folder.join("cache");
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpulock"));
    command.args(args).current_dir(folder).env_clear().env("GPULOCK_CACHE_DIR", cache).env("NO_COLOR", "1");
    command.output().unwrap()
}

/// Exit code, standard output, standard error.
fn run(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let output = gpulock(folder, args);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// A folder with `over/cuda/12.8.toml`, damaged by `from` -> `to`.
fn damaged(from: &str, to: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("over/cuda")).unwrap();
    let text = Files::default().text("cuda/12.8.toml").unwrap().replacen(from, to, 1);
    std::fs::write(folder.path().join("over/cuda/12.8.toml"), text).unwrap();
    folder
}

#[test]
fn check_says_clean_or_shows_the_place() {
    let folder = damaged("branch = 570", "branch = 571");
    let (code, out, err) = run(folder.path(), &["matrix", "check"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("The matrix is clean: "), "{out}");
    let (code, out, err) = run(folder.path(), &["matrix", "check", "--matrix", "over"]);
    assert_eq!((code, out.as_str()), (1, ""));
    for part in ["error[matrix-reference]: driver branch 571", "over/cuda/12.8.toml:3:10", "branch = 571", "^^^"] {
        assert!(err.contains(part), "no `{part}` in\n{err}");
    }
    let (code, out, _) = run(folder.path(), &["matrix", "check", "--matrix", "over", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, json["errors"][0]["code"].as_str()), (1, Some("matrix-reference")));
    let (code, out, _) = run(folder.path(), &["matrix", "check", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, json["errors"].as_array().unwrap().len()), (0, 0));
}

#[test]
fn other_commands_refuse_a_matrix_that_is_not_clean() {
    let folder = damaged("branch = 570", "branch = 571");
    let resolve = ["resolve", "--matrix", "over", "--offline", "--gpu", "A100", "--dry-run"];
    for args in [&["matrix", "show", "--matrix", "over"][..], &resolve] {
        let (code, out, err) = run(folder.path(), args);
        assert_eq!((code, out.as_str()), (2, ""), "{args:?}: {err}");
        assert!(err.contains("driver branch 571"), "{args:?}: {err}");
    }
    let clean = damaged("branch = 570", "branch = 570 # as it was");
    assert_eq!(run(clean.path(), &["matrix", "show", "cuda", "--matrix", "over"]).0, 0);
}

#[test]
fn show_answers_or_says_why_not() {
    let folder = tempfile::tempdir().unwrap();
    let (code, out, _) = run(folder.path(), &["matrix", "show", "--torch", "2.8", "--gpu", "h100"]);
    assert!(code == 0 && out.contains("sm_90 by") && out.contains("2.8.0"), "{out}");
    let (code, out, _) = run(folder.path(), &["matrix", "show", "--torch", "==99.1"]);
    assert_eq!(code, 1, "{out}");
    let (code, _, err) = run(folder.path(), &["matrix", "show", "--gpu", "RTX 5091"]);
    assert!(code == 2 && err.contains("did you mean") && err.contains("RTX 5090"), "{err}");
    let (code, _, err) = run(folder.path(), &["matrix", "show", "--torch", "new"]);
    assert!(code == 2 && err.contains("--torch"), "{err}");
}

#[test]
fn update_and_audit_ask_for_what_they_need() {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, err) = run(folder.path(), &["matrix", "update"]);
    assert!(code == 2 && err.contains("there is no matrix here") && err.contains("--out DIR"), "{err}");
    for args in [&["matrix", "update", "--out", "x", "--offline"][..], &["matrix", "audit", "--offline"]] {
        let (code, _, err) = run(folder.path(), args);
        assert!(code == 2 && err.contains("--offline forbids"), "{args:?}: {err}");
    }
    // Nothing listens there.
    let args = ["matrix", "audit", "--mirror", "pypi=http://127.0.0.1:9/simple"];
    let (code, out, err) = run(folder.path(), &args);
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    let update = ["matrix", "update", "--out", "x", "--mirror", "pypi=http://127.0.0.1:9/simple"];
    let (code, _, err) = run(folder.path(), &update);
    assert!(code == 2 && !folder.path().join("x").exists(), "{err}");
    let (code, _, err) = run(folder.path(), &["matrix", "update", "--out", "x", "--exclude-newer", "soon"]);
    assert!(code == 2 && err.contains("soon"), "{err}");
}
