//! The report for people: the layers with a line for each thing, then each finding with its evidence and fix.

use std::fmt::Write;

use super::Report;
use crate::check::machine::{Layer, Line, State};
use crate::diag::{Diagnostic, Severity};
use crate::report::{Style, findings, human};

/// The report, down to findings of severity `least`.
pub fn report(report: &Report<'_>, least: Severity, style: Style) -> String {
    let mut out = format!("{}\n", human::printable(&report.path));
    for layer in Layer::ALL {
        let lines: Vec<&Line> = report.lines.iter().filter(|line| line.layer == layer).collect();
        if lines.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\n{}", layer.name());
        for line in lines {
            let _ = writeln!(out, "  {}", one(line, style));
        }
    }
    let findings = report.findings();
    for finding in findings.iter().filter(|finding| finding.severity >= least) {
        let _ = write!(out, "\n{}", human::diagnostic(finding, style));
    }
    out.push('\n');
    if least == Severity::Note {
        for (code, reason) in report.skipped {
            let _ = writeln!(out, "skipped, {}: {code}", human::printable(reason));
        }
    }
    out + &verdict(report, &findings, style) + "\n"
}

/// `ok           kernel module: 570.124.06, open kernel modules [/proc/driver/nvidia/version]`
fn one(line: &Line, style: Style) -> String {
    let state = format!("{:<11}", line.state.name());
    let state = match line.state {
        State::Ok => style.good(&state),
        State::Problem => style.error(&state),
        State::NotChecked => state,
    };
    let text = human::printable(&format!("{}: {} [{}]", line.topic, line.text, line.how));
    format!("{state}  {}", text.replace('\n', " "))
}

fn verdict(report: &Report<'_>, findings: &[&Diagnostic], style: Style) -> String {
    let counted = findings::counted(findings.iter().copied());
    let unchecked = match report.count(State::NotChecked) {
        0 => String::new(),
        count => format!("; {count} not checked"),
    };
    let grave = findings.iter().any(|finding| finding.severity == Severity::Error);
    match (report.is_empty, counted.is_empty()) {
        (true, true) => NOTHING.to_owned(),
        (true, false) => format!("{counted}{unchecked}\n{NOTHING}"),
        (false, true) => style.good("no problem") + &unchecked,
        (false, false) if grave => style.error(&counted) + &unchecked,
        (false, false) => counted + &unchecked,
    }
}

/// What helps on a machine without a GPU.
const NOTHING: &str = "there is no NVIDIA GPU here: nothing to inspect. In a container, start it with --gpus all; from a \
                       machine with GPUs, bring what it says: gpulock doctor --capture FILE there, gpulock doctor FILE here";
