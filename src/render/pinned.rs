//! A `pyproject.toml` that `gpulock export uv` edited, held against a lock. It has no header, since the file is the user's;
//! an export of the lock would leave it as it is, or it is not what the lock gives.

use super::generated::{STALE, alike};
use super::{Beside, Format};
use crate::diag::{Diagnostic, Evidence, SourceText};
use crate::lock::Lock;

pub use crate::manifest::pyproject::is_pinned;

/// What is wrong with such a file, named `name`; `None` when it is what the lock gives for one of its targets.
pub fn judge(name: &str, text: &str, lock: &Lock) -> Option<Diagnostic> {
    let fix = |target: &str| {
        let target = if lock.targets.len() > 1 { format!(" --target {target}") } else { String::new() };
        format!("write it anew: `gpulock export uv{target} --pyproject {name}`")
    };
    // Ends of lines are no pins, and the export writes its own.
    let text = &*text.replace("\r\n", "\n");
    let beside = Beside { pyproject: text, project: name, ..Beside::default() };
    let mut nearest: Option<(usize, String, &str)> = None;
    for target in &lock.targets {
        match super::render(Format::Uv, lock, Some(&target.name), &beside) {
            Ok(wanted) if wanted == text => return None,
            Ok(wanted) => {
                let same = alike(text, &wanted);
                if nearest.as_ref().is_none_or(|(most, ..)| same > *most) {
                    nearest = Some((same, wanted, &target.name));
                }
            }
            Err(failure) => {
                let message = format!("{name} is not what this lock gives: {failure}");
                return Some(Diagnostic::error(STALE, message, Evidence::observed(name, "has pins of gpulock")));
            }
        }
    }
    let (same, wanted, target) = nearest?;
    let start: usize = text.split_inclusive('\n').take(same).map(str::len).sum();
    let line = text[start..].lines().next().unwrap_or_default();
    let message = format!("{name} has other pins than the lock, first in line {}", same + 1);
    let gives = wanted.lines().nth(same).map_or("nothing there".into(), |line| format!("`{}`", line.trim()));
    let place = SourceText::new(name, text).span(Some(start..start + line.len()));
    let problem = Diagnostic::error(STALE, message, place).and(Evidence::observed("the lock gives", gives));
    Some(problem.about(name).fix(fix(target)))
}
