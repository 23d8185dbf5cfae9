//! `gpulock check` on a project that adopts gpulock, and then drifts.

mod files;
mod projects;

use std::fs;

use gpulock::report::schema;
use serde_json::Value;

use crate::check::venv::Venv;
use crate::cli::program::{GOOD, Place, Ran};
use crate::report::findings::valid_sarif;

const CHECK: [&str; 3] = ["check", "--matrix-age", "99999"];

/// A manifest with its lock, a Dockerfile and two exports.
fn project() -> Place {
    let place = Place::with(&format!("{GOOD}\n[image]\nflavor = \"slim\"\n\n[env]\nNCCL_DEBUG = \"WARN\"\n"));
    place.run(&["resolve", "--offline", "-q"]).code(0);
    place.run(&["dockerfile", "-o", "Dockerfile"]).code(0);
    fs::create_dir(place.path("deploy")).unwrap();
    place.run(&["export", "requirements", "-o", "requirements.txt"]).code(0);
    place.run(&["export", "constraints", "-o", "deploy/constraints.txt"]).code(0);
    place
}

fn check(place: &Place, more: &[&str]) -> Ran {
    place.run(&[&CHECK[..], more].concat())
}

/// Codes of the findings, with their severity.
fn found(place: &Place, more: &[&str], code: i32) -> Vec<String> {
    let report = check(place, &[more, &["--format", "json"]].concat()).code(code).json();
    assert_eq!(report["schema"], "gpulock.report/1");
    assert!(jsonschema::draft202012::is_valid(&json_schema("report"), &report), "{report:#}");
    let findings = report["findings"].as_array().unwrap().iter();
    findings.map(|one| format!("{} {}", one["severity"].as_str().unwrap(), one["code"].as_str().unwrap())).collect()
}

fn json_schema(name: &str) -> Value {
    let one = schema::ALL.iter().find(|one| one.name == name).unwrap();
    serde_json::from_str(one.text).unwrap()
}

/// The project goes wrong in one way: what is found, and what is said.
fn drifts(change: impl Fn(&Place), code: &str, says: &[&str]) {
    let place = project();
    change(&place);
    assert!(found(&place, &[], 1).contains(&format!("error {code}")), "{}", check(&place, &[]).out);
    let ran = check(&place, &[]).code(1);
    says.iter().for_each(|words| assert!(ran.out.contains(words), "`{words}` is not in\n{}", ran.out));
    for format in ["sarif", "junit", "github", "markdown"] {
        let ran = check(&place, &["--format", format]).code(1);
        assert!(ran.out.contains(code) && ran.err.is_empty(), "{format}: {ran:?}");
        // The sentence is the same, but for what the format escapes.
        let plain = ran.out.replace(['\\', '`'], "").replace("&quot;", "\"").replace("%25", "%");
        let sentence = says[0].replace('`', "");
        assert!(plain.contains(&sentence), "{format}: `{sentence}` is not in\n{plain}");
        if format == "sarif" {
            let log = valid_sarif(&ran.out);
            let results = log["runs"][0]["results"].as_array().unwrap().clone();
            for one in results.iter().filter(|one| one["ruleId"] == code) {
                let uri = one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].as_str().unwrap();
                assert!(place.path(uri).exists(), "{uri} is no file of the project");
            }
        }
    }
}

fn edit(place: &Place, name: &str, from: &str, to: &str) {
    let text = place.text(name);
    assert!(text.contains(from), "{name} has no {from}");
    place.put(name, text.replacen(from, to, 1));
}

#[test]
fn what_was_written_is_clean() {
    let place = project();
    assert_eq!(check(&place, &[]).code(0).out, "gpulock.toml: torch 2.8.0 (cu128) for a; 3 files\n\nclean\n");
    assert_eq!(found(&place, &[], 0), [""; 0]);
    // From a folder below, the manifest is found above, and named as it is seen from there.
    let below = || {
        let mut below = place.command(&CHECK);
        Ran::of(below.current_dir(place.path("deploy")).output().unwrap())
    };
    assert_eq!(below().code(0).out, "../gpulock.toml: torch 2.8.0 (cu128) for a; 3 files\n\nclean\n");
    let text = place.text("Dockerfile");
    edit(&place, "Dockerfile", "USER 10001", "USER root");
    assert!(below().code(1).out.contains("`gpulock dockerfile -o ../Dockerfile`"), "{}", below().out);
    place.put("Dockerfile", text);
    // Two targets: each file is of one, and says so or is found out.
    let two = format!("{}\n[target.b]\ngpus = ['H100']\ndriver = '580'\n", place.text("gpulock.toml"));
    place.put("gpulock.toml", two);
    place.run(&["resolve", "--offline", "-q"]).code(0);
    assert_eq!(found(&place, &[], 1), ["error file-stale"; 3]);
    place.run(&["dockerfile", "-q", "--target", "b", "-o", "Dockerfile"]).code(0);
    edit(&place, "Dockerfile", "USER 10001", "USER root");
    let ran = check(&place, &[]).code(1);
    assert!(ran.out.contains("`gpulock dockerfile --target b -o Dockerfile`"), "{}", ran.out);
    for target in ["a", "b"] {
        place.run(&["dockerfile", "-q", "--target", target, "-o", "Dockerfile"]).code(0);
        place.run(&["export", "requirements", "--target", target, "-o", "requirements.txt"]).code(0);
        place.run(&["export", "constraints", "--target", target, "-o", "deploy/constraints.txt"]).code(0);
        assert_eq!(found(&place, &[], 0), [""; 0], "{target}");
    }
}

