//! Findings as SARIF, JUnit, workflow commands and Markdown: whatever they say, the form holds and nothing gets lost.

use gpulock::diag::{Diagnostic, Evidence, Failure, Severity, SourceText};
use gpulock::report::findings::Results;
use gpulock::report::{github, junit, markdown, sarif};
use proptest::prelude::*;
use roxmltree::Document;
use serde_json::Value;

/// The schema that OASIS published, as the npm package @microsoft/jest-sarif 1.0.0-beta.0 has it (sarif-2.1.0-rtm.5.json).
const SCHEMA: &str = include_str!("sarif-2.1.0.json");

/// The log, which has the form that the schema says.
pub fn valid_sarif(text: &str) -> Value {
    let log: Value = serde_json::from_str(text).unwrap();
    // Of the language of a run the schema closes a bracket that it did not open.
    let schema = SCHEMA.replace("[a-zA-Z]{2}]?$", "[a-zA-Z]{2}$");
    assert_ne!(schema, SCHEMA);
    let validator = jsonschema::draft4::new(&serde_json::from_str(&schema).unwrap()).unwrap();
    let wrong: Vec<String> =
        validator.iter_errors(&log).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(wrong.is_empty(), "{wrong:#?}\n{text}");
    log
}

fn results<'a>(findings: &'a [Diagnostic], skipped: &'a [(&'static str, String)]) -> Results<'a> {
    Results {
        command: "gpulock check",
        subject: "gpulock.toml",
        findings: findings.iter().collect(),
        skipped,
        anchors: vec!["gpulock.toml".into(), "gpulock.lock".into()],
        fails: Some(Severity::Error),
        answered: true,
        is_empty: false,
        repository: None,
    }
}

fn three() -> [Diagnostic; 3] {
    let place = SourceText::new("docker/a b.Dockerfile", "FROM a\nENV NCCL_TIMEOUT=1\n").span(Some(11..23));
    [
        Diagnostic::error("lock-stale", "the lock is old", Evidence::observed("gpulock.lock", "another manifest")),
        Diagnostic::warning("env-variable-unknown", "NCCL_TIMEOUT has no effect", place)
            .and(Evidence::fact("nobody reads it", "https://example.invalid"))
            .fix("remove it"),
        Diagnostic::note("matrix-old", "the matrix is old", Evidence::observed("snapshot", "100 days")),
    ]
}

#[test]
fn sarif_has_places_rules_and_what_could_not_run() {
    let (found, skipped) = (three(), [("lock-drift", "no lock given".to_owned())]);
    let log = valid_sarif(&sarif::report(&results(&found, &skipped)));
    let run = &log["runs"][0];
    let places: Vec<String> = run["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let place = &one["locations"][0]["physicalLocation"];
            let rule = &run["tool"]["driver"]["rules"][one["ruleIndex"].as_u64().unwrap() as usize];
            assert_eq!(rule["id"], one["ruleId"]);
            assert!(["shortDescription", "fullDescription", "help"].iter().all(|key| rule[key]["text"].is_string()));
            let (uri, region) = (place["artifactLocation"]["uri"].as_str().unwrap(), &place["region"]);
            let [line, start, end] = ["startLine", "startColumn", "endColumn"].map(|key| region[key].clone());
            format!("{} {} {uri}:{line}:{start}-{end}", one["level"].as_str().unwrap(), one["ruleId"].as_str().unwrap())
        })
        .collect();
    assert_eq!(
        places,
        [
            "error lock-stale gpulock.lock:1:1-2",
            "warning env-variable-unknown docker/a%20b.Dockerfile:2:5-17",
            "note matrix-old gpulock.toml:1:1-2",
        ]
    );
    assert_eq!(run["invocations"][0]["executionSuccessful"], true);
    let notification = &run["invocations"][0]["toolExecutionNotifications"][0];
    assert_eq!(notification["message"]["text"], "lock-drift could not run: no lock given");
    let failure = Failure::unanswerable(found[0].clone());
    let log = valid_sarif(&sarif::report(&Results::of_failure("gpulock", &failure)));
    assert_eq!(log["runs"][0]["invocations"][0]["executionSuccessful"], false);
    assert_eq!(log["runs"][0]["results"][0]["locations"], Value::Array(Vec::new()));
}

#[test]
fn junit_counts_what_fails() {
    let (found, skipped) = (three(), [("lock-drift", "no lock given".to_owned())]);
    let text = junit::report(&results(&found, &skipped));
    let document = Document::parse(&text).unwrap();
    let suite = document.descendants().find(|node| node.has_tag_name("testsuite")).unwrap();
    let counts = ["tests", "failures", "errors", "skipped"].map(|name| suite.attribute(name).unwrap());
    assert_eq!(counts, ["4", "1", "0", "1"]);
    let cases: Vec<(&str, Option<&str>, &str)> = suite
        .children()
        .filter(|node| node.has_tag_name("testcase"))
        .map(|case| {
            let child = case.children().find(|node| node.is_element()).unwrap();
            (case.attribute("name").unwrap(), case.attribute("line"), child.tag_name().name())
        })
        .collect();
    assert_eq!(
        cases,
        [
            ("lock-stale", None, "failure"),
            ("env-variable-unknown", Some("2"), "system-out"),
            ("matrix-old", None, "system-out"),
            ("lock-drift", None, "skipped"),
        ]
    );
    let clean = junit::report(&results(&[], &[]));
    assert!(clean.contains("tests=\"1\" failures=\"0\"") && clean.contains("<testcase name=\"clean\""));
    let failure = Failure::unanswerable(found[0].clone());
    let failed = junit::report(&Results::of_failure("gpulock", &failure));
    assert!(failed.contains("errors=\"1\"") && failed.contains("<error type=\"lock-stale\""), "{failed}");
}

