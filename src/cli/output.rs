//! Where results go: standard output, or the file of `-o`.

use std::io::Write;

use super::{Form, Globals, write};
use crate::diag::{Diagnostic, Evidence, Failure};
use crate::report::{human, json};

/// Writes a command's result.
///
/// # Errors
/// When standard output or the file cannot be written. A reader that went away is no error.
pub fn write(globals: &Globals, text: &str) -> Result<(), Failure> {
    match &globals.output {
        Some(path) => write::atomically(path, text).map(|_| ()),
        None => stdout(text),
    }
}

/// Writes what is for people: nothing in it, whatever file or index it comes from, steers their terminal.
///
/// # Errors
/// As [`write`].
pub fn human(globals: &Globals, text: &str) -> Result<(), Failure> {
    write(globals, &human::printable(text))
}

/// Says which files were written, and for people what else there is to say.
///
/// # Errors
/// As [`write`].
pub fn written(globals: &Globals, files: &[String], more: &str) -> Result<(), Failure> {
    match globals.form() {
        Form::Human => {
            let lines: String = files.iter().map(|file| format!("wrote {file}\n")).collect();
            self::human(globals, &(lines + more))
        }
        Form::Json => write(globals, &json::written(files)),
    }
}

/// Writes to standard error, for people. Where that cannot be written there is nobody left to tell.
pub fn stderr(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Writes to standard output.
///
/// # Errors
/// As [`write`].
pub fn stdout(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    written_out(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// How a write to standard output ended. A reader that went away is no error.
///
/// # Errors
/// As [`write`].
pub fn written_out(ended: std::io::Result<()>) -> Result<(), Failure> {
    match ended {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            let evidence = Evidence::observed("standard output", error.to_string());
            let message = format!("cannot write to standard output: {error}");
            let problem = Diagnostic::error("cannot-write", message, evidence);
            Err(Failure::unanswerable(problem.fix("look at where it is redirected to, or use `-o FILE`")))
        }
        _ => Ok(()),
    }
}
