//! `gpulock matrix`: the compatibility matrix itself.

mod show;
mod update;

use clap::{Args as ClapArgs, Subcommand};

use super::{Answer, Format, Globals, output};
use crate::diag::{Class, Failure};
use crate::matrix::Matrix;
use crate::matrix::check::{Depth, check};
use crate::report::json;

/// Flags of `gpulock matrix`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show what goes with what: torch builds, CUDA, drivers, cuDNN, GPUs
    Show(show::Args),
    /// Validate the matrix: every problem at once
    Check,
    /// Refresh the snapshot of wheels and add the releases that the matrix has not seen, from the index
    Update(update::Args),
}

/// Runs it.
///
/// # Errors
/// When the matrix cannot be read, or (for `check`) is not clean.
pub fn run(args: &Args, globals: &Globals) -> Result<Answer, Failure> {
    match &args.action {
        Action::Show(args) => show::run(args, globals),
        Action::Check => run_check(globals),
        Action::Update(args) => update::run(args, globals),
    }
}

fn run_check(globals: &Globals) -> Result<Answer, Failure> {
    let matrix = match &globals.matrix {
        Some(directory) => Matrix::with_overlay(directory)?,
        None => Matrix::embedded(),
    };
    let failure = Failure { class: Class::No, diagnostics: check(matrix.files(), Depth::Everything) };
    if !failure.diagnostics.is_empty() {
        return Err(failure);
    }
    let files = matrix.files().paths("", "").len();
    let text = match globals.format {
        Format::Human => format!("The matrix is clean: {files} files.\n"),
        Format::Json => json::failure(&failure),
    };
    output::write(globals, &text)?;
    Ok(Answer::Yes)
}
