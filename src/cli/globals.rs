//! Flags that every command has, each with its `GPULOCK_*` twin, and what follows from them.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::output;
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::matrix::Matrix;
use crate::matrix::check::{Depth, check};
use crate::report::findings::{Repository, Results};
use crate::report::{Style, github, human, json, junit, markdown, sarif};

/// Form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Human,
    /// For programs; its fields stay
    Json,
    /// Findings as SARIF 2.1.0
    Sarif,
    /// Findings as JUnit's XML
    Junit,
    /// Findings as annotations of GitHub Actions
    Github,
    /// Findings or a diff for a pull request
    Markdown,
}

/// The forms that every command has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Human,
    /// For programs.
    Json,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Flags of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct Globals {
    /// Use no network: only the embedded snapshot and the cache
    #[arg(long, global = true, env = "GPULOCK_OFFLINE")]
    pub offline: bool,
    /// Lay this directory over the embedded compatibility matrix
    #[arg(long, global = true, value_name = "DIR", env = "GPULOCK_MATRIX")]
    pub matrix: Option<PathBuf>,
    /// Form of the output
    #[arg(long, global = true, value_enum, default_value = "human", env = "GPULOCK_FORMAT")]
    pub format: Format,
    /// Write the output to this file instead of standard output
    #[arg(short, long, global = true, value_name = "FILE", env = "GPULOCK_OUTPUT")]
    pub output: Option<PathBuf>,
    /// When to use color
    #[arg(long, global = true, value_enum, default_value = "auto", env = "GPULOCK_COLOR")]
    pub color: Color,
    /// Say less: no notes; twice: no warnings
    #[arg(short, long, global = true, action = clap::ArgAction::Count, env = "GPULOCK_QUIET")]
    pub quiet: u8,
    /// Say more: sources of facts, requests
    #[arg(short, long, global = true, action = clap::ArgAction::Count, env = "GPULOCK_VERBOSE")]
    pub verbose: u8,
    /// Use this index instead of the named one (`pypi=https://mirror/simple`); does not reach the lock; may be repeated,
    /// in the variable with spaces between
    #[arg(long = "mirror", global = true, value_name = "NAME=URL", env = "GPULOCK_MIRROR", value_delimiter = ' ')]
    pub mirrors: Vec<String>,
    /// Keep the cache here
    #[arg(long, global = true, value_name = "DIR", env = "GPULOCK_CACHE_DIR")]
    pub cache_dir: Option<PathBuf>,
}

impl Globals {
    /// The matrix that these flags ask for.
    ///
    /// # Errors
    /// When the directory to lay over cannot be read or is not a matrix.
    pub fn matrix(&self) -> Result<Matrix, Failure> {
        match &self.matrix {
            Some(directory) => {
                let matrix = Matrix::with_overlay(directory)?;
                let problems = check(matrix.files(), Depth::Facts);
                if problems.is_empty() { Ok(matrix) } else { Err(Failure::all(problems)) }
            }
            None => Ok(Matrix::embedded()),
        }
    }

    /// The form of a result that is no list of findings.
    pub fn form(&self) -> Form {
        if self.format == Format::Json { Form::Json } else { Form::Human }
    }

    /// Refuses a format that a command does not have.
    ///
    /// # Errors
    /// Says which commands have it.
    pub fn has_format(&self, formats: &[Format]) -> Result<(), Failure> {
        if formats.contains(&self.format) || [Format::Human, Format::Json].contains(&self.format) {
            return Ok(());
        }
        let name = self.format.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        let seen = Evidence::observed("command line", format!("--format {name}"));
        let problem = Diagnostic::error("usage", format!("this command has no format {name}"), seen);
        let fix = "`check`, `doctor` and `verify` have all formats, `diff` has markdown; others have human and json";
        Err(Failure::unanswerable(problem.fix(fix)))
    }

    /// Findings in the format that is asked for; `None` where that is for people or JSON.
    pub fn findings(&self, results: &Results<'_>) -> Option<String> {
        if [Format::Human, Format::Json].contains(&self.format) {
            return None;
        }
        let repository = repository();
        let results = &Results { repository, ..results.clone() };
        match self.format {
            Format::Human | Format::Json => None,
            Format::Sarif => Some(sarif::report(results)),
            Format::Junit => Some(junit::report(results)),
            Format::Github => Some(github::report(results)),
            Format::Markdown => Some(markdown::report(results)),
        }
    }

    /// Style of what goes to standard error.
    pub fn style(&self) -> Style {
        self.style_on(std::io::stderr().is_terminal())
    }

    /// Style of the result: in a file there is no colour unless it is asked for.
    pub fn result_style(&self) -> Style {
        self.style_on(self.output.is_none() && std::io::stdout().is_terminal())
    }

    fn style_on(&self, terminal: bool) -> Style {
        let wanted = match self.color {
            Color::Always => true,
            Color::Never => false,
            // https://no-color.org
            Color::Auto => terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        };
        Style { color: wanted, facts: self.verbose > 0 }
    }

    /// Prints notes and warnings to standard error, as far as they are wanted.
    pub fn tell<'d>(&self, diagnostics: impl IntoIterator<Item = &'d Diagnostic>) {
        let wanted = self.wanted(diagnostics);
        if !wanted.is_empty() {
            output::stderr(&(human::diagnostics(wanted, self.style()) + "\n"));
        }
    }

    /// The same, one a line: for many small ones.
    pub fn tell_briefly<'d>(&self, diagnostics: impl IntoIterator<Item = &'d Diagnostic>) {
        output::stderr(&human::brief(self.wanted(diagnostics), self.style()));
    }

    /// The least severity that is wanted.
    pub fn least(&self) -> Severity {
        match self.quiet {
            0 => Severity::Note,
            1 => Severity::Warning,
            _ => Severity::Error,
        }
    }

    fn wanted<'d>(&self, diagnostics: impl IntoIterator<Item = &'d Diagnostic>) -> Vec<&'d Diagnostic> {
        let least = self.least();
        diagnostics.into_iter().filter(|d| d.severity >= least).collect()
    }

    /// Prints why a command failed: to standard error, and to where the result would be where a program reads that; never to
    /// the file of `-o` where the command `looks_at_output` and writes nothing.
    pub fn fail(&self, failure: &Failure, looks_at_output: bool) {
        let printed = match self.format {
            Format::Json => Some(json::failure(failure)),
            _ => self.findings(&Results { anchors: anchors(failure), ..Results::of_failure("gpulock", failure) }),
        };
        if let Some(printed) = printed {
            let _ = if looks_at_output { output::stdout(&printed) } else { output::write(self, &printed) };
        }
        output::stderr(&human::failure(failure, self.style()));
    }
}

/// Files and folders that a failure was seen in as a whole, with no line of them.
fn anchors(failure: &Failure) -> Vec<String> {
    let seen = failure.diagnostics.iter().flat_map(|problem| &problem.evidence);
    let places = seen.filter_map(|evidence| match evidence {
        Evidence::Observed { what, .. } => Some(what.to_string()),
        _ => None,
    });
    places.filter(|what| Path::new(what).exists()).collect()
}

/// The repository around the current folder: the nearest folder above that has a `.git`.
fn repository() -> Option<Repository> {
    let folder = std::env::current_dir().ok()?;
    let root = folder.ancestors().find(|folder| folder.join(".git").exists())?.to_owned();
    Some(Repository { root, folder })
}
