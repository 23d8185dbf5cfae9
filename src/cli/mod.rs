//! The command line: one file a command, each reading like the pipeline.

mod export;
mod globals;
mod init;
mod input;
mod matrix;
mod output;
mod progress;
pub mod read;
mod resolve;
mod source;
mod summary;
mod why;
pub mod write;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::diag::{Class, Failure};
pub use globals::{Format, Globals};

/// Locks, generates and verifies GPU training environments.
#[derive(Debug, Parser)]
#[command(name = "gpulock", version, about, max_term_width = 100, propagate_version = true)]
struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make gpulock.lock from the manifest (or from flags) and the compatibility matrix
    Resolve(resolve::Args),
    /// Write gpulock.toml from what is here: pyproject.toml, requirements, a Dockerfile, this machine
    Init(init::Args),
    /// Print the lock as requirements, constraints or pylock, or write it into pyproject.toml for uv
    Export(export::Args),
    /// Show the chain of facts that chose a package's version
    Why(why::Args),
    /// Show, validate, refresh and audit the compatibility matrix
    Matrix(matrix::Args),
    /// Print a completion script
    Completions {
        /// Shell to complete for
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
}

/// How a command that did not fail ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Exit 0.
    Yes,
    /// Exit 1.
    No,
}

/// Runs the program.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let globals = &cli.globals;
    let answer = match &cli.command {
        Command::Resolve(args) => resolve::run(args, globals),
        Command::Init(args) => init::run(args, globals),
        Command::Export(args) => export::run(args, globals),
        Command::Why(args) => why::run(args, globals),
        Command::Matrix(args) => matrix::run(args, globals),
        Command::Completions { shell } => {
            clap_complete::generate(*shell, &mut Cli::command(), "gpulock", &mut std::io::stdout());
            Ok(Answer::Yes)
        }
        Command::Man => man(),
    };
    match answer {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Err(failure) => {
            globals.fail(&failure);
            ExitCode::from(match failure.class {
                Class::No => 1,
                Class::Unanswerable => 2,
            })
        }
    }
}

fn man() -> Result<Answer, Failure> {
    let mut page = Vec::new();
    // Writing to memory does not fail.
    let _ = clap_mangen::Man::new(Cli::command()).render(&mut page);
    output::stdout(&String::from_utf8_lossy(&page))?;
    Ok(Answer::Yes)
}
