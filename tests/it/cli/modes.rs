//! `--check`, `--locked`, `--dry-run`, `--upgrade`, `--target`: what each writes, and how it ends.

use crate::cli::program::{GOOD, Place, Ran};

const OTHER: &str = "2.7.1";

/// A lock, and a manifest that has moved on.
fn stale() -> Place {
    let place = Place::locked();
    place.put("gpulock.toml", GOOD.replace("2.8.0", OTHER));
    place
}

#[test]
fn check() {
    let place = Place::locked();
    let before = place.all();
    let ran = place.run(&["resolve", "--offline", "--check"]).code(0);
    assert_eq!((ran.out.as_str(), place.all()), ("gpulock.lock is up to date\n", before));
    let words = ["error[lock-stale]", "gpulock.lock would change", "torch 2.8.0 -> 2.7.1", "run `gpulock resolve`"];
    let ran = stale().refuses(&["resolve", "--offline", "--check"], 1).says(&words);
    assert!(ran.err.lines().count() < 20, "not every change is listed:\n{}", ran.err);
}

#[test]
fn locked() {
    let place = Place::locked();
    let before = place.all();
    let ran = place.run(&["resolve", "--locked"]).code(0);
    assert!(ran.out.contains("torch     2.8.0 (cu128)"), "{}", ran.out);
    assert_eq!(place.all(), before);
    stale().refuses(&["resolve", "--locked"], 1).says(&["error[lock-stale]", "not that of this manifest", "commit"]);
    // Comments and order are no change.
    place.put("gpulock.toml", format!("# a comment\n{}", GOOD.replace("torch = \"2.8.0\"\n", "torch = '2.8.0' # b\n")));
    place.run(&["resolve", "--locked"]).code(0);
    // A target more is one.
    place.put("gpulock.toml", format!("{GOOD}[target.b]\ngpus = [\"H100\"]\n"));
    place.refuses(&["resolve", "--locked"], 1);
}

#[test]
fn dry_run() {
    let place = stale();
    let before = place.all();
    let ran = place.run(&["resolve", "--offline", "--dry-run"]).code(0);
    assert!(ran.out.contains("torch     2.7.1") && ran.out.contains("nothing written"), "{}", ran.out);
    assert_eq!(place.all(), before);
}

#[test]
fn what_is_locked_stays_until_it_is_upgraded() {
    let place = Place::locked();
    place.put("gpulock.toml", GOOD.replace("2.8.0", ">=2.7"));
    place.run(&["resolve", "--offline"]).code(0).says(&["the lock holds 2.8.0+cu128", "--upgrade-package torch"]);
    assert!(place.lock().contains("torch = \"2.8.0\""));
    place.run(&["resolve", "--offline", "--upgrade-package", "sympy"]).code(0);
    assert!(place.lock().contains("torch = \"2.8.0\""));
    place.run(&["resolve", "--offline", "--upgrade-package", "torch"]).code(0);
    assert!(!place.lock().contains("torch = \"2.8.0\""));
    let upgraded = place.lock();
    place.run(&["resolve", "--offline", "--upgrade"]).code(0);
    assert_eq!(place.lock(), upgraded);
}

#[test]
fn one_target_of_several() {
    let two =
        |torch: &str| format!("{}[target.b]\ngpus = [\"H100\"]\ndriver = \"580\"\n", GOOD.replace("2.8.0", torch));
    let place = Place::with(&two("2.8.0"));
    // A part of the manifest is no lock for it.
    place.run(&["resolve", "--offline", "--target", "b"]).code(0);
    place.refuses(&["resolve", "--locked"], 1);
    place.run(&["resolve", "--offline"]).code(0);
    place.run(&["resolve", "--locked"]).code(0);
    place.put("gpulock.toml", two(OTHER));
    place.run(&["resolve", "--offline", "--target", "b"]).code(0);
    let lock = place.lock();
    assert!(lock.contains("torch = \"2.8.0\"") && lock.contains("torch = \"2.7.1\""));
    // Half of it is from the old manifest, so it fits neither.
    place.refuses(&["resolve", "--locked"], 1);
    place.put("gpulock.toml", two("2.8.0"));
    place.refuses(&["resolve", "--locked"], 1);
    place.run(&["resolve", "--offline", "--upgrade"]).code(0);
    place.run(&["resolve", "--locked"]).code(0);
}

#[test]
fn the_same_bytes_every_time() {
    let lock = Place::locked().lock();
    let place = Place::locked();
    place.run(&["resolve", "--offline", "--upgrade"]).code(0);
    assert_eq!(place.lock(), lock);
    std::fs::remove_file(place.path("gpulock.lock")).unwrap();
    let json = place.run(&["resolve", "--offline", "--format", "json"]).code(0).json();
    assert_eq!((json["schema"].as_str(), place.lock()), (Some("gpulock.lock/1"), lock));
}

