//! `gpulock inspect FILE...`: what ELF files say of themselves.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::{Answer, Form, Globals, output};
use crate::diag::{Diagnostic, Evidence, Failure};
use crate::elf::{Object, Problem, Unreadable};
use crate::inventory::{self, file::read_objects};
use crate::report::inspect::{self, Inspected};

/// Flags of `gpulock inspect`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Shared libraries and programs
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Runs it. What can be read is shown, also where something else cannot.
///
/// # Errors
/// A file that cannot be read.
pub fn run(args: &Args, globals: &Globals) -> Result<Answer, Failure> {
    let objects = read_objects(&args.files);
    let files: Vec<(&PathBuf, &Result<Object, Unreadable>)> = args.files.iter().zip(&objects).collect();
    let is_elf = |object: &Result<Object, Unreadable>| {
        !matches!(object, Err(Unreadable { problem: Problem::NotElf | Problem::Io, .. }))
    };
    let shown: Vec<Inspected<'_>> = files
        .iter()
        .filter(|(_, object)| globals.form() == Form::Json || is_elf(object))
        .map(|(path, object)| Inspected {
            path: match globals.form() {
                Form::Human => inventory::shown(path),
                Form::Json => path.display().to_string(),
            },
            object,
        })
        .collect();
    if !shown.is_empty() {
        match globals.form() {
            Form::Human => output::human(globals, &inspect::human(&shown))?,
            Form::Json => output::write(globals, &inspect::json(&shown))?,
        }
    }
    let unreadable = files.iter().filter_map(|(path, object)| Some((path, object.as_ref().err()?)));
    let problems = unreadable.clone().map(|(path, problem)| diagnostic(&inventory::shown(path), problem));
    let (other, not_elf): (Vec<_>, Vec<_>) =
        problems.zip(unreadable).partition(|(_, (_, problem))| problem.problem != Problem::NotElf);
    let not_elf: Vec<Diagnostic> = not_elf.into_iter().map(|(diagnostic, _)| diagnostic).collect();
    globals.tell(&not_elf);
    if !other.is_empty() {
        let errors: Vec<Diagnostic> = other.into_iter().map(|(diagnostic, _)| diagnostic).collect();
        globals.tell(&errors);
        return Ok(Answer::Unanswered);
    }
    Ok(if objects.iter().any(is_elf) { Answer::Yes } else { Answer::Nothing })
}

/// What is wrong with a file. That it is not ELF is no error: `inspect *` meets many such.
fn diagnostic(path: &str, problem: &Unreadable) -> Diagnostic {
    let evidence = Evidence::observed(format!("{path}, offset {}", problem.offset), problem.what.clone());
    match problem.problem {
        Problem::NotElf => Diagnostic::note("not-elf", format!("{path} is not an ELF file"), evidence),
        Problem::Unsupported => {
            let message = format!("{path} is {}", problem.what);
            Diagnostic::error("library-unreadable", message, evidence).fix("no GPU stack has such files: leave it out")
        }
        Problem::Damaged | Problem::CutShort => {
            let message = format!("{path} is damaged: {}", problem.what);
            Diagnostic::error("library-unreadable", message, evidence)
                .fix("install the package again: the file is not as it was made")
        }
        Problem::Io => {
            let message = format!("{path} cannot be read: {}", problem.what);
            Diagnostic::error("library-unreadable", message, evidence).fix("look at the path and at its permissions")
        }
    }
}
