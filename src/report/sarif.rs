//! SARIF 2.1.0 (OASIS): results with places, for GitHub's code scanning and others that read it.
//!
//! Paths are relative to the root of the repository; without one, to the folder in which the command ran.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Value, json};

use super::findings::{Results, details};
use super::json::text;
use crate::check::{Page, pages};
use crate::diag::Diagnostic;

/// What is escaped in a path that becomes part of a URI (RFC 3986).
const PATH: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'<').add(b'>').add(b'?').add(b'[').add(b']').add(b'`');

/// The log of one run.
pub fn report(results: &Results<'_>) -> String {
    let pages = pages();
    let mut codes: Vec<&str> = results.findings.iter().map(|finding| finding.code).collect();
    codes.extend(results.skipped.iter().map(|(code, _)| *code));
    codes.sort_unstable();
    codes.dedup();
    let rules: Vec<Value> = codes.iter().map(|code| rule(code, pages.iter().find(|page| page.code == *code))).collect();
    let found: Vec<Value> = results.findings.iter().map(|finding| result(finding, &codes, results)).collect();
    let nothing = results.nothing().map(|nothing| {
        json!({ "descriptor": { "id": "nothing-inspected" }, "level": "warning", "message": { "text": nothing } })
    });
    let skipped = results.skipped.iter().map(|(code, reason)| {
        let said = format!("{code} could not run: {reason}");
        json!({ "descriptor": { "id": code }, "level": "note", "message": { "text": said } })
    });
    let notifications: Vec<Value> = nothing.into_iter().chain(skipped).collect();
    let invocation = json!({ "executionSuccessful": results.answered, "toolExecutionNotifications": notifications });
    let version = env!("CARGO_PKG_VERSION");
    let driver = json!({ "name": "gpulock", "version": version, "semanticVersion": version, "rules": rules });
    text(&json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": driver },
            "columnKind": "unicodeCodePoints",
            "invocations": [invocation],
            "results": found,
        }],
    }))
}

fn rule(code: &str, page: Option<&Page>) -> Value {
    match page {
        None => {
            let about = json!({ "text": code });
            json!({ "id": code, "shortDescription": about, "fullDescription": about, "help": about })
        }
        Some(page) => {
            let about = json!({ "text": page.summary() });
            json!({
                "id": code,
                "shortDescription": about,
                "fullDescription": about,
                "help": { "text": page.text, "markdown": page.text },
                "defaultConfiguration": { "level": page.level },
            })
        }
    }
}

fn result(finding: &Diagnostic, codes: &[&str], results: &Results<'_>) -> Value {
    let mut said = vec![finding.message.clone()];
    said.extend(details(finding));
    let location = results.location(finding).map(|location| {
        let (line, column, width) = location.place.unwrap_or((1, 1, 1));
        json!({ "physicalLocation": {
            "artifactLocation": { "uri": uri(&location.file) },
            "region": { "startLine": line, "startColumn": column, "endColumn": column + width },
        } })
    });
    json!({
        "ruleId": finding.code,
        "ruleIndex": codes.iter().position(|code| *code == finding.code),
        "level": finding.severity,
        "message": { "text": said.join("\n") },
        "locations": location.into_iter().collect::<Vec<Value>>(),
    })
}

/// A path as a URI, relative where the path is.
fn uri(path: &str) -> String {
    let scheme = if path.starts_with('/') { "file://" } else { "" };
    let path = path.strip_prefix("./").unwrap_or(path);
    // Before the first slash, a colon would be the end of a scheme.
    let encoded = utf8_percent_encode(path, PATH).to_string();
    let (first, rest) = encoded.split_at(encoded.find('/').unwrap_or(encoded.len()));
    format!("{scheme}{}{rest}", first.replace(':', "%3A"))
}