#[test]
fn init_takes_every_flag() {
    let place = Place::empty();
    let flags = [
        "--gpu",
        "A100",
        "--gpu",
        "H100",
        "--driver",
        ">=570",
        "--torch",
        "2.8",
        "--torchvision",
        "*",
        "--python",
        "3.11",
        "--cuda",
        "12",
        "--cudnn",
        ">=9",
        "--glibc",
        "2.31",
        "--platform",
        "linux-aarch64",
        "--forward-compat",
        "--package",
        "numpy<3",
        "--package",
        "einops",
        "--package",
        "numpy>1",
    ];
    place.run(&[&["init"], &flags[..]].concat()).code(0);
    let manifest = place.text("gpulock.toml");
    for line in [
        "gpus = [\"A100\", \"H100\"]",
        "driver = \">=570\"",
        "torch = \"==2.8.*\"",
        "torchvision = \"*\"",
        "python = \"3.11\"",
        "cuda = \"12\"",
        "cudnn = \">=9\"",
        "glibc = \"2.31\"",
        "platform = \"linux-aarch64\"",
        "forward-compat = true",
        "numpy = \">1\"",
        "einops = \"*\"",
    ] {
        assert!(manifest.contains(line), "{line}\n{manifest}");
    }
    place.refuses(&["init"], 1).says(&["error[manifest-exists]", "gpulock.toml is here already", "--force"]);
    place.run(&["init", "--force", "--gpu", "H100"]).code(0);
    assert!(!place.text("gpulock.toml").contains("A100"));
}

#[test]
fn results_for_programs() {
    let place = Place::locked();
    let why = place.run(&["why", "sympy", "--format", "json"]).code(0).json();
    assert_eq!(why["schema"], "gpulock.why/1");
    assert!(why["targets"][0]["chain"][0].as_str().unwrap().starts_with("torch 2.8.0 requires sympy >=1.13.3"));
    let why = place.run(&["why", "torch", "--format", "json"]).code(0).json();
    assert!(why["targets"][0]["facts"][0]["source"].is_string());
    let wrote = place.run(&["export", "uv", "--format", "json"]).code(0).json();
    assert_eq!((&wrote["schema"], &wrote["files"][0]), (&"gpulock.written/1".into(), &"pyproject.toml".into()));
    let place = Place::empty();
    let wrote = place.run(&["init", "--gpu", "A100", "--format", "json"]).code(0).json();
    assert_eq!(wrote["files"], serde_json::json!(["gpulock.toml", ".gitattributes"]));
}

#[test]
fn init_writes_no_manifest_beside_another() {
    let place = Place::empty();
    let table = GOOD.replace("[stack]", "[tool.gpulock.stack]").replace("[target.", "[tool.gpulock.target.");
    place.put("pyproject.toml", format!("[project]\nname = \"x\"\n\n{table}"));
    let words = ["error[manifest-exists]", "gpulock.toml beside it would win", "pyproject.toml:4:1", "--force"];
    place.refuses(&["init", "--gpu", "A100"], 1).says(&words);
    place.run(&["init", "--gpu", "A100", "--force"]).code(0);
    let place = Place::empty();
    place.put("environment.yml", "name: x\ndependencies:\n  - python=3.11\n  - pytorch=2.3\n");
    let words = ["environment.yml is an environment of conda", "environment.yml:2:1", "--torch"];
    place.refuses(&["init", "environment.yml"], 2).says(&words);
}

#[test]
fn why_of_what_is_no_package() {
    let place = Place::locked();
    for (part, says) in [
        ("cudnn", "`gpulock why nvidia-cudnn-cu12`"),
        ("cuda", "`gpulock why nvidia-cuda-runtime-cu12`"),
        ("driver", "`gpulock why torch`"),
        ("python", "`gpulock why torch`"),
        ("sympi", "did you mean `sympy`?"),
    ] {
        place.refuses(&["why", part], 1).says(&["error[package-unknown]", says]);
    }
}

/// An empty variable counts as unset, whatever its flag takes.
#[test]
fn empty_variables_are_unset() {
    let place = Place::locked();
    let names = [
        "TARGET",
        "FORMAT",
        "LOCK",
        "MANIFEST",
        "MATRIX",
        "OUTPUT",
        "MATRIX_AGE",
        "FAIL_ON",
        "TEMPLATE",
        "EXCLUDE",
        "ENV",
    ];
    for name in names {
        let mut command = place.command(&["check"]);
        let ran = Ran::of(command.env(format!("GPULOCK_{name}"), "").output().unwrap());
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{name}: {ran:?}");
        assert!(ran.out.starts_with("gpulock.toml: torch 2.8.0"), "{name}: {ran:?}");
    }
    for (name, command) in
        [("GPU", "resolve"), ("DRIVER", "resolve"), ("PACKAGE", "resolve"), ("UPGRADE_PACKAGE", "resolve")]
    {
        let mut command = place.command(&[command, "--offline", "--check", "-q"]);
        let ran = Ran::of(command.env(format!("GPULOCK_{name}"), "").output().unwrap());
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "gpulock.lock is up to date\n"), "{name}: {ran:?}");
    }
}
