//! `gpulock matrix`: the compatibility matrix itself.

mod audit;
mod show;
mod update;

use clap::{Args as ClapArgs, Subcommand};

use super::source::client;
use super::{Answer, Form, Globals, output};
use crate::diag::{Class, Diagnostic, Evidence, Failure};
use crate::matrix::check::{Depth, check};
use crate::matrix::{Matrix, Snapshot};
use crate::registry::Client;
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
    /// Compare every fact that the indexes can confirm, and print each difference
    Audit,
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
        Action::Audit => audit::run(globals),
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
    let text = match globals.form() {
        Form::Human => format!("The matrix is clean: {files} files.\n"),
        Form::Json => json::failure(&failure),
    };
    output::write(globals, &text)?;
    Ok(Answer::Yes)
}

/// A client for the matrix's own indexes that trusts no copy of a page, and the name of the default one.
fn client_of(matrix: &Matrix, globals: &Globals) -> Result<(Client, String), Failure> {
    let rows = &matrix.index()?.indexes;
    let indexes: Vec<(String, String)> = rows.iter().map(|row| (row.name.clone(), row.url.clone())).collect();
    let default = rows.iter().find(|row| row.default).map_or(Snapshot::INDEX, |row| row.name.as_str());
    Ok((client(&indexes, globals, true)?, default.to_owned()))
}

/// Refuses to run without network.
fn needs_network(globals: &Globals, what: &str) -> Result<(), Failure> {
    if !globals.offline {
        return Ok(());
    }
    let evidence = Evidence::observed("command line or environment", "--offline");
    let error = Diagnostic::error("usage", format!("{what} asks the index, which --offline forbids"), evidence);
    Err(Failure::unanswerable(error.fix("drop --offline (or GPULOCK_OFFLINE)")))
}
