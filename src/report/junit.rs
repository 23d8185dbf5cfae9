//! JUnit's XML, as GitLab, Jenkins and others read it: a test case each for a finding and for a rule that could not run.

use std::fmt::Write;

use super::findings::{Results, details};

/// The suite of one run.
pub fn report(results: &Results<'_>) -> String {
    let failing = results.findings.iter().filter(|finding| results.is_failing(finding)).count();
    let (failures, errors) = if results.answered { (failing, 0) } else { (0, failing) };
    let nothing = results.nothing();
    let skipped = results.skipped.len() + usize::from(nothing.is_some());
    let tests = (results.findings.len() + skipped).max(1);
    let counts = format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\"");
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(out, "<testsuites name=\"gpulock\" {counts}>");
    let name = escaped(format!("{} {}", results.command, results.subject).trim_end());
    let _ = writeln!(out, "  <testsuite name=\"{}\" {counts} skipped=\"{}\">", name.trim_end(), skipped);
    if let Some(nothing) = nothing {
        let command = escaped(results.command);
        let _ = writeln!(out, "    <testcase name=\"nothing-inspected\" classname=\"{command}\">");
        let _ = writeln!(out, "      <skipped message=\"{}\"/>\n    </testcase>", escaped(nothing));
    } else if results.findings.is_empty() && results.skipped.is_empty() {
        let _ = writeln!(out, "    <testcase name=\"clean\" classname=\"{}\"/>", escaped(results.command));
    }
    for finding in &results.findings {
        let location = results.location(finding);
        let file = location.as_ref().map_or(results.subject, |location| &*location.file);
        let line = location.as_ref().and_then(|location| location.place).map(|(line, ..)| line);
        let line = line.map(|line| format!(" line=\"{line}\"")).unwrap_or_default();
        let (code, file) = (escaped(finding.code), escaped(file));
        let _ = writeln!(out, "    <testcase name=\"{code}\" classname=\"{file}\" file=\"{file}\"{line}>");
        let text = escaped(&details(finding).join("\n"));
        let message = escaped(&finding.message);
        let _ = match (results.is_failing(finding), results.answered) {
            (true, true) => {
                writeln!(out, "      <failure type=\"{code}\" message=\"{message}\">{text}</failure>")
            }
            (true, false) => writeln!(out, "      <error type=\"{code}\" message=\"{message}\">{text}</error>"),
            (false, _) => writeln!(out, "      <system-out>{message}\n{text}</system-out>"),
        };
        out.push_str("    </testcase>\n");
    }
    for (code, reason) in results.skipped {
        let (code, reason) = (escaped(code), escaped(reason));
        let _ = writeln!(out, "    <testcase name=\"{code}\" classname=\"{}\">", escaped(results.command));
        let _ = writeln!(out, "      <skipped message=\"{reason}\"/>\n    </testcase>");
    }
    out + "  </testsuite>\n</testsuites>\n"
}

/// Text of an element or of an attribute; what XML 1.0 cannot hold is replaced.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push('\t'),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
    out
}
