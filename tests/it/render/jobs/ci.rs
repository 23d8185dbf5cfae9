//! Workflows of GitHub Actions and jobs of GitLab CI, parsed as YAML.

use gpulock::lock::Lock;
use gpulock::render::Options;
use proptest::prelude::*;
use serde_json::Value;

use super::{format, lock, odd, odd_lines, run, with};
use crate::render::values::yaml;

fn text(name: &str, lock: &Lock) -> String {
    with(format(name), lock, Options::default()).unwrap()
}

fn parsed(name: &str, lock: &Lock) -> Value {
    yaml(&text(name, lock))
}

/// A string as GitHub gives it to a job: expressions, which are strings here, are replaced.
fn evaluated(text: &str) -> String {
    let mut value = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${{") {
        let (expression, after) = after.trim_start().strip_prefix('\'').unwrap().split_once("' }}").unwrap();
        value.extend([before, expression]);
        rest = after;
    }
    value + rest
}

/// The steps of the workflow, by what they are called or use.
fn steps(workflow: &Value) -> Vec<String> {
    let steps = workflow["jobs"]["gpulock"]["steps"].as_array().unwrap().iter();
    steps.map(|step| step.get("name").unwrap_or(&step["uses"]).as_str().unwrap().to_owned()).collect()
}

/// The commands of a job of GitLab, the program being one that prints its arguments, each in a line of its own.
fn commands(job: &Value) -> Vec<Vec<String>> {
    let scripts = job["script"].as_array().unwrap().iter().map(|line| line.as_str().unwrap());
    const PROGRAMS: [&str; 4] = ["\"$CI_PROJECT_DIR\"/.gpulock/bin/gpulock ", ".gpulock/bin/gpulock ", "uv ", "cd "];
    let program = |line: &str| PROGRAMS.into_iter().find(|program| line.starts_with(program));
    let own = scripts.filter_map(|line| Some((line, program(line)?)));
    own.map(|(line, program)| {
        let line = line.replacen(program, "printf '%s\\0' ", 1);
        run("bash", &["-s"], &line).split_terminator('\0').map(str::to_owned).collect()
    })
    .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn no_value_changes_the_structure(name in odd_lines(), file in odd(), image in any::<bool>()) {
        let mut plain = lock();
        if !image {
            plain.targets[0].image = None;
        }
        let mut lock = plain.clone();
        lock.targets[0].name = name.clone();
        let place_in = format!("jobs/{file}");
        let options = Options { folder: Some(place_in.clone()), ..Options::default() };
        let beside = gpulock::render::Beside { lock_name: &file, options, ..Default::default() };
        let of = |name: &str| {
            let format = gpulock::render::Format::File(format(name));
            let text = gpulock::render::render(format, &lock, None, &beside).unwrap();
            yaml(&text)
        };
        let workflow = of("github");
        let expected = parsed("github", &plain);
        prop_assert_eq!(steps(&workflow), steps(&expected));
        prop_assert_eq!(&workflow["jobs"]["gpulock"]["steps"], &expected["jobs"]["gpulock"]["steps"]);
        let folder = &workflow["jobs"]["gpulock"]["defaults"]["run"]["working-directory"];
        prop_assert_eq!(evaluated(folder.as_str().unwrap()), place_in.clone());
        let env = &workflow["jobs"]["gpulock"]["env"];
        prop_assert_eq!(evaluated(env["TARGET"].as_str().unwrap()), name.clone());
        prop_assert_eq!(evaluated(env["LOCK"].as_str().unwrap()), file.clone());
        let jobs = of("gitlab");
        let place = ["--lock".to_owned(), file.clone(), "--target".into(), name.clone()];
        let own = commands(&jobs["gpulock:verify"]);
        prop_assert_eq!(own.len(), 3);
        prop_assert_eq!(&own[0], std::slice::from_ref(&place_in));
        prop_assert_eq!(&own[1][2..6], &place);
        prop_assert_eq!(&own[2][2..], &place);
        let own = commands(&jobs["gpulock:check"]);
        prop_assert_eq!(own.len(), 2);
        prop_assert_eq!(&own[0], &[place_in]);
        prop_assert_eq!(&own[1][..3], &["check".to_owned(), "--lock".into(), file]);
    }
}

#[test]
fn github_installs_with_the_python_of_the_lock() {
    let mut lock = lock();
    lock.targets[0].python = "3.13t".parse().unwrap();
    lock.targets[0].platform = "linux-aarch64".parse().unwrap();
    let workflow = parsed("github", &lock);
    let check = "Check that lock and generated files belong together";
    assert_eq!(
        steps(&workflow),
        ["actions/checkout@v6", "Install gpulock", check, "actions/setup-python@v6", "Build", "Verify"]
    );
    assert_eq!(workflow["permissions"]["contents"], "read");
    assert_eq!(workflow["permissions"].as_object().unwrap().len(), 1);
    let job = &workflow["jobs"]["gpulock"];
    assert_eq!(job["steps"][2]["run"], "gpulock check --lock \"$LOCK\" --format github");
    assert_eq!(job["env"]["LOCK"], "gpulock.lock");
    assert!(job.get("defaults").is_none());
    assert_eq!(job["runs-on"], "ubuntu-24.04-arm");
    assert_eq!(job["steps"][3]["with"]["python-version"], "3.13t");
    for step in job["steps"].as_array().unwrap() {
        if let Some(script) = step.get("run") {
            run("bash", &["-n"], script.as_str().unwrap());
            // Values come by variables: nothing is put into a script.
            assert!(!script.as_str().unwrap().contains("${{"), "{script:?}");
        }
    }
}

#[test]
fn gitlab_installs_with_the_python_of_the_lock() {
    let mut lock = lock();
    let image = |lock: &Lock| parsed("gitlab", lock)["gpulock:verify"]["image"].as_str().unwrap().to_owned();
    let digest = format!("sha256:{}", "7".repeat(64));
    lock.targets[0].image.as_mut().unwrap().base.as_mut().unwrap().digest = Some(digest.clone());
    assert_eq!(image(&lock), format!("python:3.11-slim-bookworm@{digest}"));
    lock.targets[0].image = None;
    assert_eq!(image(&lock), "python:3.11-slim");
    lock.targets[0].python = "3.13t".parse().unwrap();
    lock.targets[0].platform = "linux-aarch64".parse().unwrap();
    assert_eq!(image(&lock), "python:3.13-slim");
    let job = &parsed("gitlab", &lock)["gpulock:verify"];
    assert_eq!(job["tags"][0], "arm64");
    // The program is built where it runs.
    assert_eq!(parsed("gitlab", &lock)["gpulock:check"]["tags"][0], "arm64");
    let plain = parsed("gitlab", &super::lock());
    assert!(plain["gpulock:check"].get("tags").is_none() && plain["gpulock:verify"].get("tags").is_none());
    assert_eq!(
        commands(&plain["gpulock:check"]),
        [["check", "--lock", "gpulock.lock", "--format", "junit", "-o", "gpulock.xml"].map(str::to_owned)]
    );
    assert_eq!(commands(job)[0], ["venv", "--seed", "--python", "3.13t", ".venv"]);
    for job in ["gpulock:check", "gpulock:verify"] {
        for line in parsed("gitlab", &lock)[job]["script"].as_array().unwrap() {
            run("bash", &["-n"], line.as_str().unwrap());
        }
    }
}
