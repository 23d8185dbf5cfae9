//! How something ended, and which fault of its libraries explains that: of a command that was run, of a core file.

use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::inventory::process::Process;
use crate::inventory::shown;
use crate::matrix::Matrix;
use crate::matrix::schema::ExitRow;

/// An end that was no success.
#[derive(Debug)]
pub struct Ending {
    /// What ended, and how: `the command ended with signal SIGSEGV`.
    message: String,
    /// The exit status that a shell has for it.
    status: u32,
    /// Names of the files that it ended in, or that could not be loaded before, where that is known.
    libraries: Vec<String>,
    /// What was seen of it.
    pub evidence: Vec<Evidence>,
}

impl Ending {
    /// An end of which nothing was seen yet.
    pub fn new(message: String, status: u32) -> Self {
        Self { message, status, libraries: Vec::new(), evidence: Vec::new() }
    }

    /// That of a process that left a core file; `None` where it did not die.
    pub fn of_core(process: &Process, core: &str) -> Option<Self> {
        let death = process.death.as_ref().filter(|death| death.signal != 0)?;
        let library = death.at.as_ref().and_then(|path| path.file_name()).map(|name| name.to_string_lossy());
        let place = library.as_ref().map_or_else(|| "outside of every file".into(), |name| format!("in {name}"));
        let message = format!("process {} ({}) died of {} {place}", process.pid, process.name, signal(death.signal));
        let mut ending = Self::new(message, 128 + death.signal.unsigned_abs());
        ending.libraries = library.map(String::from).into_iter().collect();
        let instruction = death.instruction.map(|address| match &death.at {
            Some(path) => format!("the thread was at {address:#x}, in {}", shown(path)),
            None => format!("the thread was at {address:#x}, where no file is mapped"),
        });
        let fault = death.fault.map(|address| format!("it used the address {address:#x}"));
        ending.evidence.extend(instruction.into_iter().chain(fault).map(|seen| Evidence::observed(core, seen)));
        Some(ending)
    }

    /// It ended after a file of this name could not be loaded.
    pub fn after(&mut self, library: &str) {
        self.libraries.push(library.to_owned());
    }

    /// As a note, with the fault that is its likely cause: one of the file that it ended in, else the gravest error.
    ///
    /// # Errors
    /// A matrix whose messages cannot be read.
    pub fn explained(self, findings: &[Diagnostic], matrix: &Matrix) -> Result<Diagnostic, Failure> {
        let faults = |least| findings.iter().filter(move |finding| finding.severity >= least);
        let is_own = |finding: &&Diagnostic| {
            let name = finding.subject.as_deref().and_then(|path| path.rsplit('/').next());
            name.is_some_and(|name| self.libraries.iter().any(|library| library == name))
        };
        let own = faults(Severity::Warning).find(is_own);
        let fault = own.or_else(|| faults(Severity::Error).next());
        let row: Option<&ExitRow> = matrix.message()?.exits.iter().find(|row| row.status == self.status);
        let message = match (fault, row) {
            (Some(fault), _) => format!("{}: {} explains it", self.message, fault.code),
            (None, Some(row)) => {
                format!("{}, and no fault of its libraries explains it: {}", self.message, row.cause)
            }
            (None, None) => format!("{}, and no fault of its libraries explains it", self.message),
        };
        let mut evidence = self.evidence;
        let told = fault.map(|fault| Evidence::observed(fault.code, &fault.message));
        let at = evidence.len().min(1);
        evidence.splice(at..at, told);
        let first = if evidence.is_empty() {
            Evidence::observed("exit status", self.status.to_string())
        } else {
            evidence.remove(0)
        };
        let mut note = Diagnostic::note("command-failed", message, first);
        note.evidence.extend(evidence);
        let fix = fault.and_then(|fault| fault.fix.clone()).or_else(|| row.map(|row| row.fix.clone()));
        Ok(match fix {
            Some(fix) => note.fix(fix),
            None => note,
        })
    }
}

/// `SIGSEGV`, or the number where it has no name.
fn signal(number: i32) -> String {
    signal_hook::low_level::signal_name(number).map_or_else(|| format!("signal {number}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fault of the file that a process died in goes before a graver one, and a warning of no such file explains
    /// nothing.
    #[test]
    fn which_fault_explains_it() {
        let seen = || Evidence::observed("a", "b");
        let other = Diagnostic::error("other", "another file", seen()).about("a/libother.so.1");
        let own = Diagnostic::warning("own", "the file itself", seen()).about("nvidia/lib/libown.so.1");
        let explains = |findings: &[Diagnostic], library: &str| {
            let mut ending = Ending::new("it ended".into(), 1);
            ending.after(library);
            ending.explained(findings, &Matrix::embedded()).unwrap().message
        };
        assert_eq!(explains(&[other.clone(), own.clone()], "libown.so.1"), "it ended: own explains it");
        assert_eq!(explains(&[other, own.clone()], "libc.so.6"), "it ended: other explains it");
        assert!(explains(&[own], "libc.so.6").contains("no fault of its libraries explains it"));
    }
}
