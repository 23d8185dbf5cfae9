//! A repository that adopts gpulock as the README says, and then drifts in six ways: each is said alike in every format.

use std::fs;

use roxmltree::Document;
use serde_json::Value;

use super::program::{Place, Ran};
use crate::check::venv::Venv;
use crate::report::findings::valid_sarif;

const FORMATS: [&str; 6] = ["human", "json", "sarif", "junit", "github", "markdown"];
const CHECK: [&str; 5] = ["check", "--matrix-age", "99999", "--fail-on", "warning"];

/// What a format says of one finding.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    code: String,
    message: String,
    /// Where it is, for the formats that put it beside the code.
    file: Option<String>,
    line: Option<u64>,
}

/// `init`, `resolve`, `dockerfile`, exports, and a Dockerfile of one's own.
fn adopted() -> Place {
    let place = Place::empty();
    fs::create_dir(place.path(".git")).unwrap();
    place.put(
        "pyproject.toml",
        "[project]\nname = \"job\"\nrequires-python = \"==3.11.*\"\ndependencies = [\"torch==2.8.0\"]\n",
    );
    place.run(&["init", "--gpu", "A100", "--driver", "580"]).code(0);
    place.put("gpulock.toml", place.text("gpulock.toml") + "\n[env]\nNCCL_DEBUG = \"WARN\"\n");
    place.run(&["resolve", "--offline", "-q"]).code(0);
    place.run(&["export", "requirements", "-o", "requirements.txt"]).code(0);
    place.run(&["dockerfile", "-qq", "-o", "Dockerfile"]).code(0);
    fs::create_dir(place.path("docker")).unwrap();
    let own = "# syntax=docker/dockerfile:1\nFROM python:3.11-slim-bookworm\nCOPY requirements.txt /tmp/\n\
               RUN pip install --require-hashes \\\n    # the lock's\n    -r /tmp/requirements.txt\n";
    place.put("docker/train.Dockerfile", own);
    place
}

fn check(place: &Place, format: &str, more: &[&str]) -> Ran {
    place.run(&[&CHECK[..], &["--format", format], more].concat())
}

/// The findings of a run, as the format has them.
fn said(format: &str, out: &str) -> Vec<Said> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    match format {
        "human" => {
            let finding = |line: &str| {
                let (head, message) = line.split_once("]: ")?;
                let (_, code) = head.split_once('[')?;
                Some(Said { code: code.into(), message: message.into(), file: None, line: None })
            };
            out.lines().filter(|line| !line.starts_with(' ')).filter_map(finding).collect()
        }
        "json" => {
            let report: Value = serde_json::from_str(out).unwrap();
            let findings = report["findings"].as_array().unwrap().iter();
            let finding =
                |one: &Value| Said { code: text(&one["code"]), message: text(&one["message"]), file: None, line: None };
            findings.map(finding).collect()
        }
        "sarif" => {
            let log = valid_sarif(out);
            let results = log["runs"][0]["results"].as_array().unwrap().iter();
            let finding = |one: &Value| {
                let place = &one["locations"][0]["physicalLocation"];
                let message = text(&one["message"]["text"]).lines().next().unwrap().to_owned();
                let file = Some(text(&place["artifactLocation"]["uri"]));
                Said { code: text(&one["ruleId"]), message, file, line: place["region"]["startLine"].as_u64() }
            };
            results.map(finding).collect()
        }
        "junit" => {
            let document = Document::parse(out).unwrap();
            let cases = document.descendants().filter(|node| node.has_tag_name("testcase"));
            let finding = |case: roxmltree::Node<'_, '_>| {
                let failure = case.children().find(|node| node.has_tag_name("failure"))?;
                Some(Said {
                    code: failure.attribute("type")?.into(),
                    message: failure.attribute("message")?.into(),
                    file: case.attribute("file").map(str::to_owned),
                    line: case.attribute("line").map(|line| line.parse().unwrap()),
                })
            };
            cases.filter_map(finding).collect()
        }
        "github" => {
            let plain = |text: &str| text.replace("%3A", ":").replace("%2C", ",").replace("%25", "%");
            let finding = |line: &str| {
                let (properties, data) = line.strip_prefix("::")?.split_once(' ')?.1.split_once("::")?;
                let value = |name: &str| {
                    let mut pairs = properties.split(',').filter_map(|pair| pair.split_once('='));
                    pairs.find(|(key, _)| *key == name).map(|(_, value)| plain(value))
                };
                Some(Said {
                    code: value("title")?,
                    message: plain(data.split("%0A").next()?),
                    file: value("file"),
                    line: value("line").map(|line| line.parse().unwrap()),
                })
            };
            out.lines().filter_map(finding).collect()
        }
        _ => {
            let finding = |line: &str| {
                let rest = line.strip_prefix("- **")?.split_once("** `")?.1;
                let (code, rest) = rest.split_once("` in `")?;
                let (place, message) = rest.split_once("`: ")?;
                let (file, line) =
                    place.split_once(':').map_or((place, None), |(file, line)| (file, line.parse().ok()));
                Some(Said { code: code.into(), message: message.replace('\\', ""), file: Some(file.into()), line })
            };
            out.lines().filter_map(finding).collect()
        }
    }
}

