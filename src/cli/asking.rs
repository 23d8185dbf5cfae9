//! Asks another program, which may hang or never stop printing: takes its name and arguments, gives what it prints.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// nvidia-smi sets up every GPU first, which takes seconds on a large machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// More than any machine's GPUs fill, in bytes.
const LARGEST: u64 = 16 << 20;

/// What a program on PATH prints, or why there is nothing.
///
/// # Errors
/// It is not there, takes too long, prints too much or fails.
pub fn ask(program: &str, arguments: &[&str]) -> Result<String, String> {
    ask_within(program, arguments, PATIENCE, LARGEST)
}

fn ask_within(program: &str, arguments: &[&str], patience: Duration, largest: u64) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("{program} is not on PATH"),
        _ => format!("{program} cannot be started: {error}"),
    })?;
    let (send, receive) = mpsc::channel();
    if let Some(out) = child.stdout.take() {
        // A reader that hangs is left behind: it ends with the program, or with this one.
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let read = out.take(largest + 1).read_to_end(&mut bytes);
            let _ = send.send(read.map(|_| bytes));
        });
    }
    let read = receive.recv_timeout(patience);
    let too_long = read.is_err();
    let too_much = matches!(&read, Ok(Ok(bytes)) if bytes.len() as u64 > largest);
    if too_long || too_much {
        let _ = child.kill();
    }
    if too_long {
        // One that even a signal does not end (waiting for a GPU) is not waited for.
        let _ = child.try_wait();
        return Err(format!("{program} did not answer within {} seconds", patience.as_secs()));
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    match read {
        _ if too_much => Err(format!("{program} printed more than {} MB", largest >> 20)),
        Ok(Ok(bytes)) if status.success() => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Ok(Ok(bytes)) => {
            let first = String::from_utf8_lossy(&bytes).lines().next().unwrap_or_default().trim().to_owned();
            let said = if first.is_empty() || first.len() > 200 { String::new() } else { format!(": {first}") };
            Err(format!("{program} failed, {status}{said}"))
        }
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("{program} gave nothing")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_do() {
        let ask = |script: &str, seconds: u64| ask_within("sh", &["-c", script], Duration::from_secs(seconds), 1000);
        assert_eq!(ask("echo a", 60), Ok("a\n".into()));
        assert_eq!(ask("exec sleep 600", 0), Err("sh did not answer within 0 seconds".into()));
        assert!(ask("exec cat /dev/zero", 60).unwrap_err().contains("printed more than"));
        assert_eq!(ask("echo No devices; exit 6", 60), Err("sh failed, exit status: 6: No devices".into()));
        assert!(ask_within("no-such-program", &[], PATIENCE, LARGEST).unwrap_err().contains("is not on PATH"));
    }
}
