//! What an update changed.

use serde::Serialize;

use crate::refresh::Update;

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
    text
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
