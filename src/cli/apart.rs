//! Renders a template of the user's own in a process of its own, which has little memory and time.
//!
//! The process is this program once more. A template that nests too deep overflows the stack there, and the system ends that
//! process: this one says why.

use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};

use crate::child::{self, Bounds, Trouble};
use crate::file;
use crate::render::{Fault, Task};

/// The one argument of that process. No command line that people write has it.
const ARGUMENT: &str = "--render-template";
/// Seconds of processor time: a template of ten thousand packages takes one.
const SECONDS: u64 = 10;
/// Megabytes of address space, the program itself included.
const MEGABYTES: u64 = 512;
/// Bytes of an answer: the largest file that is read again, each sign escaped as JSON has it at worst.
const MOST_SAID: usize = 6 * file::LARGEST as usize;
/// On a machine that is busy, its time on a processor takes longer.
const BOUNDS: Bounds = Bounds { patience: Duration::from_secs(12 * SECONDS), largest: MOST_SAID };

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
    let input = serde_json::to_vec(task).map_err(|error| fault(format!("its values cannot be handed on: {error}")))?;
    // Names this very file, also where another release was put in its place.
    let said = child::ask(Command::new("/proc/self/exe").arg(ARGUMENT), &input, BOUNDS, &|_| false);
    let said = said.map_err(|trouble| match trouble {
        Trouble::TooMuch => too_long(),
        Trouble::TooLong => fault(format!("it takes more than {} seconds", BOUNDS.patience.as_secs())),
        Trouble::Start(error) | Trouble::Lost(error) => {
            fault(format!("the process that renders it cannot be used: {error}"))
        }
    })?;
    if let Some(status) = said.status.filter(|status| !status.success()) {
        return Err(fault(why(status)));
    }
    let rendered: Result<String, Fault> = serde_json::from_slice(&said.bytes)
        .map_err(|error| fault(format!("the process that renders it gave no answer: {error}")))?;
    rendered.and_then(|text| if text.len() as u64 > file::LARGEST { Err(too_long()) } else { Ok(text) })
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
