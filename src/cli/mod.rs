//! The command line: one file a command, each reading like the pipeline.

mod apart;
mod asking;
mod check;
mod diff;
mod dockerfile;
mod doctor;
mod ending;
mod environment;
mod explain;
mod export;
mod fail_on;
mod globals;
mod here;
mod image;
mod init;
mod input;
mod inspect;
mod matrix;
mod output;
mod probe;
mod progress;
mod resolve;
mod run;
mod running;
mod schema;
mod shaping;
mod source;
mod subject;
mod summary;
mod switch;
mod verify;
mod watched;
mod why;
pub mod write;

use std::io::Write;
use std::mem::ManuallyDrop;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::diag::{Class, Diagnostic, Evidence, Failure, hide_secrets};
use crate::render::render_apart;
use crate::report::{Style, human, json};
pub use globals::{Form, Format, Globals};

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
    /// Print the lock as what another tool reads: requirements, conda, compose, k8s and more
    Export(export::Args),
    /// Write a Dockerfile for a target of the lock
    Dockerfile(dockerfile::Args),
    /// Show what shared libraries say of themselves: needs, versions, what they are, GPU code
    Inspect(inspect::Args),
    /// Show the chain of facts that chose a package's version
    Why(why::Args),
    /// Show, validate, refresh and audit the compatibility matrix
    Matrix(matrix::Args),
    /// Read an environment's libraries and say what will break, without running it
    Verify(verify::Args),
    /// Say what this machine is, layer by layer: hardware, driver, CUDA, framework, application
    Doctor(doctor::Args),
    /// In CI: the lock fits the manifest, generated files fit the lock, and with --env the environment does
    Check(check::Args),
    /// Show what moved between two locks: packages, driver floor, GPU coverage
    Diff(diff::Args),
    /// Show what a rule means and what to do
    Explain(explain::Args),
    /// Print the JSON Schema of the manifest, of the lock in JSON, and of other results
    Schema(schema::Args),
    /// Print a completion script
    Completions {
        /// Shell to complete for
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
}

impl Command {
    /// The formats that it has besides those of every command.
    fn formats(&self) -> &'static [Format] {
        match self {
            Self::Check(_) | Self::Doctor(_) | Self::Verify(_) => {
                &[Format::Sarif, Format::Junit, Format::Github, Format::Markdown]
            }
            Self::Diff(_) => &[Format::Markdown],
            _ => &[],
        }
    }

    /// Whether `-o` names a file that is looked at, and not written.
    fn looks_at_output(&self) -> bool {
        matches!(self, Self::Dockerfile(args) if args.is_check())
    }
}

/// How a command that did not fail ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Exit 0.
    Yes,
    /// Exit 1.
    No,
    /// Exit 2: said on standard error why.
    Unanswered,
    /// Exit 3: there was nothing to look at.
    Nothing,
    /// The exit status of a command that was run.
    Command(u8),
}

/// Runs the program.
pub fn main() -> ExitCode {
    if apart::is_asked() {
        return if apart::answer().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    render_apart(apart::render);
    // Every command and flag is described in it; the process ends before taking that apart would be of use.
    let mut command = ManuallyDrop::new(command());
    let matches = command.try_get_matches_from_mut(std::env::args_os());
    let cli = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let globals = &cli.globals;
    let asked = globals.has_format(cli.command.formats()).and_then(|()| output::allowed(globals));
    let answer = asked.and_then(|()| match &cli.command {
        Command::Resolve(args) => resolve::run(args, globals),
        Command::Init(args) => init::run(args, globals),
        Command::Export(args) => export::run(args, globals),
        Command::Dockerfile(args) => dockerfile::run(args, globals),
        Command::Inspect(args) => inspect::run(args, globals),
        Command::Why(args) => why::run(args, globals),
        Command::Matrix(args) => matrix::run(args, globals),
        Command::Verify(args) => verify::run(args, globals),
        Command::Doctor(args) => doctor::run(args, globals),
        Command::Check(args) => check::run(args, globals),
        Command::Diff(args) => diff::run(args, globals),
        Command::Explain(args) => explain::run(args, globals),
        Command::Schema(args) => schema::run(args, globals),
        Command::Completions { shell } => completions(*shell, globals),
        Command::Man => man(globals),
    });
    match answer {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Ok(Answer::Unanswered) => ExitCode::from(2),
        Ok(Answer::Nothing) => ExitCode::from(3),
        Ok(Answer::Command(status)) => ExitCode::from(status),
        Err(failure) => {
            globals.fail(&failure, cli.command.looks_at_output());
            ExitCode::from(match failure.class {
                Class::No => 1,
                Class::Unanswerable => 2,
            })
        }
    }
}

/// The command line. The help names environment variables, not what is in them: that may be a login.
fn command() -> clap::Command {
    fn adapt(command: clap::Command) -> clap::Command {
        command.mut_args(|arg| switch::strict(arg.hide_env_values(true))).mut_subcommands(adapt)
    }
    adapt(Cli::command())
}

/// Help and version, or what is wrong with the command line; for programs too.
fn usage(error: &clap::Error) -> ExitCode {
    if error.use_stderr() && wants_json() {
        let text = error.render().to_string();
        let message = text.split("\n\n").next().unwrap_or_default();
        let message = message.strip_prefix("error: ").unwrap_or(message).replace('\n', " ");
        let evidence = Evidence::observed("command line", error.kind().to_string());
        let problem = Diagnostic::error("usage", message, evidence).fix("`gpulock help COMMAND` lists what it takes");
        let _ = output::stdout(&json::failure(&Failure::unanswerable(problem)));
    }
    if error.use_stderr() {
        // A value that is refused may be an address with a login.
        let plain = error.render().to_string();
        match hide_secrets(&plain) {
            shown if shown == plain => drop(error.print()),
            shown => output::stderr(&shown),
        }
        return ExitCode::from(2);
    }
    let printed = error.print().and_then(|()| std::io::stdout().flush());
    match output::written_out(printed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::stderr(&human::failure(&failure, Style::default()));
            ExitCode::from(2)
        }
    }
}

/// Whether JSON is asked for on a command line that could not be understood.
fn wants_json() -> bool {
    let words: Vec<_> = std::env::args_os().collect();
    let flag = words.iter().any(|word| word == "--format=json")
        || words.array_windows().any(|[flag, value]| flag == "--format" && value == "json");
    flag || std::env::var_os("GPULOCK_FORMAT").is_some_and(|value| value == "json")
}

fn completions(shell: clap_complete::Shell, globals: &Globals) -> Result<Answer, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "gpulock", &mut script);
    output::write(globals, &String::from_utf8_lossy(&script))?;
    Ok(Answer::Yes)
}

fn man(globals: &Globals) -> Result<Answer, Failure> {
    let mut page = Vec::new();
    // Writing to memory does not fail.
    let _ = clap_mangen::Man::new(command()).render(&mut page);
    output::write(globals, &String::from_utf8_lossy(&page))?;
    Ok(Answer::Yes)
}