#[test]
fn a_lock_without_image_has_a_dockerfile_too() {
    let place = Place::locked();
    place.run(&["dockerfile", "-o", "Dockerfile", "-q"]).code(0);
    assert_eq!(found(&place, &[], 0), [""; 0]);
    edit(&place, "Dockerfile", "USER 10001", "USER root");
    assert_eq!(found(&place, &[], 1), ["error file-stale"]);
}

#[test]
fn six_drifts() {
    drifts(
        |place| edit(place, "gpulock.toml", "\"580\"", "\"570\""),
        "lock-stale",
        &["gpulock.lock is not that of this manifest", "gpulock resolve"],
    );
    drifts(
        |place| fs::remove_file(place.path("gpulock.lock")).unwrap(),
        "lock-missing",
        &["there is no lock", "skipped, no lock here: file-stale"],
    );
    drifts(
        |place| {
            edit(place, "gpulock.toml", "WARN", "INFO");
            place.run(&["resolve", "--offline", "-q"]).code(0);
        },
        "file-stale",
        &[
            "Dockerfile was written for another lock",
            "requirements.txt was written for another lock",
            "deploy/constraints.txt was written for another lock",
            "`gpulock export constraints -o deploy/constraints.txt`",
            "3 errors",
        ],
    );
    drifts(
        |place| edit(place, "Dockerfile", "USER 10001", "USER root"),
        "file-stale",
        &["Dockerfile was changed since it was written, first in line ", "USER root\n", "the lock gives: `USER 10001`"],
    );
    drifts(
        |place| edit(place, "requirements.txt", "torch==2.8.0", "torch==2.7.0"),
        "file-stale",
        &["requirements.txt was changed since", "| torch==2.7.0", "the lock gives: `torch==2.8.0 \\`"],
    );
    drifts(
        |place| {
            let text = place.text("deploy/constraints.txt");
            place.put("deploy/constraints.txt", &text[..text.len() - 20]);
        },
        "file-stale",
        &["deploy/constraints.txt was changed since it was written"],
    );
}

#[test]
fn an_environment_is_held_against_the_lock() {
    let (place, venv) = (project(), Venv::with_torch());
    let path = venv.path().display().to_string();
    let found = found(&place, &["--env", &path], 1);
    assert!(found.contains(&"error lock-drift".into()), "{found:?}");
    let ran = check(&place, &["--env", &path]).code(1);
    assert!(ran.out.contains("gpulock.toml: torch 2.8.0") && ran.out.contains("; 3 files, "), "{}", ran.out);
    assert!(ran.out.contains("for a: A100 (sm_80), driver 580"), "{}", ran.out);
    check(&place, &["--env", "none"]).code(2).says(&["none"]);
    // No library of the GPU stack is no clean one.
    fs::create_dir_all(place.path("empty/lib/python3.11/site-packages")).unwrap();
    place.put("empty/pyvenv.cfg", "home = /usr/bin\nversion = 3.11.2\n");
    check(&Place::empty(), &["--env", place.path("empty").to_str().unwrap()]).code(3);
}

#[test]
fn what_cannot_be_read_is_no_answer() {
    let place = project();
    edit(&place, "gpulock.lock", "version = 1", "version = ");
    place.refuses(&CHECK, 2).says(&["gpulock.lock"]);
    place.put("gpulock.lock", "<<<<<<< ours\n=======\n>>>>>>> theirs\n");
    place.refuses(&CHECK, 2).says(&["merge"]);
    place.put("gpulock.toml", "[stack");
    place.refuses(&CHECK, 2).says(&["gpulock.toml"]);
    place.refuses(&[&CHECK[..], &["--lock", "other.lock"]].concat(), 2);
}

