//! The action, its steps run as a runner would.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

use super::workshop::{Workshop, said};
use crate::run::{self, python, stdout, succeed, timed};

/// The action builds the program, and its steps find what drifted.
#[test]
fn network_action_builds() {
    if !run::network() {
        return;
    }
    let workshop = Workshop::open();
    workshop.edit("requirements.txt", "torch==2.8.0", "torch==2.7.0");
    let action = Action::read(&workshop);
    let built = timed(|| action.run(&workshop, "Build gpulock", &[]));
    println!("the action builds gpulock: {:.1?}", built.1);
    assert!(built.0.status.success(), "{}", said(&built.0));
    let ran = action.run(&workshop, "gpulock check", &[("format", "sarif"), ("output", "gpulock.sarif")]);
    assert_eq!(ran.status.code(), Some(1), "{}", said(&ran));
    assert_eq!(action.outputs(&workshop), "exit-code=1\nreport=gpulock.sarif\n");
    let sarif = fs::read_to_string(workshop.at("repo/gpulock.sarif")).unwrap();
    assert!(sarif.contains("\"uri\": \"requirements.txt\""), "{sarif}");
    let summary = fs::read_to_string(workshop.at("summary")).unwrap();
    assert!(summary.starts_with("### gpulock check: 1 error\n"), "{summary}");
}

/// The action has the form that GitHub's schema says, and no input becomes part of a script.
#[test]
fn network_action_runs() {
    if !run::network() {
        return;
    }
    let workshop = Workshop::open();
    let mut check = Command::new(workshop.at("tools/bin/check-jsonschema"));
    succeed(check.args(["--builtin-schema", "vendor.github-actions"]).arg(workshop.at("source/action.yml")));
    let action = Action::read(&workshop);
    for step in action.steps() {
        let script = step["run"].as_str().unwrap_or_default();
        assert!(!script.contains("${{"), "{script}");
    }
    assert!(action.run(&workshop, "Name what is built", &[]).status.success());
    let named = action.outputs(&workshop);
    assert!(named.strip_prefix("hash=").is_some_and(|hash| hash.trim_end().len() == 32), "{named}");
    // Another source is another program.
    fs::write(workshop.at("source/src/lib.rs"), "").unwrap();
    assert!(action.run(&workshop, "Name what is built", &[]).status.success());
    assert_ne!(action.outputs(&workshop), named);

    // The one that is tested stands for the one that the action builds.
    fs::create_dir_all(workshop.at("temp/gpulock/bin")).unwrap();
    std::os::unix::fs::symlink(run::program(), workshop.at("temp/gpulock/bin/gpulock")).unwrap();
    let clean = action.run(&workshop, "gpulock check", &[]);
    assert!(clean.status.success() && said(&clean).contains("gpulock check gpulock.toml: clean"), "{}", said(&clean));
    assert_eq!(action.outputs(&workshop), "exit-code=0\n");
    let hostile = "a'; touch pwned; '$(touch pwned)`touch pwned`";
    for input in ["env", "target", "dockerfiles", "fail-on", "format", "output", "working-directory"] {
        let ran = action.run(&workshop, "gpulock check", &[(input, hostile)]);
        assert_eq!(ran.status.success(), ["target", "output"].contains(&input), "{input}: {}", said(&ran));
    }
    let pwned = run::files(&workshop.at("repo")).into_iter().any(|path| path.ends_with("pwned"));
    assert!(!pwned);
    // A folder below, files of other names, and places from the root of the workspace.
    fs::create_dir(workshop.at("repo/docker")).unwrap();
    let base = "FROM nvidia/cuda:11.8.0-runtime-ubuntu22.04\nRUN pip install torch==2.8.0\n";
    workshop.put("docker/a b", base);
    let inputs = [("working-directory", "docker"), ("dockerfiles", "a b\n"), ("fail-on", "warning")];
    let ran = action.run(&workshop, "gpulock check", &inputs);
    assert_eq!(ran.status.code(), Some(1), "{}", said(&ran));
    assert!(said(&ran).contains("file=docker/a b,line=1,"), "{}", said(&ran));
}

/// A composite action, as JSON.
struct Action(Value);

impl Action {
    fn read(workshop: &Workshop) -> Self {
        let code = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
        let mut python = python(&workshop.at("tools/bin/python"));
        let text = stdout(python.args(["-c", code]).arg(workshop.at("source/action.yml")));
        Self(serde_json::from_str(&text).unwrap())
    }

    fn steps(&self) -> impl Iterator<Item = &Value> {
        self.0["runs"]["steps"].as_array().unwrap().iter()
    }

    /// Runs a step's script as a runner does: its variables filled in, and files for what it gives.
    fn run(&self, workshop: &Workshop, name: &str, inputs: &[(&str, &str)]) -> Output {
        let step = self.steps().find(|step| step["name"] == name).unwrap();
        let mut values: BTreeMap<String, String> = BTreeMap::new();
        for (input, about) in self.0["inputs"].as_object().unwrap() {
            let given = inputs.iter().find(|(name, _)| name == input).map(|(_, value)| *value);
            let value = given.unwrap_or_else(|| about["default"].as_str().unwrap());
            values.insert(format!("${{{{ inputs.{input} }}}}"), value.to_owned());
        }
        values.insert("${{ github.action_path }}".into(), workshop.at("source").display().to_string());
        values.insert("${{ runner.temp }}".into(), workshop.at("temp").display().to_string());
        let mut bash = Command::new("bash");
        bash.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"].as_str().unwrap()]);
        workshop.surroundings(&mut bash);
        for (variable, value) in step["env"].as_object().unwrap() {
            let value = value.as_str().unwrap();
            let known = values.iter().find(|(expression, _)| value.starts_with(expression.as_str()));
            let (expression, filled) = known.unwrap_or_else(|| panic!("{value} is not known"));
            bash.env(variable, value.replacen(expression, filled, 1));
        }
        for (variable, file) in
            [("GITHUB_OUTPUT", "output"), ("GITHUB_PATH", "path"), ("GITHUB_STEP_SUMMARY", "summary")]
        {
            fs::write(workshop.at(file), "").unwrap();
            bash.env(variable, workshop.at(file));
        }
        bash.env("GITHUB_WORKSPACE", workshop.at("repo")).current_dir(workshop.at("repo")).output().unwrap()
    }

    /// What the step that ran last gave.
    fn outputs(&self, workshop: &Workshop) -> String {
        fs::read_to_string(workshop.at("output")).unwrap()
    }
}
