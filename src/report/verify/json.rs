//! `gpulock.report/1`.

use serde::Serialize;

use super::Report;
use super::run::{self, RunJson};
use crate::diag::Severity;
use crate::report::json::{DiagnosticJson, SkippedJson, SubjectJson, text};

/// The report for programs.
pub fn report(report: &Report<'_>) -> String {
    #[derive(Serialize)]
    struct Json<'r> {
        schema: &'static str,
        subject: SubjectJson<'r>,
        #[serde(skip_serializing_if = "Option::is_none")]
        target: Option<TargetJson<'r>>,
        stack: &'r [String],
        summary: SummaryJson,
        findings: Vec<DiagnosticJson<'r>>,
        skipped: Vec<SkippedJson<'r>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        run: Option<RunJson<'r>>,
    }
    let target = report.target.as_ref().map(|target| TargetJson {
        name: target.name.as_deref(),
        gpus: target.gpus.iter().map(|(_, sm)| sm.as_str()).collect(),
        driver: target.driver.as_deref(),
    });
    let skipped = report.findings.skipped.iter().map(|(code, reason)| SkippedJson { code, reason }).collect();
    text(&Json {
        schema: "gpulock.report/1",
        subject: SubjectJson { kind: report.kind, path: &report.path },
        target,
        stack: &report.stack,
        summary: SummaryJson {
            error: report.count(Severity::Error),
            warning: report.count(Severity::Warning),
            note: report.count(Severity::Note),
            skipped: report.findings.skipped.len(),
            files: report.files,
            libraries: report.libraries,
            bytes: report.bytes,
            empty: report.is_empty,
        },
        findings: report.findings.findings.iter().map(DiagnosticJson::new).collect(),
        skipped,
        run: report.run.map(run::json),
    })
}

#[derive(Serialize)]
struct TargetJson<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'r str>,
    gpus: Vec<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    driver: Option<&'r str>,
}

#[derive(Serialize)]
struct SummaryJson {
    error: usize,
    warning: usize,
    note: usize,
    skipped: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<usize>,
    libraries: usize,
    bytes: u64,
    /// Only where it is so: reports of something have the form that they always had.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    empty: bool,
}
