//! Reads text files that the user names: a path becomes text, or says why it cannot.

use std::fs;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use crate::diag::{Diagnostic, Evidence, Failure};

/// More than any manifest, lock or requirements file; what is larger was named by mistake.
const LARGEST: u64 = 64 << 20;

/// The code of a file that is no text.
pub const NOT_TEXT: &str = "not-text";

/// The text of a file; `None` when there is no such file.
///
/// # Errors
/// A path that cannot be read, or a file that is no text.
pub fn text_if_there(path: &Path) -> Result<Option<String>, Failure> {
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        _ => text(path).map(Some),
    }
}

/// The text of a file.
///
/// # Errors
/// A path that cannot be read, or a file that is no text.
pub fn text(path: &Path) -> Result<String, Failure> {
    let shown = path.display();
    let refuse = |code, message: String, fact: String, fix: &str| {
        Failure::unanswerable(Diagnostic::error(code, message, Evidence::observed(shown.to_string(), fact)).fix(fix))
    };
    let unread = |error: std::io::Error| {
        let (why, fix) = match error.kind() {
            ErrorKind::NotFound => ("does not exist", "name a file that is there"),
            ErrorKind::PermissionDenied => ("may not be read", "change its permissions, or name another file"),
            _ => ("cannot be read", "name a file that can be read"),
        };
        refuse("cannot-read", format!("{shown} {why}"), error.to_string(), fix)
    };
    let metadata = fs::metadata(path).map_err(unread)?;
    if metadata.is_dir() {
        let message = format!("{shown} is a folder, not a file");
        return Err(refuse("cannot-read", message, "a folder".into(), "name a file, or move the folder away"));
    }
    if metadata.len() > LARGEST {
        let size = format!("{} MiB", metadata.len() >> 20);
        let message = format!("{shown} is too large to be what is asked for");
        return Err(refuse("cannot-read", message, size, "name another file"));
    }
    // A device says that it is empty, and may never end.
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(unread)?;
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(unread)?;
    if bytes.len() as u64 > LARGEST {
        let message = format!("{shown} is too large to be what is asked for");
        return Err(refuse("cannot-read", message, "it does not end".into(), "name another file"));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        let place = format!("line {line}, byte {at} of the file");
        refuse(NOT_TEXT, format!("{shown} is not UTF-8 text"), place, "save it as UTF-8, or name another file")
    })?;
    // A byte order mark is no part of the text.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
