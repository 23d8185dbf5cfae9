//! Workflow commands of GitHub Actions: each finding becomes an annotation at its line.

use std::fmt::Write;

use super::findings::{Results, details};
use super::human::printable;
use crate::diag::Severity;

/// A command a line, and the verdict.
pub fn report(results: &Results<'_>) -> String {
    let mut out = String::new();
    for finding in &results.findings {
        let command = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "notice",
        };
        let mut properties = Vec::new();
        if let Some(location) = results.location(finding) {
            properties.push(format!("file={}", property(&location.file)));
            if let Some((line, column, width)) = location.place {
                properties.push(format!("line={line},col={column},endColumn={}", column + width));
            }
        }
        properties.push(format!("title={}", property(finding.code)));
        let text = std::iter::once(finding.message.clone()).chain(details(finding)).collect::<Vec<_>>().join("\n");
        let _ = writeln!(out, "::{command} {}::{}", properties.join(","), data(&printable(&text)));
    }
    if let Some(nothing) = results.nothing() {
        let _ = writeln!(out, "::warning title=nothing-inspected::{}", data(nothing));
    }
    // A line that begins otherwise is shown as it is; a path cannot make it a command.
    let subject = if results.subject.is_empty() { String::new() } else { format!(" {}", results.subject) };
    let said = format!("{}{subject}: {}", results.command, results.verdict());
    // The runner takes the old form of a command wherever in a line it stands.
    out + &printable(&said).replace('\n', " ").replace("##[", "## [") + "\n"
}

/// What follows `::`; escaped as the toolkit of Actions does it.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property.
fn property(text: &str) -> String {
    data(&printable(text)).replace(':', "%3A").replace(',', "%2C")
}
