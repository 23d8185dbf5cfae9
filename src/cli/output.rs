//! Where results go: standard output, or the file of `-o`.

use std::io::Write;

use super::Globals;
use crate::diag::{Diagnostic, Evidence, Failure};

/// Writes a command's result.
///
/// # Errors
/// When standard output or the file cannot be written. A reader that went away is no error.
pub fn write(globals: &Globals, text: &str) -> Result<(), Failure> {
    let Some(path) = &globals.output else { return stdout(text) };
    std::fs::write(path, text).map_err(|error| failed(&path.display().to_string(), &error))
}

/// Writes to standard output.
///
/// # Errors
/// As [`write`].
pub fn stdout(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(failed("standard output", &error)),
        _ => Ok(()),
    }
}

fn failed(what: &str, error: &std::io::Error) -> Failure {
    let evidence = Evidence::observed(what, error.to_string());
    Failure::unanswerable(Diagnostic::error("output-failed", format!("cannot write to {what}: {error}"), evidence))
}
