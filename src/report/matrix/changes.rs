//! What an update changed, and where an audit found differences.

use serde::Serialize;

use crate::refresh::{Audit, Update};
use crate::report::human::printable;

/// For people; ends with a line feed.
pub fn updated(update: &Update, directory: &str, dry_run: bool) -> String {
    let mut text = String::new();
    for change in &update.changes {
        text += &format!("{}: {}\n", change.file, change.what);
    }
    if update.changes.is_empty() {
        text += "Nothing new on the index.\n";
    }
    let count = update.files.len();
    let files = if count == 1 { "1 file".into() } else { format!("{count} files") };
    text += &match (count, dry_run) {
        (0, _) => "No file changed.\n".into(),
        (_, true) => format!("{files} would be written to {directory}.\n"),
        (_, false) => format!("{files} written to {directory}.\n"),
    };
    printable(&text)
}

/// `gpulock.matrix-update/1`; ends with a line feed.
pub fn updated_json(update: &Update, directory: &str, dry_run: bool) -> String {
    #[derive(Serialize)]
    struct Json<'u> {
        schema: &'static str,
        directory: &'u str,
        dry_run: bool,
        files: Vec<&'u str>,
        changes: Vec<ChangeJson<'u>>,
    }
    #[derive(Serialize)]
    struct ChangeJson<'u> {
        file: &'u str,
        what: &'u str,
    }
    let json = Json {
        schema: "gpulock.matrix-update/1",
        directory,
        dry_run,
        files: update.files.keys().map(String::as_str).collect(),
        changes: update.changes.iter().map(|c| ChangeJson { file: &c.file, what: &c.what }).collect(),
    };
    // Strings and lists always have a form in JSON.
    serde_json::to_string_pretty(&json).unwrap_or_default() + "\n"
}

/// For people; ends with a line feed.
pub fn audited(audit: &Audit) -> String {
    let mut text = String::new();
    for difference in &audit.differences {
        text += &format!("{}: {}\n", difference.file, difference.what);
        text += &format!("  matrix: {}\n  index:  {}\n", difference.matrix, difference.index);
    }
    for line in &audit.unchecked {
        text += &format!("not checked: {line}\n");
    }
    let compared: Vec<String> = audit.compared.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    text += &format!("compared: {}\n", compared.join(", "));
    text += &match audit.differences.len() {
        0 => "No difference in what could be checked.\n".into(),
        1 => "1 difference.\n".into(),
        count => format!("{count} differences.\n"),
    };
    printable(&text)
}

/// `gpulock.matrix-audit/1`; ends with a line feed.
pub fn audited_json(audit: &Audit) -> String {
    #[derive(Serialize)]
    struct Json<'a> {
        schema: &'static str,
        differences: Vec<DifferenceJson<'a>>,
        compared: Vec<ComparedJson>,
        not_checked: &'a [String],
    }
    #[derive(Serialize)]
    struct DifferenceJson<'a> {
        file: &'a str,
        what: &'a str,
        matrix: &'a str,
        index: &'a str,
    }
    #[derive(Serialize)]
    struct ComparedJson {
        kind: &'static str,
        count: usize,
    }
    let json = Json {
        schema: "gpulock.matrix-audit/1",
        differences: audit
            .differences
            .iter()
            .map(|d| DifferenceJson { file: &d.file, what: &d.what, matrix: &d.matrix, index: &d.index })
            .collect(),
        compared: audit.compared.iter().map(|(kind, count)| ComparedJson { kind, count: *count }).collect(),
        not_checked: &audit.unchecked,
    };
    serde_json::to_string_pretty(&json).unwrap_or_default() + "\n"
}