#[test]
fn workflow_commands_have_their_place() {
    let found = three();
    assert_eq!(
        github::report(&results(&found, &[])),
        "::error file=gpulock.lock,title=lock-stale::the lock is old%0Aseen: gpulock.lock: another manifest\n\
         ::warning file=docker/a b.Dockerfile,line=2,col=5,endColumn=17,title=env-variable-unknown::NCCL_TIMEOUT has no \
         effect%0Aat docker/a b.Dockerfile:2:5%0Afact: nobody reads it (https://example.invalid)%0Ahelp: remove it\n\
         ::notice file=gpulock.toml,title=matrix-old::the matrix is old%0Aseen: snapshot: 100 days\n\
         gpulock check gpulock.toml: 1 error, 1 warning, 1 note\n"
    );
}

#[test]
fn markdown_is_a_list() {
    let (found, skipped) = (three(), [("lock-drift", "no lock given".to_owned())]);
    assert_eq!(
        markdown::report(&results(&found, &skipped)),
        "### gpulock check: 1 error, 1 warning, 1 note\n\n`gpulock.toml`\n\n\
         - **error** `lock-stale` in `gpulock.lock`: the lock is old\n  - seen: gpulock.lock: another manifest\n\n\
         - **warning** `env-variable-unknown` in `docker/a b.Dockerfile:2`: NCCL\\_TIMEOUT has no effect\n  \
         - fact: nobody reads it (https://example.invalid)\n  - help: remove it\n\n\
         - **note** `matrix-old` in `gpulock.toml`: the matrix is old\n  - seen: snapshot: 100 days\n\n\
         Could not run:\n\n- `lock-drift`: no lock given\n"
    );
}

/// Names of files that mean something to a runner, and the old form of commands, which it takes anywhere in a line.
#[test]
fn hostile_names_are_no_commands() {
    for name in
        ["a%0A::error::x", "::error file=x::y", "##[error]x", "a\n##[add-mask]x", "x]]>", "a,line=9::x", "%253A"]
    {
        let place = SourceText::new(name, "one\n").span(None);
        let found = [Diagnostic::error("lock-stale", name, place)];
        let results = Results { subject: name, ..results(&found, &[]) };
        let commands = github::report(&results);
        let lines: Vec<&str> = commands.lines().collect();
        assert_eq!(lines.len(), 2, "{commands}");
        assert!(lines[0].starts_with("::error file=") && lines[0].matches("::").count() >= 2, "{commands}");
        let (properties, _) = lines[0].strip_prefix("::error ").unwrap().split_once("::").unwrap();
        assert_eq!(properties.split(',').count(), 5, "{commands}");
        assert!(lines[1].starts_with("gpulock check ") && !lines[1].contains("##["), "{commands}");
        let document = junit::report(&results);
        let document = Document::parse(&document).unwrap();
        let failure = document.descendants().find(|node| node.has_tag_name("failure")).unwrap();
        assert_eq!(failure.attribute("message").map(|text| text.replace('\n', " ")), Some(name.replace('\n', " ")));
        valid_sarif(&sarif::report(&results));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// No text of a file or an index changes the form of an output.
    #[test]
    fn no_text_changes_the_form(message in ODD, file in ODD, fact in ODD) {
        let place = SourceText::new(&file, "one\ntwo").span(Some(4..7));
        let found = [Diagnostic::error("lock-stale", message, place).and(Evidence::observed("x", fact)).fix("y")];
        let results = results(&found, &[]);
        let log = valid_sarif(&sarif::report(&results));
        prop_assert!(log["runs"][0]["results"][0]["message"]["text"].as_str().unwrap().starts_with(&found[0].message));
        let text = junit::report(&results);
        let document = Document::parse(&text).unwrap();
        prop_assert_eq!(document.descendants().filter(|node| node.has_tag_name("failure")).count(), 1);
        let commands = github::report(&results);
        prop_assert_eq!(commands.lines().count(), 2);
        let (properties, _) = commands.strip_prefix("::error ").unwrap().split_once("::").unwrap();
        prop_assert_eq!(properties.split(',').count(), 5);
        let list = markdown::report(&results);
        prop_assert!(list.lines().all(|line| ["#", "`", "- **error** ", "  - ", ""].iter().any(|start| line.starts_with(start))));
        prop_assert_eq!(list.lines().count(), 7, "{}", list);
    }
}

/// Text with what means something to one of the formats.
const ODD: &str = "([a-z ]|[\\n\\r\\t:,=%@#<>&\"'`|*_!\\\\\\[\\]{}$/-]|::|\\PC|\u{1}|]]>){0,20}";
