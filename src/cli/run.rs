//! Runs a command and listens to its loader: standard streams, terminal, signals and exit status are the command's own.
//!
//! glibc's loader writes what it does into a private folder (`LD_DEBUG`, `LD_DEBUG_OUTPUT`), one file a process. Programs
//! that start with other rights ignore these variables, and so do statically linked ones and those of musl.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io::{self, IsTerminal};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::signal::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use super::output;
use crate::diag::{Diagnostic, Evidence, Failure, hide_secrets};
use crate::inventory::process::Program;
use crate::inventory::process::trace;
use crate::report::verify::run::Run;
use crate::report::{Style, human};

/// What the loader tells of: files that it loads, and searches.
const TOLD: &str = "files,libs";
/// What a job's loaders say is less, in bytes; the rest is not read.
const LARGEST: u64 = 1 << 30;
/// So long its processes may take to end after a command, before they are said to go on.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whose standard output is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdout {
    /// The command's, and the report goes elsewhere.
    Commands,
    /// The report's; what the command prints goes to standard error.
    Ours,
}

/// Runs a command to its end, with `variables` besides those of this process.
///
/// # Errors
/// When it cannot be started.
pub fn run(words: &[OsString], variables: &BTreeMap<String, String>, stdout: Stdout) -> Result<Run, Failure> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(failure("no command", "no command behind `--`".into()));
    };
    let folder = tempfile::Builder::new().prefix("gpulock-").tempdir();
    let folder = folder.map_err(|error| failure("temporary folder", error.to_string()))?;
    // A command may go on as another user, who has to be able to write there; nobody else can list it.
    let mode = if rustix::process::geteuid().is_root() { 0o1733 } else { 0o700 };
    let _ = fs::set_permissions(folder.path(), Permissions::from_mode(mode));
    let told = std::env::var("LD_DEBUG").map_or(TOLD.to_owned(), |own| format!("{TOLD},{own}"));
    let mut command = Command::new(program);
    command.args(arguments).envs(variables).env("LD_DEBUG", told).env("LD_DEBUG_OUTPUT", folder.path().join("ld"));
    if stdout == Stdout::Ours {
        command.stdout(std::io::stderr());
    }
    let name = hide_secrets(&words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "));
    let signals = listen().map_err(|error| failure(&name, error.to_string()))?;
    let child = command.spawn().map_err(|error| not_started(&name, Path::new(program), &error))?;
    let status = wait(child, signals).map_err(|error| failure(&name, error.to_string()))?;
    let (ended, status) = ending(status);
    let go_on = go_on(folder.path());
    let programs = recorded(folder.path());
    if programs.is_empty() {
        let message = "nothing was heard of the command's loader, so that what it loaded is not known";
        let seen = Evidence::observed(
            &name,
            "it is linked statically or with musl, or runs with other rights than it was started with",
        );
        tell(
            Diagnostic::note("nothing-heard", message, seen)
                .fix("gpulock verify pid:N reads what a process has loaded while it runs"),
        );
    }
    if go_on {
        // Without the folder, glibc's loader would write to standard output.
        let kept = folder.keep();
        let _ = fs::set_permissions(&kept, Permissions::from_mode(mode));
        let message = "processes of the command go on: what their loaders say from now on is not judged";
        let seen = Evidence::observed(kept.display().to_string(), "kept for them");
        let note = Diagnostic::note("command-goes-on", message, seen);
        tell(note.fix("remove the folder once they have ended"));
    }
    Ok(Run { command: name, ended, status, has_stdout: stdout == Stdout::Commands, programs })
}

fn tell(note: Diagnostic) {
    output::stderr(&(human::diagnostics([&note], Style::default()) + "\n"));
}

/// The signals that are meant for the command. Those that were ignored stay so, for it too.
fn listen() -> std::io::Result<Signals> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let all = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];
    Signals::new(all.into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0))
}

/// Waits for the command, and sends on what comes meanwhile. What a terminal sends, the command has from it already.
fn wait(mut child: Child, mut signals: Signals) -> std::io::Result<ExitStatus> {
    let pid = Pid::from_child(&child);
    let at_terminal = std::io::stdin().is_terminal() || std::io::stderr().is_terminal();
    let handle = signals.handle();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for signal in signals.forever() {
                if at_terminal && matches!(signal, SIGINT | SIGQUIT) {
                    continue;
                }
                if let Some(signal) = Signal::from_named_raw(signal) {
                    let _ = kill_process(pid, signal);
                }
            }
        });
        let status = child.wait();
        handle.close();
        status
    })
}

