//! `gpulock inspect FILE...`: what ELF files say of themselves.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::subject::{self, ImageArgs, Reader};
use super::{Answer, Form, Globals, output};
use crate::check::{self, Case, stack};
use crate::diag::{Diagnostic, Evidence, Failure};
use crate::elf::{Object, Problem, Unreadable};
use crate::file;
use crate::inventory::{self, Inventory, Options, file::read_objects};
use crate::link::LinkModel;
use crate::python::Platform;
use crate::report;
use crate::report::image::InspectedImage;
use crate::report::inspect::{self, Inspected};

/// Flags of `gpulock inspect`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Shared libraries and programs, or images and folders with an environment: image:FILE, oci:DIR, sif:FILE,
    /// registry:NAME, .venv
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    images: ImageArgs,
}

/// Runs it. What can be read is shown, also where something else cannot.
///
/// # Errors
/// A file that cannot be read.
pub fn run(args: &Args, globals: &Globals) -> Result<Answer, Failure> {
    if args.files.iter().any(|file| subject::is_image(file)) || args.files.iter().all(|file| file.is_dir()) {
        return images(args, globals);
    }
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
    files.iter().for_each(|(path, _)| file::mark_input(path));
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

/// Says of images and environments what they demand of a machine.
fn images(args: &Args, globals: &Globals) -> Result<Answer, Failure> {
    if let Some(other) = args.files.iter().find(|file| !subject::is_image(file) && !file.is_dir()) {
        let seen = Evidence::observed("command line", inventory::shown(other));
        let problem = Diagnostic::error("usage", "images and files are not shown at once", seen);
        return Err(Failure::unanswerable(problem.fix("inspect the files in a command of their own")));
    }
    let matrix = globals.matrix()?;
    let reader = Reader { globals, images: &args.images, platform: Platform::default() };
    let inventories: Vec<Inventory> =
        args.files.iter().map(|file| reader.read(file, &Options::default())).collect::<Result<_, _>>()?;
    let mut is_gpu_stack = false;
    let mut shown = Vec::new();
    for inventory in &inventories {
        let (image, given) = (inventory.image.as_ref(), inventory::shown(&inventory.subject.given));
        let links = LinkModel::new(inventory, matrix.dlopen()?);
        let case = Case {
            offers: Default::default(),
            inventory,
            links: &links,
            matrix: &matrix,
            machine: None,
            glibc: None,
            digests: None,
            locked: None,
        };
        is_gpu_stack |= stack::is_gpu_stack(inventory, &matrix)?;
        shown.push(InspectedImage {
            given: image.map_or(given, |image| image.given.clone()),
            platform: image.and_then(|image| image.config.platform.as_deref()),
            layers: image.map(|image| image.layers.len()),
            command: image.map_or(&[], |image| &image.config.command),
            python: inventory
                .pythons
                .first()
                .and_then(|python| Some((python.prefix.to_str()?, python.version.map(|version| version.to_string())))),
            answer: check::image::answer(&case)?,
        });
    }
    match globals.form() {
        Form::Human => output::human(globals, &report::image::human(&shown))?,
        Form::Json => output::write(globals, &report::image::json(&shown))?,
    }
    Ok(if is_gpu_stack { Answer::Yes } else { Answer::Nothing })
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
