//! Reads text files that the user names: a path becomes text, or says why it cannot.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crate::diag::{Diagnostic, Evidence, Failure};

/// More than any manifest, lock or requirements file; what is larger was named by mistake.
const LARGEST: u64 = 64 << 20;

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
    let refuse = |message: String, fact: String| {
        let problem = Diagnostic::error("cannot-read", message, Evidence::observed(shown.to_string(), fact));
        Failure::unanswerable(problem.fix("name a text file that can be read"))
    };
    let unread = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => refuse(format!("{shown} does not exist"), error.to_string()),
        ErrorKind::PermissionDenied => refuse(format!("{shown} may not be read"), error.to_string()),
        _ => refuse(format!("{shown} cannot be read"), error.to_string()),
    };
    let metadata = fs::metadata(path).map_err(unread)?;
    if metadata.is_dir() {
        return Err(refuse(format!("{shown} is a folder, not a file"), "a folder".into()));
    }
    if metadata.len() > LARGEST {
        let size = format!("{} MiB", metadata.len() >> 20);
        return Err(refuse(format!("{shown} is too large to be what is asked for"), size));
    }
    let bytes = fs::read(path).map_err(unread)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        refuse(format!("{shown} is not UTF-8 text"), format!("line {line}, byte {at} of the file"))
    })?;
    // A byte order mark is no part of the text.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
