//! Findings as Markdown, for the comment on a pull request or the summary of a job.

use std::fmt::Write;

use super::findings::{Results, details};
use super::human::printable;

/// A heading and a list.
pub fn report(results: &Results<'_>) -> String {
    let mut out = format!("### {}: {}\n", words(results.command), results.verdict());
    if !results.subject.is_empty() {
        let _ = writeln!(out, "\n{}", code(results.subject));
    }
    for finding in &results.findings {
        let place = results.location(finding).map(|location| match location.place {
            Some((line, ..)) => format!("{}:{line}", location.file),
            None => location.file.into_owned(),
        });
        let place = place.map(|place| format!(" in {}", code(&place))).unwrap_or_default();
        let severity = match finding.severity {
            crate::diag::Severity::Error => "error",
            crate::diag::Severity::Warning => "warning",
            crate::diag::Severity::Note => "note",
        };
        let _ = writeln!(out, "\n- **{severity}** {}{place}: {}", code(finding.code), words(&finding.message));
        for line in details(finding).iter().filter(|line| !line.starts_with("at ")) {
            let _ = writeln!(out, "  - {}", words(line));
        }
    }
    if !results.skipped.is_empty() {
        out.push_str("\nCould not run:\n\n");
    }
    for (rule, reason) in results.skipped {
        let _ = writeln!(out, "- {}: {}", code(rule), words(reason));
    }
    out
}

/// Text in a line: nothing in it is markup, a link or a mention.
pub fn words(text: &str) -> String {
    let mut out = String::new();
    for c in printable(text).chars() {
        match c {
            '\n' | '\t' => out.push(' '),
            '@' => out.push_str("&#64;"),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '>' | '|' | '#' | '~' | '!' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

/// Text as code in a line; a backtick in it becomes an apostrophe.
pub fn code(text: &str) -> String {
    format!("`{}`", printable(text).replace('`', "'").replace(['\n', '\t'], " ").replace('|', "\\|"))
}
