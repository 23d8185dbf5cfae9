//! `gpulock.doctor/1`.

use serde::Serialize;

use super::Report;
use crate::check::machine::{Layer, State};
use crate::diag::Severity;
use crate::report::json::{DiagnosticJson, SkippedJson, SubjectJson, text};

/// The report for programs.
pub fn report(report: &Report<'_>) -> String {
    #[derive(Serialize)]
    struct Json<'r> {
        schema: &'static str,
        subject: SubjectJson<'r>,
        layers: Vec<LayerJson<'r>>,
        summary: SummaryJson,
        findings: Vec<DiagnosticJson<'r>>,
        skipped: Vec<SkippedJson<'r>>,
    }
    let findings = report.findings();
    let count = |severity: Severity| findings.iter().filter(|finding| finding.severity == severity).count();
    text(&Json {
        schema: "gpulock.doctor/1",
        subject: SubjectJson { kind: report.kind, path: &report.path },
        layers: Layer::ALL.into_iter().map(|layer| of_layer(report, layer)).collect(),
        summary: SummaryJson {
            error: count(Severity::Error),
            warning: count(Severity::Warning),
            note: count(Severity::Note),
            ok: report.count(State::Ok),
            problem: report.count(State::Problem),
            not_checked: report.count(State::NotChecked),
        },
        findings: findings.iter().map(|finding| DiagnosticJson::new(finding)).collect(),
        skipped: report.skipped.iter().map(|(code, reason)| SkippedJson { code, reason }).collect(),
    })
}

fn of_layer<'r>(report: &'r Report<'_>, layer: Layer) -> LayerJson<'r> {
    let lines = report.lines.iter().filter(|line| line.layer == layer).map(|line| LineJson {
        topic: line.topic,
        state: line.state.name(),
        text: &line.text,
        how: &line.how,
        findings: line.findings.iter().map(|finding| finding.code).collect(),
    });
    LayerJson { name: layer.name(), lines: lines.collect() }
}

#[derive(Serialize)]
struct LayerJson<'r> {
    name: &'static str,
    lines: Vec<LineJson<'r>>,
}

#[derive(Serialize)]
struct LineJson<'r> {
    topic: &'static str,
    state: &'static str,
    text: &'r str,
    how: &'r str,
    /// Codes of what is wrong.
    findings: Vec<&'static str>,
}

#[derive(Serialize)]
struct SummaryJson {
    error: usize,
    warning: usize,
    note: usize,
    ok: usize,
    problem: usize,
    #[serde(rename = "not-checked")]
    not_checked: usize,
}
