//! Values in data: JSON, YAML, Python and dotenv.

use minijinja::Error;
use serde::Serialize;

use super::{is_unprintable, refused};

/// A string of JSON that is one of YAML 1.1 and 1.2 (double quoted) and of Python too. What YAML calls not printable is
/// escaped; characters above U+FFFF stay as they are, since YAML does not join the two halves that JSON escapes them by.
pub(super) fn json(text: &str) -> String {
    one_line_json(&text)
}

/// A value as JSON in one line, in characters that no reader takes for the end of it.
pub(in crate::render) fn one_line_json(value: &impl Serialize) -> String {
    let mut escaped = String::new();
    // Names and strings alone: there is nothing that JSON could not hold.
    for c in serde_json::to_string(value).unwrap_or_default().chars() {
        match is_unprintable(c) {
            true => escaped.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => escaped.push(c),
        }
    }
    escaped
}

/// Why a value cannot stand in a dotenv file. Its dialects differ: `docker run --env-file` takes a line as it is, Compose and
/// python-dotenv take quotes off, replace variables and know comments. What they all read alike is a value without quotes.
pub(in crate::render) fn dotenv_refuses(_: &str, text: &str) -> Option<&'static str> {
    let blank = |c: char| c.is_whitespace();
    if text.chars().any(char::is_control) {
        return Some("it has a line feed or another control character, and a line is a variable");
    }
    if text.starts_with(blank) || text.ends_with(blank) {
        return Some("it begins or ends with a blank, which some readers take off");
    }
    if text.starts_with(['"', '\'']) {
        return Some("it begins with a quote, which some readers take off");
    }
    if text.contains('$') {
        return Some("it has a `$`, after which some readers look for a variable");
    }
    if text.contains('#') {
        return Some("it has a `#`, where some readers begin a comment");
    }
    None
}

/// A value in a dotenv file.
pub(super) fn dotenv(text: &str) -> Result<String, Error> {
    match dotenv_refuses("", text) {
        None => Ok(text.to_owned()),
        Some(why) => Err(refused(format!("{text:?} cannot stand in a dotenv file: {why}"))),
    }
}

/// Why conda cannot set a variable: as an environment is activated it writes the value into a line of the user's shell, in
/// quotes of that shell and without any escape; many releases write its name in capitals.
///
/// Source: https://github.com/conda/conda, conda/activate.py (`export_var_tmpl` of each shell; `get_export_unset_vars`).
pub(in crate::render) fn conda_refuses(name: &str, text: &str) -> Option<&'static str> {
    if name.contains(|c: char| c.is_ascii_lowercase()) {
        return Some("many releases of conda set it by its name in capitals, and not by this one");
    }
    let taken = |c: char| c.is_control() || ['\'', '"', '$', '`', '\\'].contains(&c);
    text.contains(taken)
        .then_some("conda hands it to a shell as it is, and it has a sign that some shell takes for its own")
}

/// Whether the tools of development containers replace a part of `text`: they know no escape.
///
/// Source: https://github.com/devcontainers/cli, src/spec-common/variableSubstitution.ts.
pub(in crate::render) fn substituted(_: &str, text: &str) -> Option<&'static str> {
    const NAMES: [&str; 9] = [
        "env",
        "localEnv",
        "localHomeFolder",
        "localWorkspaceFolder",
        "localWorkspaceFolderBasename",
        "containerWorkspaceFolder",
        "containerWorkspaceFolderBasename",
        "containerEnv",
        "devcontainerId",
    ];
    // As the regular expression there: from `${` to the next `}`, in one line.
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("${") {
        let end = after.find(['}', '\n', '\r', '\u{2028}', '\u{2029}']).filter(|end| after[*end..].starts_with('}'));
        if let Some(end) = end {
            let name = after[..end].split(':').next().unwrap_or_default();
            if NAMES.contains(&name) {
                return Some("it has a `${..}` that development containers replace, and they know no escape");
            }
            rest = &after[end + 1..];
        } else {
            rest = after;
        }
    }
    None
}
