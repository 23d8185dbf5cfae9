//! Values in a Dockerfile. Quoting is that of the Dockerfile reference with the default escape character: in double quotes
//! `\`, `"` and `$` are escaped; a RUN line is a line of the shell. No place takes a line feed: an instruction ends there.

use minijinja::Error;

use super::refused;

/// A value of ENV or LABEL.
pub(super) fn quote(text: &str) -> Result<String, Error> {
    let mut quoted = String::from('"');
    for c in one_line(text)?.chars() {
        match c {
            // Outside of the quotes: in them, some readers take it together with a quote that follows.
            '\\' => quoted.push_str("\"\\\\\""),
            '"' | '$' => quoted.extend(['\\', c]),
            c => quoted.push(c),
        }
    }
    Ok(quoted + "\"")
}

/// One word of a line of the shell.
pub(super) fn shell(text: &str) -> Result<String, Error> {
    one_line(text).map(shell_word)
}

/// One word of the shell: in single quotes, or in double ones where a linter would take single ones for a mistake.
pub(super) fn shell_word(text: &str) -> String {
    if !text.contains(['$', '`', '\\', '\'']) {
        return format!("'{text}'");
    }
    let mut quoted = String::from('"');
    for c in text.chars() {
        if ['\\', '"', '$', '`'].contains(&c) {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted + "\""
}

/// Whether a value may stand in a Dockerfile: no control character but the tab.
pub(in crate::render) fn fits(text: &str) -> bool {
    !text.chars().any(|c| c.is_control() && c != '\t')
}

fn one_line(text: &str) -> Result<&str, Error> {
    match fits(text) {
        true => Ok(text),
        false => Err(refused(format!("{text:?} has a line feed or another control character"))),
    }
}