/// Each format says the same of the one finding that there is: sentence, file and line.
fn drifts(change: impl Fn(&Place), more: &[&str], code: &str, says: &str, at: (&str, Option<u64>)) {
    let place = adopted();
    change(&place);
    for format in FORMATS {
        let ran = check(&place, format, more).code(1);
        let found = said(format, &ran.out);
        let one = found.iter().find(|one| one.code == code && one.message.contains(says));
        let one = one.unwrap_or_else(|| panic!("{format}: `{says}` is not in {found:#?}\n{}", ran.out));
        // SARIF wants a line of what has none.
        let line = if format == "sarif" { Some(at.1.unwrap_or(1)) } else { at.1 };
        let wanted = if ["human", "json"].contains(&format) { (None, None) } else { (Some(at.0), line) };
        assert_eq!((one.file.as_deref(), one.line), wanted, "{format}: {}", ran.out);
        assert!(place.path(at.0).is_file(), "{} is no file of the repository", at.0);
    }
}

fn edit(place: &Place, name: &str, from: &str, to: &str) {
    let text = place.text(name);
    assert!(text.contains(from), "{name} has no {from}: {text}");
    place.put(name, text.replacen(from, to, 1));
}

/// The line of a file that holds a text.
fn line(place: &Place, name: &str, holds: &str) -> u64 {
    let at = place.text(name).lines().position(|line| line.contains(holds)).unwrap();
    at as u64 + 1
}

#[test]
fn what_was_adopted_is_clean_in_every_format() {
    let place = adopted();
    for format in FORMATS {
        let ran = check(&place, format, &[]).code(0);
        assert_eq!(said(format, &ran.out), [], "{format}");
        assert!(!ran.out.is_empty() && ran.err.is_empty(), "{format}: {ran:?}");
    }
}

#[test]
fn the_manifest_moves_on() {
    let change = |place: &Place| edit(place, "gpulock.toml", "\"580\"", "\"570\"");
    let at = ("gpulock.toml", Some(line(&adopted(), "gpulock.toml", "driver = ")));
    drifts(change, &[], "lock-stale", "gpulock.lock is not that of this manifest", at);
}

