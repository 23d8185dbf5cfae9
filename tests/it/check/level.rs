//! `[checks]`: findings with the level that the manifest wants.

use std::collections::BTreeMap;

use gpulock::check::Findings;
use gpulock::diag::Severity;
use gpulock::manifest::{Check, Level};

use super::venv::{NCCL, Question, Venv, nccl, the_finding, words};

const RULE: &str = "nccl-mismatch";

fn with_check(venv: &Venv, rule: &str, level: Level, reason: Option<&str>) -> Findings {
    let check = Check { level, reason: reason.map(str::to_owned) };
    venv.ask(&Question { checks: BTreeMap::from([(rule.to_owned(), check)]), ..Question::default() })
}

/// An environment with one error.
fn broken() -> Venv {
    let venv = Venv::with_torch();
    venv.put(NCCL, &nccl(22005));
    venv
}

#[test]
fn lowered_findings_say_why() {
    for (level, severity) in [(Level::Warning, Severity::Warning), (Level::Note, Severity::Note)] {
        let findings = with_check(&broken(), RULE, level, Some("one GPU alone, without NCCL"));
        let finding = the_finding(&findings, RULE);
        assert_eq!(finding.severity, severity);
        assert!(words(finding).contains("lowered for this reason: one GPU alone, without NCCL"), "{finding:#?}");
        assert!(findings.findings.iter().all(|one| one.severity <= severity && one.code != "exception-unused"));
    }
}

#[test]
fn rules_can_be_off() {
    let findings = with_check(&broken(), RULE, Level::Off, Some("known"));
    assert!(findings.findings.iter().all(|one| one.code != RULE && one.code != "exception-unused"), "{findings:#?}");
    // Only that rule.
    let findings = with_check(&broken(), "undefined-symbol", Level::Off, Some("known"));
    assert_eq!(the_finding(&findings, RULE).severity, Severity::Error);
}

#[test]
fn findings_can_be_raised() {
    let venv = Venv::with_torch();
    let extension = super::venv::module("_C").needed(&["libcudart.so.11.0"]).rpath("$ORIGIN");
    let runtime = super::venv::cudart("libcudart.so.11.0", 11080);
    venv.install("ext", "1.0", &["torch"], &[("ext/_C.abi3.so", extension), ("ext/libcudart.so.11.0", runtime)]);
    let rule = "cuda-major-mixed";
    assert_eq!(the_finding(&venv.check(), rule).severity, Severity::Warning);
    let findings = with_check(&venv, rule, Level::Error, Some("it crashed once"));
    let finding = the_finding(&findings, rule);
    assert_eq!(finding.severity, Severity::Error);
    assert!(words(finding).contains("raised for this reason: it crashed once"), "{finding:#?}");
    // The gravest comes first.
    assert_eq!(findings.findings[0].code, rule);
}

/// A remark is no judgement: it is not made one by a level, and can be turned off.
#[test]
fn notes_stay_notes() {
    let venv = Venv::with_torch();
    venv.put(NCCL, &nccl(22703).defines(&["ncclGroupSimulateEnd", "patched"]));
    let rule = "library-modified";
    let findings = with_check(&venv, rule, Level::Error, None);
    assert_eq!(the_finding(&findings, rule).severity, Severity::Note);
    let findings = with_check(&venv, rule, Level::Off, Some("patched here"));
    assert!(findings.findings.iter().all(|one| one.code != rule), "{findings:#?}");
}

#[test]
fn an_exception_that_meets_nothing_is_said() {
    let findings = with_check(&Venv::with_torch(), RULE, Level::Warning, Some("old NCCL on the cluster"));
    let finding = the_finding(&findings, "exception-unused");
    assert_eq!(finding.severity, Severity::Note);
    assert!(words(finding).contains("`nccl-mismatch`") && words(finding).contains("old NCCL on the cluster"));
    // That a rule is as grave as it can be is no exception.
    assert!(with_check(&Venv::with_torch(), RULE, Level::Error, None).findings.is_empty());
}
