//! Filters of the templates: what a value becomes at a place of a file, so that it stays one value there.

mod data;
mod dockerfile;
mod job;

use minijinja::{Environment, Error, ErrorKind};

pub(super) use data::{conda_refuses, dotenv_refuses, one_line_json, substituted};
pub(super) use dockerfile::fits;
pub(super) use job::{bash_refuses, definition_refuses, k8s_refuses, nul_refuses};

/// Adds all filters.
pub(super) fn add_to(environment: &mut Environment<'_>) {
    environment.add_filter("quote", |text: String| dockerfile::quote(&text));
    environment.add_filter("shell", |text: String| dockerfile::shell(&text));
    environment.add_filter("json", |text: String| data::json(&text));
    environment.add_filter("dollars", |text: String| text.replace('$', "$$"));
    environment.add_filter("dotenv", |text: String| data::dotenv(&text));
    environment.add_filter("comment", |text: String| comment(&text));
    environment.add_filter("reference", |text: String| reference(&text));
    environment.add_filter("variable", |text: String| {
        let named = !text.starts_with(|c: char| c.is_ascii_digit());
        only(&text, "name of an environment variable", |c| named && (c.is_ascii_alphanumeric() || c == '_'))
    });
    environment.add_filter("word", |text: String| match is_word(&text) {
        true => Ok(text),
        false => Err(refused(not_word(&text))),
    });
    environment.add_filter("bash", |text: String| job::bash(&text));
    environment.add_filter("definition", |text: String| job::definition(&text));
    environment.add_filter("setting", |text: String| job::setting(&text));
    environment.add_filter("digested", |text: String| job::digested(&text));
    environment.add_filter("pyxis", |text: String| job::pyxis(&text));
    environment.add_filter("constraint", |text: String| job::constraint(&text));
    environment.add_filter("workflow", |text: String| job::workflow(&text));
    environment.add_filter("label", |text: String| label(&text));
}

/// Whether a text needs quotes nowhere.
pub(super) fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "._+;-".contains(c))
}

/// Why a text is refused that is no such word.
pub(super) fn not_word(text: &str) -> String {
    format!("{text:?} is not the word of letters, digits and `. _ + ; -`")
}

/// Text of a comment: what some reader takes for the end of a line, or does not take at all, is escaped.
pub(super) fn comment(text: &str) -> String {
    let escaped = |c: char| if is_unprintable(c) { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escaped).collect()
}

/// What YAML calls not printable, or ends a line for some reader.
fn is_unprintable(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Name of an image, with its digest.
pub(super) fn reference(text: &str) -> Result<String, Error> {
    only(text, "name of an image", |c| c.is_ascii_alphanumeric() || "./:_-@".contains(c))
}

/// A name in the characters that a label of DNS has (RFC 1123), most like `text`.
fn label(text: &str) -> Result<String, Error> {
    const MOST: usize = 63;
    let sign = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let whole: String = text.chars().map(sign).take(MOST).collect();
    match whole.trim_matches('-') {
        "" => Err(refused(format!("{text:?} has no letter or digit that a name of DNS could begin with"))),
        name => Ok(name.to_owned()),
    }
}

/// A URL in pip's requirements file, which takes lines apart as a shell does and replaces `${NAME}`: what no URL has as it
/// is, and the quotes that one may have, are percent-encoded.
///
/// Sources: RFC 3986, sections 2.2 and 2.3; https://github.com/pypa/pip, src/pip/_internal/req/req_file.py.
pub(super) fn url(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&()*+,;=%".contains(&byte);
    let sign = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(sign).collect()
}

/// One word of a command line that people copy: in quotes only where the shell would take it apart.
pub(super) fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

fn only(text: &str, what: &str, good: impl Fn(char) -> bool) -> Result<String, Error> {
    match !text.is_empty() && text.chars().all(good) {
        true => Ok(text.to_owned()),
        false => Err(refused(format!("{text:?} is not the {what}"))),
    }
}

fn refused(message: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}
