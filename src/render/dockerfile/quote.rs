//! Filters of the templates: what a value becomes at a place of a Dockerfile, so that it stays one value there.
//!
//! Quoting is that of the Dockerfile reference with the default escape character: in double quotes `\`, `"` and `$` are
//! escaped; a RUN line is a line of the shell. No place takes a line feed: an instruction ends there.

use minijinja::{Environment, Error, ErrorKind};

/// Adds all filters.
pub(super) fn add_to(environment: &mut Environment<'_>) {
    environment.add_filter("quote", |text: String| quote(&text));
    environment.add_filter("shell", |text: String| shell(&text));
    environment.add_filter("comment", |text: String| comment(&text));
    environment.add_filter("reference", |text: String| {
        only(text, "name of an image", |c| c.is_ascii_alphanumeric() || "./:_-@".contains(c))
    });
    environment.add_filter("variable", |text: String| {
        let named = !text.starts_with(|c: char| c.is_ascii_digit());
        only(text, "name of an environment variable", |c| named && (c.is_ascii_alphanumeric() || c == '_'))
    });
    environment.add_filter("word", |text: String| {
        only(text, "word of letters, digits and `. _ + ; -`", |c| c.is_ascii_alphanumeric() || "._+;-".contains(c))
    });
}

/// A value of ENV or LABEL.
fn quote(text: &str) -> Result<String, Error> {
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

/// One word of a RUN line: in single quotes, or in double ones where a linter would take single ones for a mistake.
fn shell(text: &str) -> Result<String, Error> {
    let text = one_line(text)?;
    if !text.contains(['$', '`', '\\', '\'']) {
        return Ok(format!("'{text}'"));
    }
    let mut quoted = String::from('"');
    for c in text.chars() {
        if ['\\', '"', '$', '`'].contains(&c) {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    Ok(quoted + "\"")
}

/// Text of a comment.
fn comment(text: &str) -> String {
    let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escaped).collect()
}

/// Whether a value may stand in a Dockerfile: no control character but the tab.
pub(super) fn fits(text: &str) -> bool {
    !text.chars().any(|c| c.is_control() && c != '\t')
}

fn one_line(text: &str) -> Result<&str, Error> {
    match fits(text) {
        true => Ok(text),
        false => Err(refused(format!("{text:?} has a line feed or another control character"))),
    }
}

fn only(text: String, what: &str, good: impl Fn(char) -> bool) -> Result<String, Error> {
    match !text.is_empty() && text.chars().all(good) {
        true => Ok(text),
        false => Err(refused(format!("{text:?} is not the {what}"))),
    }
}

fn refused(message: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}
