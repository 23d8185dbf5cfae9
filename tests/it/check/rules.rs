//! What holds for all rules.

use std::collections::BTreeSet;

use gpulock::check::{pages, rule};
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

#[test]
fn a_whole_environment_is_no_problem_for_any() {
    let question = Question { gpus: &["H100"], driver: Some("570.124.06"), ..Question::default() };
    let findings = Venv::with_torch().ask(&question);
    assert!(findings.findings.is_empty(), "{:#?}", findings.findings);
    let skipped: Vec<&str> = findings.skipped.iter().map(|(code, _)| *code).collect();
    assert_eq!(skipped, ["lock-drift"]);
}
