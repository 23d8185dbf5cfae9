//! Docker's credential helpers: takes the name of one and a server, gives the login that it keeps.
//!
//! Protocol: <https://github.com/docker/docker-credential-helpers#development>. `docker-credential-NAME get` reads the
//! server from standard input and writes JSON.

use std::io::{Read, Write};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::credentials::Credentials;

/// For a helper that asks its user, or another machine.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a helper may go on once it has said all, and its output may stay open once it has ended.
const GRACE: Duration = Duration::from_millis(500);
/// Between two looks whether it has ended.
const LOOK: Duration = Duration::from_millis(10);
/// More than any login, in bytes.
const LARGEST: usize = 1 << 16;
/// What every helper says of a server that it has nothing for.
const NOT_FOUND: &str = "credentials not found in native keychain";
/// The name of whom the secret is no password, but a token to get others with.
const IDENTITY_TOKEN: &str = "<token>";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    username: String,
    secret: String,
}

/// The login that the helper has for `server`; `None` when it has none.
///
/// # Errors
/// In words without what the helper wrote: it cannot be run, fails, or gives what cannot be used.
pub(super) fn login(name: &str, server: &str) -> Result<Option<Credentials>, String> {
    let program = format!("docker-credential-{name}");
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
        return Err(format!("{name:?} is not the name of a credential helper"));
    }
    let fail = |what: &str| format!("the credential helper {program} {what}");
    let mut child = Command::new(&program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| fail(&format!("cannot be run: {error}")))?;
    // One that reads nothing may have ended already; its answer counts.
    let _ = child.stdin.take().map(|mut stdin| stdin.write_all(server.as_bytes()));
    let Some(stdout) = child.stdout.take() else { return Err(fail("cannot be read")) };
    let heard = hear(&mut child, &read(stdout));
    // Of one that has ended, this does nothing.
    let _ = child.kill();
    let _ = child.wait();
    let (said, status) = heard.map_err(|why| fail(&why))?;
    if status.is_some_and(|status| !status.success()) {
        let none = String::from_utf8_lossy(&said).trim() == NOT_FOUND;
        return if none { Ok(None) } else { Err(fail("failed")) };
    }
    let answer: Answer = serde_json::from_slice(&said).map_err(|_| fail("gave no login"))?;
    match &*answer.username {
        IDENTITY_TOKEN => Err(fail("keeps an identity token, which is not known here")),
        "" => Ok(None),
        name => Ok(Some(Credentials::new(name, &answer.secret))),
    }
}

/// Reads on a thread of its own, which ends with the last process that has the other side open.
fn read(mut stdout: ChildStdout) -> Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
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

/// What a helper says, and how it ended. That it ended is enough, since a process that it left behind may hold its output
/// open; so is a whole answer of one that does not end.
fn hear(child: &mut Child, parts: &Receiver<Vec<u8>>) -> Result<(Vec<u8>, Option<ExitStatus>), String> {
    let begun = Instant::now();
    let (mut said, mut open) = (Vec::new(), true);
    let (mut ended, mut complete): (Option<(ExitStatus, Instant)>, Option<Instant>) = (None, None);
    loop {
        match parts.recv_timeout(LOOK) {
            Ok(part) => said.extend(part),
            Err(RecvTimeoutError::Timeout) => {}
            // Then there is nothing to wait on but the process.
            Err(RecvTimeoutError::Disconnected) => {
                open = false;
                thread::sleep(LOOK);
            }
        }
        if said.len() > LARGEST {
            return Err(format!("said more than {LARGEST} bytes"));
        }
        if ended.is_none() {
            ended = child.try_wait().map_err(|error| error.to_string())?.map(|status| (status, Instant::now()));
        }
        if complete.is_none() && serde_json::from_slice::<Answer>(&said).is_ok() {
            complete = Some(Instant::now());
        }
        match (ended, complete) {
            (Some((status, at)), _) if !open || complete.is_some() || at.elapsed() > GRACE => {
                return Ok((said, Some(status)));
            }
            (None, Some(at)) if at.elapsed() > GRACE => return Ok((said, None)),
            _ if begun.elapsed() > PATIENCE => {
                return Err(format!("gave no answer within {} s", PATIENCE.as_secs()));
            }
            _ => {}
        }
    }
}
