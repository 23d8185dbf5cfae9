//! Docker's credential helpers: takes the name of one and a server, gives the login that it keeps.
//!
//! Protocol: <https://github.com/docker/docker-credential-helpers#development>. `docker-credential-NAME get` reads the
//! server from standard input and writes JSON.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde::Deserialize;

use super::credentials::Credentials;

/// For a helper that asks its user, or another machine.
const PATIENCE: Duration = Duration::from_secs(10);
/// More than any login, in bytes.
const LARGEST: u64 = 1 << 16;
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
    let (send, receive) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        thread::spawn(move || {
            let mut said = Vec::new();
            let read = stdout.take(LARGEST).read_to_end(&mut said);
            let _ = send.send(read.map(|_| said));
        });
    }
    let said = receive.recv_timeout(PATIENCE);
    if said.is_err() {
        let _ = child.kill();
    }
    let status = child.wait();
    let said = said.map_err(|_| fail(&format!("gave no answer within {} s", PATIENCE.as_secs())))?;
    let said = said.map_err(|error| fail(&format!("cannot be read: {error}")))?;
    if !status.is_ok_and(|status| status.success()) {
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
