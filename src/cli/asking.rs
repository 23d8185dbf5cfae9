//! Asks another program on PATH: takes its name and arguments, gives what it prints, or why there is nothing.

use std::process::Command;
use std::time::Duration;

use crate::child::{self, Bounds, Trouble};

/// nvidia-smi sets up every GPU first, which takes seconds on a large machine; what it prints of all is smaller.
const BOUNDS: Bounds = Bounds { patience: Duration::from_secs(20), largest: 16 << 20 };

/// What a program on PATH prints, or why there is nothing.
///
/// # Errors
/// It is not there, takes too long, prints too much or fails.
pub fn ask(program: &str, arguments: &[&str]) -> Result<String, String> {
    ask_within(program, arguments, BOUNDS)
}

fn ask_within(program: &str, arguments: &[&str], bounds: Bounds) -> Result<String, String> {
    let said = child::ask(Command::new(program).args(arguments), b"", bounds, &|_| false);
    let said = said.map_err(|trouble| match trouble {
        Trouble::Start(error) if error.kind() == std::io::ErrorKind::NotFound => format!("{program} is not on PATH"),
        Trouble::Start(error) => format!("{program} cannot be started: {error}"),
        Trouble::TooLong => format!("{program} did not answer within {} seconds", bounds.patience.as_secs()),
        Trouble::TooMuch => format!("{program} printed more than {} MB", bounds.largest >> 20),
        Trouble::Lost(error) => error.to_string(),
    })?;
    let text = String::from_utf8_lossy(&said.bytes);
    match said.status.filter(|status| !status.success()) {
        None => Ok(text.into_owned()),
        Some(status) => {
            let first = text.lines().next().unwrap_or_default().trim();
            let said = if first.is_empty() || first.len() > 200 { String::new() } else { format!(": {first}") };
            Err(format!("{program} failed, {status}{said}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_do() {
        let ask = |script: &str, seconds: u64| {
            let bounds = Bounds { patience: Duration::from_secs(seconds), largest: 1000 };
            ask_within("sh", &["-c", script], bounds)
        };
        assert_eq!(ask("echo a", 60), Ok("a\n".into()));
        assert_eq!(ask("exec sleep 600", 0), Err("sh did not answer within 0 seconds".into()));
        assert!(ask("exec cat /dev/zero", 60).unwrap_err().contains("printed more than"));
        assert_eq!(ask("echo No devices; exit 6", 60), Err("sh failed, exit status: 6: No devices".into()));
        assert!(ask_within("no-such-program", &[], BOUNDS).unwrap_err().contains("is not on PATH"));
    }
}
