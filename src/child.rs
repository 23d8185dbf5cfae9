//! Asks another program, which may hang, never stop printing, or leave a process behind that holds its output open: takes
//! a command and bounds, gives what it printed.

use std::io::{self, Read, Write};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a program may go on once it has said all, its output may stay open once it has ended, and it may take to end
/// once it was killed.
const GRACE: Duration = Duration::from_millis(500);
/// Parts of an answer that wait to be taken.
const PARTS: usize = 16;
/// Between two looks whether it has ended.
const LOOK: Duration = Duration::from_millis(10);

/// What a program may take.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Until it has said all.
    pub patience: Duration,
    /// Bytes that it may say.
    pub largest: usize,
}

/// What a program said.
#[derive(Debug)]
pub struct Said {
    /// On standard output.
    pub bytes: Vec<u8>,
    /// How it ended; `None` where it had said all, went on and was killed.
    pub status: Option<ExitStatus>,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Trouble {
    /// It cannot be started.
    Start(io::Error),
    /// It took longer than the bounds allow.
    TooLong,
    /// It said more than they do.
    TooMuch,
    /// The system does not say how it ended.
    Lost(io::Error),
}

/// Runs a command on `input`, and gives what it said; what `is_whole` takes for a whole answer need not end. Its standard
/// error is not heard.
///
/// # Errors
/// It cannot be started, or goes beyond its bounds; then it is killed.
pub fn ask(
    command: &mut Command,
    input: &[u8],
    bounds: Bounds,
    is_whole: &dyn Fn(&[u8]) -> bool,
) -> Result<Said, Trouble> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(Trouble::Start)?;
    // One that reads nothing may have ended already; its answer counts.
    let _ = child.stdin.take().map(|mut stdin| stdin.write_all(input));
    let heard = match child.stdout.take() {
        Some(stdout) => hear(&mut child, &read(stdout), bounds, is_whole),
        None => Err(Trouble::Lost(io::ErrorKind::BrokenPipe.into())),
    };
    end(&mut child);
    heard
}

/// Kills it, which does nothing to one that has ended. One that even that does not end (waiting for a device) is not
/// waited for.
fn end(child: &mut Child) {
    let _ = child.kill();
    let begun = Instant::now();
    while begun.elapsed() < GRACE && matches!(child.try_wait(), Ok(None)) {
        thread::sleep(LOOK);
    }
}

/// Reads on a thread of its own, which ends with the last process that has the other side open.
fn read(mut stdout: ChildStdout) -> Receiver<Vec<u8>> {
    let (send, receive) = mpsc::sync_channel(PARTS);
    thread::spawn(move || {
        let mut part = [0; 4096];
        while let Ok(count @ 1..) = stdout.read(&mut part) {
            if send.send(part[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    receive
}

/// What a program says, and how it ended. That it ended is enough, since a process that it left behind may hold its output
/// open; so is a whole answer of one that does not end.
fn hear(
    child: &mut Child,
    parts: &Receiver<Vec<u8>>,
    bounds: Bounds,
    is_whole: &dyn Fn(&[u8]) -> bool,
) -> Result<Said, Trouble> {
    let begun = Instant::now();
    let (mut bytes, mut open) = (Vec::new(), true);
    let (mut ended, mut complete): (Option<(ExitStatus, Instant)>, Option<Instant>) = (None, None);
    loop {
        let mut more = false;
        match parts.recv_timeout(LOOK) {
            Ok(part) => {
                bytes.extend(part);
                more = true;
            }
            Err(RecvTimeoutError::Timeout) => {}
            // Then there is nothing to wait on but the process.
            Err(RecvTimeoutError::Disconnected) => {
                open = false;
                thread::sleep(LOOK);
            }
        }
        if bytes.len() > bounds.largest {
            return Err(Trouble::TooMuch);
        }
        if ended.is_none() {
            ended = child.try_wait().map_err(Trouble::Lost)?.map(|status| (status, Instant::now()));
        }
        if complete.is_none() && is_whole(&bytes) {
            complete = Some(Instant::now());
        }
        match (ended, complete) {
            (Some((status, at)), _) if !open || complete.is_some() || !more && at.elapsed() > GRACE => {
                return Ok(Said { bytes, status: Some(status) });
            }
            (None, Some(at)) if at.elapsed() > GRACE => return Ok(Said { bytes, status: None }),
            _ if begun.elapsed() > bounds.patience => return Err(Trouble::TooLong),
            _ => {}
        }
    }
}