/// How it ended, and the status that a shell has for it.
fn ending(status: ExitStatus) -> (String, u8) {
    match (status.code(), status.signal()) {
        (Some(code), _) => (format!("exit status {code}"), u8::try_from(code).unwrap_or(1)),
        (None, Some(signal)) => {
            let name = signal_hook::low_level::signal_name(signal).map_or_else(|| signal.to_string(), str::to_owned);
            (format!("signal {name}"), u8::try_from(128 + signal).unwrap_or(255))
        }
        (None, None) => (status.to_string(), 1),
    }
}

/// Whether processes of the command go on after it. Those that serve a program end soon after it: they see that it has ended
/// (the fork server and the resource tracker of Python's multiprocessing).
fn go_on(folder: &Path) -> bool {
    let until = Instant::now() + PATIENCE;
    while goes_on(folder) {
        if Instant::now() >= until {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

/// Whether a process still has the folder in its variables.
fn goes_on(folder: &Path) -> bool {
    let text = folder.as_os_str().as_encoded_bytes();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let own = std::process::id().to_string();
    processes.filter(|entry| entry.file_name().to_str().is_some_and(|name| name != own)).any(|entry| {
        let variables = fs::read(entry.path().join("environ")).unwrap_or_default();
        memchr::memmem::find(&variables, text).is_some()
    })
}

/// What the loaders wrote, process by process.
fn recorded(folder: &Path) -> Vec<Program> {
    // Nobody else could list it; this may be another user than the one that made a file.
    let _ = fs::set_permissions(folder, Permissions::from_mode(0o700));
    let mut files: Vec<_> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .filter_map(|entry| Some((entry.metadata().ok()?, entry.path())))
        .collect();
    files.sort_by_key(|(metadata, path)| (metadata.created().ok(), path.clone()));
    let mut left = LARGEST;
    let mut programs = Vec::new();
    for (metadata, path) in files {
        if metadata.len() > left {
            break;
        }
        left -= metadata.len();
        programs.extend(trace::parse(&fs::read(path).unwrap_or_default(), &inode));
    }
    programs
}

/// Which file a path leads to.
fn inode(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Why a program does not start, and what would.
fn not_started(name: &str, program: &Path, error: &io::Error) -> Failure {
    const NO_FORMAT: i32 = 8;
    let named = program.components().count() > 1;
    let (why, fix) = match error.kind() {
        _ if error.raw_os_error() == Some(NO_FORMAT) => (
            "it is neither a program of this machine nor a script that begins with `#!`",
            format!("name what runs it: gpulock verify -- sh {}", program.display()),
        ),
        io::ErrorKind::NotFound if named && program.exists() => (
            "it is there, and the interpreter that it names (`#!`, or its loader) is not",
            "install that interpreter, or name another: gpulock verify -- python job.py".to_owned(),
        ),
        io::ErrorKind::NotFound if named => ("it is not there", "name a program that is there".to_owned()),
        io::ErrorKind::NotFound => {
            ("no folder of PATH has it", "name its path, or what runs it: gpulock verify -- python job.py".to_owned())
        }
        io::ErrorKind::PermissionDenied if program.is_dir() => {
            ("it is a folder", "name a program: gpulock verify -- python job.py".to_owned())
        }
        io::ErrorKind::PermissionDenied => (
            "it may not be executed",
            format!("chmod +x {0}, or name what runs it: gpulock verify -- python {0}", program.display()),
        ),
        _ => return failure(name, error.to_string()),
    };
    let message = format!("{name} cannot be run: {why}");
    Failure::unanswerable(
        Diagnostic::error("cannot-run", message, Evidence::observed("command", error.to_string())).fix(fix),
    )
}

fn failure(what: &str, why: String) -> Failure {
    let message = format!("{what} cannot be run: {why}");
    let error = Diagnostic::error("cannot-run", message, Evidence::observed("command", why));
    Failure::unanswerable(error.fix("name a program behind `--`: gpulock verify -- python job.py"))
}