#[test]
fn the_lock_is_edited() {
    let change = |place: &Place| {
        let lock = place.lock();
        let hash = lock.split("\"torch-2.8.0-").nth(2).unwrap().split("sha256 = \"").nth(1).unwrap();
        place.put("gpulock.lock", lock.replacen(&hash[..64], &"0".repeat(64), 1));
    };
    let says =
        "gpulock.lock has another hash of torch-2.8.0-cp311-cp311-manylinux_2_28_x86_64.whl than its index gives";
    let at = line(&adopted(), "gpulock.lock", "\"torch-2.8.0-cp311-cp311-manylinux_2_28_x86_64.whl\" = ");
    drifts(change, &[], "lock-edited", says, ("gpulock.lock", Some(at)));
    let change = |place: &Place| edit(place, "gpulock.lock", "\ncudnn = \"9.10.2.21\"", "\ncudnn = \"9.9.0.1\"");
    let says = "gpulock.lock says cuDNN 9.9.0.1 for default, and torch 2.8.0 (cu128) brings 9.10.2.21";
    let at = line(&adopted(), "gpulock.lock", "cudnn = \"9.10.2.21\"");
    drifts(change, &[], "lock-edited", says, ("gpulock.lock", Some(at)));
}

#[test]
fn the_generated_dockerfile_is_edited() {
    let change = |place: &Place| edit(place, "Dockerfile", "USER 10001", "USER root");
    let at = line(&adopted(), "Dockerfile", "USER 10001");
    let says = format!("Dockerfile was changed since it was written, first in line {at}");
    drifts(change, &[], "file-stale", &says, ("Dockerfile", Some(at)));
}

#[test]
fn an_export_is_left_behind() {
    let change = |place: &Place| {
        edit(place, "gpulock.toml", "\"WARN\"", "\"INFO\"");
        place.run(&["resolve", "--offline", "-q"]).code(0);
        place.run(&["dockerfile", "-qq", "-o", "Dockerfile"]).code(0);
    };
    let at = ("requirements.txt", Some(line(&adopted(), "requirements.txt", "# Lock: ")));
    drifts(change, &[], "file-stale", "requirements.txt was written for another lock", at);
}

/// The torch is the one of the requirements file, which is beside neither the Dockerfile nor in a folder of that name.
#[test]
fn a_dockerfile_of_ones_own_takes_another_cuda() {
    let change = |place: &Place| {
        let base = "FROM nvidia/cuda:11.8.0-runtime-ubuntu22.04";
        edit(place, "docker/train.Dockerfile", "FROM python:3.11-slim-bookworm", base);
    };
    let says = "the base brings CUDA 11.8, and torch 2.8.0 (cu128) its own CUDA 12.8";
    drifts(change, &[], "dockerfile-base-cuda", says, ("docker/train.Dockerfile", Some(2)));
}

#[test]
fn the_environment_has_another_cudnn() {
    let venv = Venv::with_torch();
    venv.forget("nvidia-cudnn-cu12");
    venv.install_cudnn([9, 11, 0]);
    let path = venv.path().display().to_string();
    let more = ["--env", &path];
    drifts(|_| {}, &more, "lock-drift", "not what the lock says", ("gpulock.toml", None));
    let out = check(&adopted(), "human", &more).code(1).out;
    assert!(out.contains("nvidia-cudnn-cu12: 9.11.0"), "{out}");
    assert!(out.contains("is installed; the lock has 9.10.2.21"), "{out}");
}

/// Places are named from the root of the repository, wherever in it the command runs.
#[test]
fn places_are_those_of_the_repository() {
    let place = adopted();
    edit(&place, "Dockerfile", "USER 10001", "USER root");
    let at = line(&place, "Dockerfile", "USER root");
    for format in ["sarif", "junit", "github", "markdown"] {
        let mut command = place.command(&[&CHECK[..], &["--format", format]].concat());
        let ran = Ran::of(command.current_dir(place.path("docker")).output().unwrap()).code(1);
        let found = said(format, &ran.out);
        assert_eq!((found[0].file.as_deref(), found[0].line), (Some("Dockerfile"), Some(at)), "{format}: {found:?}");
    }
    // Of what is elsewhere, the name is the user's.
    fs::remove_dir(place.path(".git")).unwrap();
    let mut command = place.command(&[&CHECK[..], &["--format", "sarif"]].concat());
    let ran = Ran::of(command.current_dir(place.path("docker")).output().unwrap()).code(1);
    let file = said("sarif", &ran.out)[0].file.clone().unwrap();
    assert_eq!(file, "../Dockerfile");
}
