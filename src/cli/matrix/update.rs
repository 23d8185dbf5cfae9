//! `gpulock matrix update`: brings a matrix directory up to date with the index.

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use jiff::{SignedDuration, Timestamp};

use crate::cli::{Answer, Form, Globals, output, write};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::matrix::Matrix;
use crate::matrix::check::{Depth, check};
use crate::refresh::{Moment, update};
use crate::report::matrix::{updated, updated_json};

/// Where a checkout has its matrix.
const HERE: &str = "compat-matrix";

/// Flags of `gpulock matrix update`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Write changed files here [default: the directory of --matrix, else ./compat-matrix]
    #[arg(long, value_name = "DIR", env = "GPULOCK_OUT")]
    out: Option<PathBuf>,
    /// Leave out what was uploaded later: 2026-11-29, 2026-11-29T12:00:00Z [default: now]
    #[arg(long, value_name = "TIME", value_parser = parse_time, env = "GPULOCK_EXCLUDE_NEWER")]
    exclude_newer: Option<Timestamp>,
    /// Only say what would change
    #[arg(long, env = "GPULOCK_DRY_RUN")]
    dry_run: bool,
}

/// Runs it.
///
/// # Errors
/// No directory to write to, an index that cannot be asked, a matrix that cannot be read or files that cannot be
/// written.
pub fn run(args: &Args, globals: &Globals) -> Result<Answer, Failure> {
    let here = Path::new(HERE);
    let base = globals.matrix.as_deref().or_else(|| here.is_dir().then_some(here));
    let Some(out) = args.out.as_deref().or(base) else {
        let evidence = Evidence::observed("this folder", format!("no {HERE}"));
        let error = Diagnostic::error("usage", "there is no matrix here to update", evidence);
        return Err(Failure::unanswerable(
            error.fix("name its directory with --matrix DIR, or where to write with --out DIR"),
        ));
    };
    super::needs_network(globals, "an update")?;
    let matrix = base.map_or_else(|| Ok(Matrix::embedded()), Matrix::of_directory)?;
    let (client, index) = super::client_of(&matrix, globals)?;
    let now = Timestamp::now();
    let moment =
        Moment { until: seconds(args.exclude_newer.unwrap_or(now)), today: now.strftime("%Y-%m-%d").to_string() };
    let update = update(&matrix, &client, &index, &moment)?;
    if !args.dry_run {
        for (path, text) in &update.files {
            put(&out.join(path), text)?;
        }
    }
    let directory = out.display().to_string();
    let text = match globals.form() {
        Form::Human => updated(&update, &directory, args.dry_run),
        Form::Json => updated_json(&update, &directory, args.dry_run),
    };
    output::write(globals, &text)?;
    globals.tell(&client.warnings());
    // What the index cannot tell may be missing now: where new GPU code runs, the driver of a new CUDA.
    let mut problems = check(matrix.with_files(&update.files).files(), Depth::Everything);
    problems.iter_mut().for_each(|problem| problem.severity = Severity::Warning);
    globals.tell(&problems);
    Ok(if problems.is_empty() { Answer::Yes } else { Answer::No })
}

/// Writes a file of the matrix, its folder too if it is not there.
fn put(path: &Path, text: &str) -> Result<(), Failure> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| {
            let folder = folder.display().to_string();
            let evidence = Evidence::observed(&folder, error.to_string());
            let message = format!("cannot make the folder {folder}: {error}");
            Failure::unanswerable(Diagnostic::error("output-failed", message, evidence))
        })?;
    }
    write::atomically(path, text).map(|_| ())
}

/// A moment, or the beginning of a day, in UTC.
fn parse_time(text: &str) -> Result<Timestamp, String> {
    let moment = text.parse().or_else(|_| format!("{text}T00:00:00Z").parse());
    moment.map_err(|_| "not a moment such as 2026-11-29T12:00:00Z, nor a day".to_owned())
}

/// RFC 3339 in UTC, down to the second.
fn seconds(moment: Timestamp) -> String {
    let whole = SignedDuration::from_secs(moment.as_second());
    let whole = Timestamp::from_duration(whole).unwrap_or(moment);
    whole.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        let read = |text: &str| parse_time(text).map(seconds);
        assert_eq!(read("2026-11-29").unwrap(), "2026-11-29T00:00:00Z");
        assert_eq!(read("2026-11-29T12:00:00.5+01:00").unwrap(), "2026-11-29T11:00:00Z");
        assert!(read("yesterday").is_err() && read("2026-13-01").is_err());
    }
}
