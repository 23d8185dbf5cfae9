//! A `pyproject.toml` that `gpulock export uv` edited, held against a lock. It has no header, since the file is the user's;
//! an export of the lock would leave it as it is, or it is not what the lock gives.

use super::generated::{STALE, alike, first_difference};
use super::{Beside, Format};
use crate::diag::{Diagnostic, Evidence, SourceText};
use crate::lock::Lock;

pub use crate::manifest::pyproject::is_pinned;

/// What is wrong with such a file, named `name`; `None` when it is what the lock gives for one of its targets.
/// A command that writes it anew needs `place` besides, such as ` --lock other.lock`.
pub fn judge(name: &str, text: &str, lock: &Lock, place: &str) -> Option<Diagnostic> {
    let fix = |target: &str| {
        let target = if lock.targets.len() > 1 { format!(" --target {}", super::word(target)) } else { String::new() };
        format!("write it anew: `gpulock export uv{target}{place} --pyproject {}`", super::word(name))
    };
    // Ends of lines are no pins, and the export writes its own.
    let text = &*text.replace("\r\n", "\n");
    let beside = Beside { pyproject: text, project: name, ..Beside::default() };
    let mut texts: Vec<(String, &str)> = Vec::new();
    for target in &lock.targets {
        match super::render(Format::Uv, lock, Some(&target.name), &beside) {
            Ok(wanted) if wanted == text => return None,
            Ok(wanted) => texts.push((wanted, &target.name)),
            Err(failure) => {
                let message = format!("{name} is not what this lock gives: {failure}");
                return Some(Diagnostic::error(STALE, message, Evidence::observed(name, "has pins of gpulock")));
            }
        }
    }
    // Of several that are as near, the first target.
    let (wanted, target) = texts.iter().rev().max_by_key(|(wanted, _)| alike(text, wanted))?;
    let (number, _, at) = first_difference(SourceText::new(name, text), wanted);
    let message = format!("{name} has other pins than the lock, first in line {number}");
    let gives = wanted.lines().nth(number - 1).map_or("nothing there".into(), |line| format!("`{}`", line.trim()));
    let problem = Diagnostic::error(STALE, message, at).and(Evidence::observed("the lock gives", gives));
    Some(problem.about(name).fix(fix(target)))
}
