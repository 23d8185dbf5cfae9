//! The processes of a machine: takes `/proc`, gives who is there, whose child each is and what it is called (proc_pid_stat(5)).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::super::{root, shown};

/// Texts of the kernel are smaller, in bytes: a million mappings with long names.
const LIMIT: u64 = 256 << 20;

/// The kernel's file system of processes.
#[derive(Debug, Clone)]
pub struct ProcFs {
    folder: PathBuf,
}

/// One process, as `stat` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessEntry {
    /// Its number.
    pub pid: u32,
    /// Who started it.
    pub parent: u32,
    /// The name of its program, at most 15 bytes.
    pub name: String,
    /// When it was started, in clock ticks since the machine was: with the number, that is one process.
    pub started: u64,
}

impl Default for ProcFs {
    /// This machine's.
    fn default() -> Self {
        Self::new("/proc")
    }
}

impl ProcFs {
    /// The one that is mounted at, or was copied to, `folder`.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The folder of one process.
    pub(super) fn of(&self, pid: u32) -> PathBuf {
        self.folder.join(pid.to_string())
    }

    /// The folder of this process itself.
    pub(super) fn own(&self) -> PathBuf {
        self.folder.join("self")
    }

    /// One process.
    ///
    /// # Errors
    /// When there is none of that number.
    pub fn entry(&self, pid: u32) -> io::Result<ProcessEntry> {
        let text = self.read(pid, "stat")?;
        entry(pid, &text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "its `stat` is not understood"))
    }

    /// All processes, by number.
    ///
    /// # Errors
    /// When the folder cannot be listed.
    pub fn all(&self) -> io::Result<Vec<ProcessEntry>> {
        let pids = fs::read_dir(&self.folder)?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        // Those that end meanwhile are left out.
        let mut all: Vec<ProcessEntry> = pids.filter_map(|pid: u32| self.entry(pid).ok()).collect();
        all.sort_by_key(|entry| entry.pid);
        Ok(all)
    }

    /// The names of the files that a process has mapped, without their folders.
    ///
    /// # Errors
    /// When it has ended, or belongs to somebody else.
    pub fn mapped_names(&self, pid: u32) -> io::Result<Vec<String>> {
        let text = self.read(pid, "maps")?;
        let name = |path: &[u8]| {
            String::from_utf8_lossy(path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)).into_owned()
        };
        Ok(super::maps::parse(&text).iter().map(|file| name(file.path)).collect())
    }

    pub(super) fn read(&self, pid: u32, name: &str) -> io::Result<Vec<u8>> {
        root::read_regular(&self.of(pid).join(name), LIMIT)
    }
}

/// A process and all that it started, and those started, in the order of their numbers; itself first.
pub fn with_children(pid: u32, all: &[ProcessEntry]) -> Vec<u32> {
    let mut found = vec![pid];
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        let children = all.iter().filter(|entry| entry.parent == parent).map(|entry| entry.pid);
        for child in children.collect::<Vec<_>>() {
            if !found.contains(&child) {
                found.push(child);
            }
        }
        at += 1;
    }
    found
}

/// `4242 (a name) S 1 ...`: the name may itself hold blanks and brackets.
fn entry(pid: u32, text: &[u8]) -> Option<ProcessEntry> {
    let open = text.iter().position(|byte| *byte == b'(')?;
    let close = text.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(text.get(close + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace().skip(1);
    let parent = fields.next()?.parse().ok()?;
    // Field 22; `parent` is field 4.
    let started = fields.nth(17)?.parse().ok()?;
    let name = String::from_utf8_lossy(text.get(open + 1..close)?).into_owned();
    Some(ProcessEntry { pid, parent, name: shown(Path::new(&name)), started })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_brackets() {
        let text = b"7 (a) b) S 3 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 12345 0 0\n";
        let expected = ProcessEntry { pid: 7, parent: 3, name: "a) b".into(), started: 12345 };
        assert_eq!(entry(7, text), Some(expected));
        assert_eq!(entry(7, b"7 (a"), None);
    }

    #[test]
    fn children_of_children() {
        let entry = |pid, parent| ProcessEntry { pid, parent, name: String::new(), started: 0 };
        let all = [entry(1, 0), entry(2, 1), entry(3, 2), entry(4, 1), entry(5, 9), entry(9, 3)];
        assert_eq!(with_children(2, &all), [2, 3, 9, 5]);
        assert_eq!(with_children(5, &all), [5]);
    }
}
