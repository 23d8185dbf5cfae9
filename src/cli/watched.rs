//! What a command that was run came to: the rules on each program that loaded a GPU stack, and which fault explains how it
//! ended.

use std::collections::BTreeSet;
use std::path::Path;

use super::environment::{self, Judged, Question};
use super::running;
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::inventory::process::{ProcessEntry, Program};
use crate::inventory::{Inventory, Options};
use crate::matrix::Matrix;
use crate::matrix::schema::ExitRow;
use crate::report::verify::run::Run;

/// Programs that loaded different files are judged one by one, up to so many.
const MOST: usize = 64;

/// Runs the rules on what the programs of a command loaded.
///
/// # Errors
/// A GPU or driver that is unknown.
pub fn judge(question: &Question<'_>, run: &Run) -> Result<Judged, Failure> {
    let mut seen = BTreeSet::new();
    let new = |program: &&Program| {
        let files: Vec<&Path> = program.loads.iter().map(|load| load.path()).collect();
        seen.insert((program.program.clone(), format!("{files:?}"), program.failures.len()))
    };
    let programs = run.programs.iter().filter(new).take(MOST);
    let each = programs.map(|program| {
        let options = Options { variables: question.variables.clone(), ..Options::default() };
        let inventory = Inventory::of_run(program, Path::new(&run.shown()), &options);
        let entry = ProcessEntry { pid: program.pid, parent: 0, name: program.program.clone(), started: 0 };
        (environment::judge_of(&inventory, question.clone()), entry)
    });
    let mut judged = running::merged(each)?;
    if run.status != 0 {
        let ending = ending(run, &judged, question.matrix)?;
        judged.findings.findings.push(ending);
    }
    Ok(judged)
}

/// How the command ended, and the gravest fault of its libraries, which is its likely cause.
fn ending(run: &Run, judged: &Judged, matrix: &Matrix) -> Result<Diagnostic, Failure> {
    let fault = judged.findings.findings.iter().find(|finding| finding.severity == Severity::Error);
    let row: Option<&ExitRow> = matrix.message()?.exits.iter().find(|row| row.status == u32::from(run.status));
    let message = match (fault, row) {
        (Some(fault), _) => format!("the command ended with {}: {} explains it", run.ended, fault.code),
        (None, Some(row)) => {
            format!("the command ended with {}, and no fault of its libraries explains it: {}", run.ended, row.cause)
        }
        (None, None) => format!("the command ended with {}, and no fault of its libraries explains it", run.ended),
    };
    let mut note = Diagnostic::note("command-failed", message, Evidence::observed(run.shown(), &run.ended));
    note.evidence.extend(fault.map(|fault| Evidence::observed(fault.code, &fault.message)));
    let errors = run.programs.iter().flat_map(|program| &program.errors).rev().take(3);
    note.evidence.extend(errors.map(|(file, error)| Evidence::observed(file, error)));
    Ok(match fault.and_then(|fault| fault.fix.clone()).or_else(|| row.map(|row| row.fix.clone())) {
        Some(fix) => note.fix(fix),
        None => note,
    })
}
