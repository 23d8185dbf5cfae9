//! `gpulock diff OLD NEW`: what moved between two locks.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::{Answer, Format, Globals, input, output};
use crate::diag::Failure;
use crate::lock::LockDiff;
use crate::report::diff;

/// Flags of `gpulock diff`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// The lock as it was
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The lock as it is
    #[arg(value_name = "NEW", default_value = input::LOCK)]
    new: PathBuf,
    /// Exit 1 if they differ
    #[arg(long, env = "GPULOCK_EXIT_CODE")]
    exit_code: bool,
}

/// Runs it.
///
/// # Errors
/// A lock that is not there or cannot be read.
pub fn run(args: &Args, globals: &Globals) -> Result<Answer, Failure> {
    let found = LockDiff::new(&input::read_lock(&args.old)?, &input::read_lock(&args.new)?);
    let text = match globals.format {
        Format::Json => diff::json(&found),
        Format::Markdown => diff::markdown(&found),
        _ => diff::human(&found),
    };
    output::write(globals, &text)?;
    Ok(if args.exit_code && !found.is_empty() { Answer::No } else { Answer::Yes })
}
