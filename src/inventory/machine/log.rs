//! What NVIDIA's kernel driver logged of faults: lines with `NVRM: Xid`.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::files::Files;
use super::reading::Reading;
use crate::inventory::root::NONBLOCK;

const KMSG: &str = "/dev/kmsg";
/// Where syslog keeps what the kernel says: Debian's and Red Hat's file.
const FILES: [&str; 2] = ["/var/log/kern.log", "/var/log/messages"];
/// How a line begins that tells of a fault.
const XID: &str = "NVRM: Xid";
/// A record is smaller, in bytes (kernel/printk/printk.c, `PRINTK_MESSAGE_MAX`), and the ring holds fewer.
const RECORD: usize = 8 << 10;
const MOST_RECORDS: usize = 1 << 18;
/// Lines that are kept, the newest.
const MOST_LINES: usize = 1000;

/// A fault that the driver logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Xid {
    /// Where the GPU is: `0000:01:00`.
    pub address: String,
    /// Its number.
    pub number: u32,
    /// What follows the number.
    pub text: String,
}

/// Whether the root is this machine says whether `/dev/kmsg` may be opened.
pub(super) fn read(files: &Files<'_>, is_here: bool) -> Reading<Vec<Xid>> {
    let ring = if is_here { ring(files) } else { captured(files, KMSG) };
    FILES.iter().fold(ring, |found, path| found.or(|| captured(files, path)))
}

fn is_xid(line: &str) -> bool {
    line.contains(XID)
}

fn captured(files: &Files<'_>, path: &str) -> Reading<Vec<Xid>> {
    let lines = files.peek_lines(path, is_xid);
    if let Some(text) = lines.value() {
        files.keep(path, &kept(text.lines()));
    }
    lines.and_then(|text| Some(parsed(text.lines())))
}

/// What of the lines is kept: from the driver's word on, without the name of the machine and those of programs.
fn kept<'l>(lines: impl Iterator<Item = &'l str>) -> String {
    let one = |line: &str| {
        let line = &line[line.find(XID)?..];
        let parts: Vec<&str> = line.split(", ").filter(|part| !part.starts_with("name=")).collect();
        Some(parts.join(", ") + "\n")
    };
    lines.filter_map(one).collect()
}

fn ring(files: &Files<'_>) -> Reading<Vec<Xid>> {
    let unread = |error: std::io::Error| {
        let why = match error.kind() {
            std::io::ErrorKind::PermissionDenied => "permission denied (the log is for root alone)".to_owned(),
            std::io::ErrorKind::NotFound => return Reading::Absent(KMSG.into()),
            _ => error.to_string(),
        };
        files.unread(KMSG, &why);
        Reading::unread(KMSG, &why)
    };
    let mut file = match OpenOptions::new().read(true).custom_flags(NONBLOCK).open(Path::new(KMSG)) {
        Ok(file) => file,
        Err(error) => return unread(error),
    };
    let mut record = [0; RECORD];
    let mut lines: Vec<String> = Vec::new();
    for _ in 0..MOST_RECORDS {
        // One record a read; EPIPE says that some were lost meanwhile.
        match file.read(&mut record) {
            Ok(0) => break,
            Ok(count) => {
                let text = String::from_utf8_lossy(&record[..count]);
                lines.extend(text.lines().filter(|line| is_xid(line)).map(str::to_owned));
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
            Err(error) if matches!(error.kind(), std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::Interrupted) => {}
            Err(error) => return unread(error),
        }
    }
    lines.drain(..lines.len().saturating_sub(MOST_LINES));
    files.keep(KMSG, &kept(lines.iter().map(String::as_str)));
    let fact = format!("{} lines with NVRM: Xid since the start of the machine", lines.len());
    Reading::of(parsed(lines.iter().map(String::as_str)), KMSG, &fact)
}

/// `NVRM: Xid (PCI:0000:01:00): 79, pid=1234, GPU has fallen off the bus.`
fn parsed<'l>(lines: impl Iterator<Item = &'l str>) -> Vec<Xid> {
    let one = |line: &str| {
        let rest = line.split_once("NVRM: Xid (")?.1;
        let (address, rest) = rest.split_once("):")?;
        let (number, text) = rest.split_once(',').unwrap_or((rest, ""));
        let address = address.strip_prefix("PCI:").unwrap_or(address).to_owned();
        Some(Xid { address, number: number.trim().parse().ok()?, text: text.trim().to_owned() })
    };
    lines.filter_map(one).take(MOST_LINES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_driver() {
        let lines = [
            "3,1024,5071690,-;NVRM: Xid (PCI:0000:01:00): 79, pid=1234, GPU has fallen off the bus.",
            "Jan 1 00:00:00 h kernel: NVRM: Xid (0000:01:00): 13, Graphics Exception",
            "NVRM: Xid (PCI:0000:01:00): many",
            "NVRM: Xid",
        ];
        let found: Vec<(String, u32, String)> =
            parsed(lines.into_iter()).into_iter().map(|xid| (xid.address, xid.number, xid.text)).collect();
        let expected = [
            ("0000:01:00".to_owned(), 79, "pid=1234, GPU has fallen off the bus.".to_owned()),
            ("0000:01:00".to_owned(), 13, "Graphics Exception".to_owned()),
        ];
        assert_eq!(found, expected);
    }
}
