//! `gpulock diff OLD NEW`: what moved between two locks.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;

use super::{Answer, Format, Globals, input, output};
use crate::diag::Failure;
use crate::file;
use crate::lock::{Lock, LockDiff};
use crate::report::diff;

/// Flags of `gpulock diff`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// The lock as it was; `-` reads standard input, /dev/null is none
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
    let found = LockDiff::new(&read(&args.old)?, &read(&args.new)?);
    let text = match globals.format {
        Format::Json => diff::json(&found),
        Format::Markdown => diff::markdown(&found),
        _ => diff::human(&found),
    };
    output::write(globals, &text)?;
    Ok(if args.exit_code && !found.is_empty() { Answer::No } else { Answer::Yes })
}

/// A lock: a file, none (`/dev/null`), standard input, or a pipe that a shell gives (`<(git show main:gpulock.lock)`), which
/// this process has open. A named pipe may wait for its writer without end, and is refused as any other command refuses it.
fn read(path: &Path) -> Result<Lock, Failure> {
    const OPEN: [&str; 3] = ["/dev/fd", "/proc/self/fd", "/dev/stdin"];
    if path == Path::new("-") {
        return parse(io::stdin().lock(), "standard input", path);
    }
    // What git names where a file is not on one side.
    if path == Path::new("/dev/null") {
        return Ok(Lock::default());
    }
    if !OPEN.iter().any(|open| path.starts_with(open)) {
        return input::read_lock(path);
    }
    let pipe = File::open(path).map_err(|error| file::unread(path, &error))?;
    parse(pipe, &path.display().to_string(), path)
}

fn parse(from: impl Read, name: &str, path: &Path) -> Result<Lock, Failure> {
    let bytes = file::within(from, 0, file::LARGEST).map_err(|error| file::unread(path, &error))?;
    Lock::parse(&file::decoded(bytes, name)?, name)
}
