//! The report for people: the layers with a line for each thing, then each finding with its evidence and fix.

use std::fmt::Write;

use super::Report;
use crate::check::machine::{Layer, Line, State};
use crate::diag::Severity;
use crate::report::{Style, human};

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
    for finding in report.findings().into_iter().filter(|finding| finding.severity >= least) {
        let _ = write!(out, "\n{}", human::diagnostic(finding, style));
    }
    out.push('\n');
    if least == Severity::Note {
        for (code, reason) in report.skipped {
            let _ = writeln!(out, "skipped, {}: {code}", human::printable(reason));
        }
    }
    out + &verdict(report, style) + "\n"
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

fn verdict(report: &Report<'_>, style: Style) -> String {
    let count = |severity: Severity, word: &str| match report
        .findings()
        .iter()
        .filter(|one| one.severity == severity)
        .count()
    {
        0 => None,
        1 => Some(format!("1 {word}")),
        count => Some(format!("{count} {word}s")),
    };
    let words = [(Severity::Error, "error"), (Severity::Warning, "warning"), (Severity::Note, "note")];
    let counts: Vec<String> = words.into_iter().filter_map(|(severity, word)| count(severity, word)).collect();
    let unchecked = match report.count(State::NotChecked) {
        0 => String::new(),
        count => format!("; {count} not checked"),
    };
    let grave = report.findings().iter().any(|finding| finding.severity == Severity::Error);
    let counted = counts.join(", ");
    match (report.is_empty, counts.is_empty()) {
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
