//! Docker's credential helpers: takes the name of one and a server, gives the login that it keeps.
//!
//! Protocol: <https://github.com/docker/docker-credential-helpers#development>. `docker-credential-NAME get` reads the
//! server from standard input and writes JSON.

use std::process::Command;
use std::time::Duration;

use serde::Deserialize;

use super::credentials::Credentials;
use crate::child::{self, Bounds, Trouble};

/// For a helper that asks its user, or another machine.
const PATIENCE: Duration = Duration::from_secs(10);
/// More than any login, in bytes.
const LARGEST: usize = 1 << 16;
/// What every helper says of a server that it has nothing for.
const NOT_FOUND: &str = "credentials not found in native keychain";

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
    let is_whole = |said: &[u8]| serde_json::from_slice::<Answer>(said).is_ok();
    let bounds = Bounds { patience: PATIENCE, largest: LARGEST };
    let said = child::ask(Command::new(&program).arg("get"), server.as_bytes(), bounds, &is_whole);
    let said = said.map_err(|trouble| match trouble {
        Trouble::Start(error) => fail(&format!("cannot be run: {error}")),
        Trouble::TooLong => fail(&format!("gave no answer within {} s", PATIENCE.as_secs())),
        Trouble::TooMuch => fail(&format!("said more than {LARGEST} bytes")),
        Trouble::Lost(error) => fail(&error.to_string()),
    })?;
    if said.status.is_some_and(|status| !status.success()) {
        let none = String::from_utf8_lossy(&said.bytes).trim() == NOT_FOUND;
        return if none { Ok(None) } else { Err(fail("failed")) };
    }
    let answer: Answer = serde_json::from_slice(&said.bytes).map_err(|_| fail("gave no login"))?;
    match &*answer.username {
        "" => Ok(None),
        name => Ok(Some(Credentials::new(name, &answer.secret))),
    }
}
