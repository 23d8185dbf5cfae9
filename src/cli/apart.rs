//! Renders a template of the user's own in a process of its own, which has little memory and time.
//!
//! The process is this program once more. A template that nests too deep overflows the stack there, and the system ends that
//! process: this one says why.

use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus, Stdio};

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};

use crate::file;
use crate::render::{Fault, Task};

/// The one argument of that process. No command line that people write has it.
const ARGUMENT: &str = "--render-template";
/// Seconds of processor time: a template of ten thousand packages takes one.
const SECONDS: u64 = 10;
/// Megabytes of address space, the program itself included.
const MEGABYTES: u64 = 512;
/// Bytes of an answer: the largest file that is read again, each sign escaped as JSON has it at worst.
const MOST_SAID: u64 = 6 * file::LARGEST;

/// Whether this process is to render a template, as its arguments say.
pub fn is_asked() -> bool {
    let mut arguments = std::env::args_os().skip(1);
    arguments.next().is_some_and(|first| first == ARGUMENT) && arguments.next().is_none()
}

/// Renders the template that standard input has, and writes to standard output what came of it.
pub fn answer() -> std::io::Result<()> {
    let least = |resource, wanted: u64| {
        let Rlimit { current, maximum } = getrlimit(resource);
        let current = Some([current, maximum].into_iter().flatten().fold(wanted, u64::min));
        setrlimit(resource, Rlimit { current, maximum })
    };
    // No image of the memory is to be left of what is ended.
    least(Resource::Core, 0)?;
    least(Resource::Cpu, SECONDS)?;
    least(Resource::As, MEGABYTES << 20)?;
    let mut text = String::new();
    std::io::stdin().lock().read_to_string(&mut text)?;
    let task: Task<'_> = serde_json::from_str(&text)?;
    let answer = serde_json::to_vec(&task.render())?;
    let mut out = std::io::stdout().lock();
    out.write_all(&answer).and_then(|()| out.flush())
}

/// Has a process render `task`.
///
/// # Errors
/// What is wrong with the template, or that it takes more than it may.
pub fn render(task: &Task<'_>) -> Result<String, Fault> {
    let fault = |message: String| Fault { in_base: false, line: None, message };
    let too_long = || fault(format!("it makes more than {} MB of text", file::LARGEST >> 20));
    let (said, status) =
        ask(task).map_err(|error| fault(format!("the process that renders it cannot be used: {error}")))?;
    if said.len() as u64 > MOST_SAID {
        return Err(too_long());
    }
    if !status.success() {
        return Err(fault(why(status)));
    }
    let rendered: Result<String, Fault> = serde_json::from_slice(&said)
        .map_err(|error| fault(format!("the process that renders it gave no answer: {error}")))?;
    rendered.and_then(|text| if text.len() as u64 > file::LARGEST { Err(too_long()) } else { Ok(text) })
}

/// What the process says, and how it ended.
fn ask(task: &Task<'_>) -> std::io::Result<(Vec<u8>, ExitStatus)> {
    // Names this very file, also where another release was put in its place.
    let mut process = Command::new("/proc/self/exe")
        .arg(ARGUMENT)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(mut input) = process.stdin.take() {
        // One that has ended reads nothing; how it ended tells more.
        let _ = input.write_all(&serde_json::to_vec(task)?);
    }
    let mut said = Vec::new();
    if let Some(output) = process.stdout.take() {
        output.take(MOST_SAID + 1).read_to_end(&mut said)?;
    }
    // What it has left to say is not heard.
    if said.len() as u64 > MOST_SAID {
        let _ = process.kill();
    }
    Ok((said, process.wait()?))
}

fn why(status: ExitStatus) -> String {
    let ended_by = |signals: &[Signal]| signals.iter().any(|signal| status.signal() == Some(signal.as_raw()));
    match () {
        () if ended_by(&[Signal::XCPU]) => format!("it takes more than {SECONDS} seconds"),
        () if ended_by(&[Signal::ABORT, Signal::BUS, Signal::SEGV]) => {
            format!("it takes more than {MEGABYTES} MB of memory, or is nested deeper than it can be read")
        }
        () => format!("the process that renders it was ended ({status})"),
    }
}
