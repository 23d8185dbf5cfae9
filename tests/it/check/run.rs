//! Programs that were listened to, made for a test: what glibc's loader says of one that has loaded certain files, and the
//! rules on that.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use gpulock::check::Findings;
use gpulock::inventory::process::trace;
use gpulock::inventory::{Inventory, Options};

use super::venv::{Question, Venv, judge};
use crate::link::fixture::Elf;

/// What the loader of one program said.
pub struct Trace {
    program: PathBuf,
    text: String,
}

impl Trace {
    /// Of a Python that has loaded nothing yet.
    pub fn of(venv: &Venv) -> Self {
        let program = venv.path().parent().unwrap().canonicalize().unwrap().join("bin/python3.11");
        Elf::program().defines(&["PyModule_Create2"]).write(&program);
        let mut trace = Self { program, text: String::new() };
        trace.says(&format!("file=libc.so.6 [0];  needed by {} [0]", trace.program.display()));
        trace.says("  trying file=/nowhere/lib/libc.so.6");
        trace.says("file=libc.so.6 [0];  generating link map");
        trace.says(&format!("initialize program: {}", trace.program.display()));
        trace
    }

    fn says(&mut self, line: &str) {
        let _ = writeln!(self.text, "      7:\t{line}");
    }

    /// It opens a file, which misses what it needs, in folders that are not there; ready where that is nothing.
    pub fn opens(&mut self, path: &Path, missing: &[&str]) {
        let path = path.canonicalize().unwrap();
        let (path, program) = (path.display(), self.program.display().to_string());
        self.says(&format!("file={path} [0];  dynamically loaded by {program} [0]"));
        self.says(&format!("file={path} [0];  generating link map"));
        for name in missing {
            self.says(&format!("file={name} [0];  needed by {path} [0]"));
            for folder in ["glibc-hwcaps/x86-64-v3", "tls/x86_64", "x86_64", ""] {
                let folder = Path::new("/nowhere/lib").join(folder);
                self.says(&format!(" search path={}\t\t(system search path)", folder.display()));
                self.says(&format!("  trying file={}", folder.join(name).display()));
            }
        }
        if missing.is_empty() {
            self.says(&format!("calling init: {path}"));
        }
    }

    pub fn check(&self) -> Findings {
        let program = trace::parse(self.text.as_bytes(), &|_| None).pop().unwrap();
        let options = Options { jobs: Some(1), ..Options::default() };
        let inventory = Inventory::of_run(&program, Path::new("python job.py"), &options);
        judge(&inventory, Path::new("/"), &Question::default())
    }
}

/// A machine without a driver: what needs it is not loaded, and nobody looks for its symbols.
#[test]
fn without_a_driver() {
    let venv = Venv::with_torch();
    let mut trace = Trace::of(&venv);
    for path in super::process::TORCH {
        trace.opens(&venv.site().join(path), &[]);
    }
    assert_eq!(trace.check().findings, []);
    let extension = Elf::library("fast.so").needed(&["libcuda.so.1"]).asks(&["cuTensorMapEncodeTiled"]);
    venv.install("fast", "1.0", &[], &[("fast/fast.so", extension)]);
    trace.opens(&venv.site().join("fast/fast.so"), &["libcuda.so.1"]);
    assert_eq!(trace.check().findings, []);
}

/// The places that were looked into are told without those for newer processors.
#[test]
fn places_are_told_once() {
    let venv = Venv::with_torch();
    let mut trace = Trace::of(&venv);
    for path in super::process::TORCH {
        trace.opens(&venv.site().join(path), &[]);
    }
    venv.install("slow", "1.0", &[], &[("slow/slow.so", Elf::library("slow.so").needed(&["libnowhere.so.1"]))]);
    trace.opens(&venv.site().join("slow/slow.so"), &["libnowhere.so.1"]);
    let found = trace.check();
    let finding = super::venv::the_problem(&found, "unresolved-needed");
    let words = super::venv::words(finding);
    assert!(words.contains("default folder /nowhere/lib"), "{words}");
    assert!(!words.contains("hwcaps") && !words.contains("x86_64"), "{words}");
}
