//! `--probe`: a small program of Python that makes an environment load what is loaded late, and what static reading and
//! that run say, side by side.

use std::ffi::OsString;
use std::path::Path;

use clap::ValueEnum;

use super::environment::{self, Judged, Question};
use super::{run, watched};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::report::verify::run::Run;

/// What to load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Probe {
    /// PyTorch, and what it opens when it is first used
    Torch,
    /// All parts of the cuDNN that PyTorch uses
    Cudnn,
    /// JAX and its plugin
    Jax,
    /// ONNX Runtime and its CUDA provider
    Onnxruntime,
}

impl Probe {
    fn name(self) -> &'static str {
        match self {
            Self::Torch => "torch",
            Self::Cudnn => "cudnn",
            Self::Jax => "jax",
            Self::Onnxruntime => "onnxruntime",
        }
    }

    fn code(self) -> &'static str {
        match self {
            Self::Torch => include_str!("../../templates/probe/torch.py"),
            Self::Cudnn => include_str!("../../templates/probe/cudnn.py"),
            Self::Jax => include_str!("../../templates/probe/jax.py"),
            Self::Onnxruntime => include_str!("../../templates/probe/onnxruntime.py"),
        }
    }
}

/// Reads the environment, runs the probe with its Python, and gives both in one.
///
/// # Errors
/// A subject that cannot be read or has no Python of its own.
pub fn judge(probe: Probe, question: &Question<'_>) -> Result<(Judged, Run), Failure> {
    let mut judged = environment::judge(question.clone())?;
    let python = python(question.subject)?;
    let words = [python, "-W".into(), "ignore".into(), "-c".into(), probe.code().into()];
    let mut run = run::run(&words, &question.variables, run::Stdout::Ours)?;
    run.command = format!("probe {}", probe.name());
    let seen = watched::judge(question, &run)?;
    let compared = compared(probe, &judged, &seen, &run);
    // What both say is said once, with what the run showed of it.
    for finding in seen.findings.findings {
        let same =
            |known: &&mut Diagnostic| fault(known.code) == fault(finding.code) && known.subject == finding.subject;
        match judged.findings.findings.iter_mut().find(same) {
            Some(known) => known.evidence.push(Evidence::observed(&run.command, "the run shows it")),
            None => judged.findings.findings.push(finding),
        }
    }
    judged.findings.findings.push(compared);
    judged.findings.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    Ok((judged, run))
}

/// What is one fault under two names: before a process runs, and in it.
fn fault(code: &'static str) -> &'static str {
    if code == "loaded-from-elsewhere" { "shadowed-library" } else { code }
}

fn python(subject: &Path) -> Result<OsString, Failure> {
    let python = subject.join("bin/python");
    if python.is_file() {
        return Ok(std::path::absolute(&python).unwrap_or(python).into());
    }
    let evidence = Evidence::observed(python.display().to_string(), "no such file");
    let error = Diagnostic::error("not-a-subject", "a probe runs in a virtual environment, with its Python", evidence);
    Err(Failure::unanswerable(error.fix("name the environment's folder, or run a command of your own behind `--`")))
}

/// What reading and running say, side by side.
fn compared(probe: Probe, read: &Judged, seen: &Judged, run: &Run) -> Diagnostic {
    let faults = |judged: &Judged| {
        let all = judged.findings.findings.iter().filter(|finding| finding.severity >= Severity::Warning);
        let mut codes: Vec<&str> = all.map(|finding| fault(finding.code)).collect();
        codes.sort_unstable();
        codes.dedup();
        codes
    };
    let (of_read, of_run) = (faults(read), faults(seen));
    let words = |codes: &[&str]| if codes.is_empty() { "clean".to_owned() } else { codes.join(", ") };
    // What was not asked is not missed.
    let skipped = read.findings.skipped.iter().filter(|(code, _)| of_run.contains(code));
    let skipped: String = skipped.map(|(code, why)| format!(" ({code} is skipped, {why})")).collect();
    let (of_read, of_run) = (words(&of_read) + &skipped, words(&of_run));
    let message = format!("static: {of_read}; run of {}: {}, {of_run}", probe.name(), run.ended);
    Diagnostic::note("probe", message, Evidence::observed(&run.command, &run.ended))
}
