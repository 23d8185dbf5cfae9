//! What a command that was run came to: the rules on each program that loaded a GPU stack, and which fault explains how it
//! ended.

use std::collections::BTreeSet;
use std::path::Path;

use super::ending::Ending;
use super::environment::{self, Judged, Question};
use super::running;
use crate::diag::{Evidence, Failure};
use crate::inventory::process::{ProcessEntry, Program};
use crate::inventory::{Inventory, Options};
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
        let mut ending = Ending::new(format!("the command ended with {}", run.ended), run.status.into());
        ending.evidence.push(Evidence::observed(run.shown(), &run.ended));
        let errors = run.programs.iter().flat_map(|program| &program.errors).rev().take(3);
        ending.evidence.extend(errors.map(|(file, error)| Evidence::observed(file, error)));
        // What the loader needed and did not find, it says to the program alone; what came last may be what it died of.
        let needed = run.programs.iter().flat_map(|program| &program.failures).rev().filter(|failure| !failure.opened);
        let last = run.programs.iter().filter_map(|program| program.last.as_ref()).filter(|last| last.opened).rev();
        let died = usize::from(run.status > 128);
        for failure in last.take(died).chain(needed.take(3)) {
            let file = failure.by.rsplit('/').next().unwrap_or(&failure.by);
            let reason = question.matrix.dlopen()?.absent(&failure.name, file).map(|row| format!(": {}", row.reason));
            let how = if failure.opened { "last looked for" } else { "needs" };
            let fact = format!("{how} {}, which is not found{}", failure.name, reason.unwrap_or_default());
            ending.evidence.push(Evidence::observed(&failure.by, fact));
            ending.after(file);
        }
        let note = ending.explained(&judged.findings.findings, question.matrix)?;
        judged.findings.findings.push(note);
    }
    Ok(judged)
}