#[test]
fn nothing_to_check_is_not_clean() {
    let place = Place::empty();
    let nothing = "nothing here has to do with GPUs: not judged";
    for format in ["human", "sarif", "junit", "github", "markdown"] {
        let ran = check(&place, &["--format", format]).code(3);
        assert!(ran.out.contains(nothing) && !ran.out.contains("clean"), "{format}: {}", ran.out);
    }
    assert_eq!(check(&place, &["--format", "json"]).code(3).json()["summary"]["empty"], true);
    // A remark is no verdict either.
    let ran = place.run(&["check", "--matrix-age", "0"]).code(3);
    assert!(ran.out.contains(nothing) && !ran.out.contains("clean"), "{}", ran.out);
    // Nor is a sound project one of an environment that has nothing.
    let place = project();
    fs::create_dir_all(place.path("empty/lib/python3.11/site-packages")).unwrap();
    place.put("empty/pyvenv.cfg", "home = /usr/bin\nversion = 3.11.2\n");
    let ran = check(&place, &["--env", "empty", "--fail-on", "never"]);
    assert!(!ran.out.ends_with("clean\n"), "{}", ran.out);
}

#[test]
fn levels_are_those_of_the_manifest() {
    let place = project();
    edit(&place, "requirements.txt", "torch==2.8.0", "torch==2.7.0");
    let checks = "[checks]\nfile-stale = { level = \"warning\", reason = \"being moved\" }\n";
    place.put("gpulock.toml", format!("{}{checks}", place.text("gpulock.toml")));
    place.run(&["resolve", "--offline", "-q"]).code(0);
    for command in [&["dockerfile", "-o", "Dockerfile"][..], &["export", "constraints", "-o", "deploy/constraints.txt"]]
    {
        place.run(command).code(0);
    }
    assert_eq!(found(&place, &[], 0), ["warning file-stale"]);
    assert_eq!(found(&place, &["--fail-on", "warning"], 1), ["warning file-stale"]);
    // A level of what only `check` looks at is not one that meets nothing in `verify`.
    let venv = Venv::with_torch();
    let ran = place.run(&["verify", venv.path().to_str().unwrap(), "--gpu", "A100"]).code(0);
    assert!(!ran.out.contains("exception-unused"), "{}", ran.out);
}

#[test]
fn an_old_matrix_is_a_note() {
    let place = project();
    place.put("old.txt", "");
    let ran = place.run(&["check", "--matrix-age", "0"]).code(0);
    // The embedded one may be of today.
    let is_old = ran.out.contains("note[matrix-old]: the compatibility matrix is ");
    assert!(is_old || !ran.out.contains("note"), "{}", ran.out);
}

#[test]
fn formats_are_those_of_findings() {
    let place = project();
    for format in ["sarif", "junit", "github", "markdown"] {
        place.run(&["export", "requirements", "--format", format]).code(2).says(&["this command has no format"]);
        let clean = check(&place, &["--format", format]).code(0);
        assert!(!clean.out.is_empty() && clean.err.is_empty(), "{clean:?}");
        let venv = Venv::with_torch();
        let verified = place.run(&["verify", venv.path().to_str().unwrap(), "--gpu", "A100", "--format", format]);
        assert!(!verified.code(0).out.is_empty());
    }
    let broken = Place::with("[stack");
    let ran = check(&broken, &["--format", "sarif"]).code(2);
    let log = valid_sarif(&ran.out);
    assert_eq!(log["runs"][0]["invocations"][0]["executionSuccessful"], false);
    let place = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"];
    assert_eq!(place["uri"], "gpulock.toml");
    assert!(check(&broken, &["--format", "github"]).code(2).out.starts_with("::error file=gpulock.toml,line=1,"));
}

/// Variables are judged where they are set, with a Dockerfile and without.
#[test]
fn variables_of_the_manifest_are_judged_there() {
    let place = project();
    edit(&place, "gpulock.toml", "NCCL_DEBUG = \"WARN\"", "NCCL_TIMEOUT = \"1\"\nNCCL_SOCKET_IFNAMES = \"eth0\"");
    place.run(&["resolve", "--offline", "-q"]).code(0);
    for target in ["Dockerfile", "other.Dockerfile"] {
        place.run(&["dockerfile", "-o", target]).code(0);
    }
    fs::remove_file(place.path("requirements.txt")).unwrap();
    fs::remove_file(place.path("deploy/constraints.txt")).unwrap();
    let line = |word: &str| place.text("gpulock.toml").lines().position(|line| line.starts_with(word)).unwrap() + 1;
    for _ in 0..2 {
        assert_eq!(found(&place, &[], 0), ["warning env-variable-unknown"; 2]);
        let ran = check(&place, &[]).code(0);
        for (name, fix) in
            [("NCCL_TIMEOUT", "pass timeout="), ("NCCL_SOCKET_IFNAMES", "did you mean NCCL_SOCKET_IFNAME?")]
        {
            assert!(ran.out.contains(&format!("--> gpulock.toml:{}:1", line(name))), "{}", ran.out);
            assert!(ran.out.contains(fix), "{}", ran.out);
        }
        for name in ["Dockerfile", "other.Dockerfile"] {
            let _ = fs::remove_file(place.path(name));
        }
    }
}
