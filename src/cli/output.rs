//! Where results go: standard output, or the file of `-o`.

use std::io::Write;
use std::path::Path;

use super::{Form, Globals, input, write};
use crate::diag::{Diagnostic, Evidence, Failure};
use crate::file;
use crate::report::{human, json};

/// Writes a command's result.
///
/// # Errors
/// When standard output or the file cannot be written, or the file is one that the command reads. A reader that went away is
/// no error.
pub fn write(globals: &Globals, text: &str) -> Result<(), Failure> {
    match &globals.output {
        Some(path) => {
            no_input(path)?;
            write::atomically(path, text).map(|_| ())
        }
        None => stdout(text),
    }
}

/// Refuses `-o` that names a file which no command may print to, before anything is done.
///
/// # Errors
/// Says why.
pub fn allowed(globals: &Globals) -> Result<(), Failure> {
    globals.output.as_deref().map_or(Ok(()), no_input)
}

/// Refuses to write over what the command has read, and over what every command of a project reads.
fn no_input(path: &Path) -> Result<(), Failure> {
    let ends = write::follow_links(path).ok();
    let name = ends.as_deref().and_then(Path::file_name);
    let what = match () {
        () if name.is_some_and(|name| name == input::MANIFEST) => "is the manifest",
        () if name.is_some_and(|name| name == input::LOCK) => "is the lock",
        () if file::is_input(path) => "is read by this command",
        () => return Ok(()),
    };
    let shown = path.display();
    let seen = Evidence::observed("command line", format!("--output {shown}"));
    let problem = Diagnostic::error("usage", format!("{shown} {what}: what is printed cannot go there too"), seen);
    Err(Failure::unanswerable(problem.fix("name another file with -o, or leave it out")))
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

/// Writes a file that is the result: to standard output, or where `-o` says; a program that asked for JSON is then told so.
///
/// # Errors
/// As [`write`].
pub fn made(globals: &Globals, text: &str) -> Result<(), Failure> {
    write(globals, text)?;
    match &globals.output {
        Some(path) if globals.form() == Form::Json && write::is_file(path) => {
            stdout(&json::written(&[path.display().to_string()]))
        }
        _ => Ok(()),
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
