//! What holds for all rules.

use std::collections::BTreeSet;

use gpulock::check::{message, messages, pages, rule};
use gpulock::manifest;

use super::venv::{Question, Venv};

#[test]
fn each_has_a_name_for_checks_and_a_page() {
    let mut names = BTreeSet::new();
    for rule in rule::ALL {
        assert!(names.insert(rule.code), "{} twice", rule.code);
        assert!(manifest::RULES.contains(&rule.code), "[checks] does not know {}", rule.code);
        assert_eq!(rule.page.lines().next(), Some(format!("# {}", rule.code).as_str()));
        assert!(rule.page.lines().count() > 5, "{} says too little", rule.code);
        assert_eq!(rule::find(rule.code).map(|found| found.code), Some(rule.code));
    }
    assert!(rule::find("no-such-rule").is_none());
}

#[test]
fn every_code_with_a_level_has_a_page() {
    for page in pages() {
        assert!(manifest::RULES.contains(&page.code), "[checks] does not know {}", page.code);
        assert_eq!(page.text.lines().next(), Some(format!("# {}", page.code).as_str()));
        assert!(page.text.lines().count() > 5 && page.summary().ends_with('.'), "{} says too little", page.code);
    }
}

/// The codes that the sources give to findings, errors and notes, wherever they are made.
fn codes() -> BTreeSet<String> {
    const MAKERS: [&str; 12] = [
        "error(",
        "warning(",
        "note(",
        "problem(",
        "refuse(",
        "add(",
        "none(",
        "failure(",
        "code:",
        "_CODE: &str =",
        "CODE: &str =",
        "OLD: &str =",
    ];
    // What makes a finding elsewhere than where its code stands.
    const WHOLE: [&str; 4] =
        ["registry/failure.rs", "registry/oci.rs", "inventory/image/mod.rs", "inventory/process/mod.rs"];
    // Names that stand in such places and are no codes.
    const NAMES: [&str; 2] = ["gpulock", "docker-content-digest"];
    let is_code = |text: &str| {
        let small = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(small) && !text.ends_with('-')
    };
    let mut codes = BTreeSet::new();
    let sources = walkdir::WalkDir::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")).into_iter().map(Result::unwrap);
    for source in sources.filter(|one| one.path().extension().is_some_and(|extension| extension == "rs")) {
        let text = std::fs::read_to_string(source.path()).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap();
        let parts: Vec<&str> = text.split('"').collect();
        let whole = WHOLE.iter().any(|name| source.path().ends_with(name));
        for pair in parts.windows(2).filter(|pair| is_code(pair[1])) {
            let before = pair[0].trim_end();
            let made = MAKERS.iter().any(|maker| before.ends_with(maker));
            if NAMES.contains(&pair[1]) {
                continue;
            }
            if made || whole && before.ends_with('(') && pair[1].contains('-') {
                codes.insert(pair[1].to_owned());
            }
        }
    }
    codes
}

#[test]
fn every_code_is_explained() {
    let codes = codes();
    assert!(codes.len() > 100 && codes.contains("probe") && codes.contains("hash-mismatch"), "{codes:?}");
    let pages = pages();
    let explained = |code: &str| pages.iter().any(|page| page.code == code) || message(code).is_some();
    let without: Vec<&String> = codes.iter().filter(|code| !explained(code)).collect();
    assert!(without.is_empty(), "these have no page for `gpulock explain`: {without:?}");
    for page in messages() {
        let code = page.lines().next().unwrap().strip_prefix("# ").unwrap();
        assert!(pages.iter().all(|page| page.code != code), "{code} has two pages");
        assert!(page.trim_end().ends_with('.') && page.lines().count() > 2, "{page}");
    }
}

#[test]
fn a_whole_environment_is_no_problem_for_any() {
    let question = Question { gpus: &["H100"], driver: Some("570.124.06"), ..Question::default() };
    let findings = Venv::with_torch().ask(&question);
    assert!(findings.findings.is_empty(), "{:#?}", findings.findings);
    let skipped: Vec<&str> = findings.skipped.iter().map(|(code, _)| *code).collect();
    assert_eq!(skipped, ["lock-drift"]);
}
