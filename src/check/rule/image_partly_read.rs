//! Parts of an image that a container has and that were not read.

use crate::check::{Case, Claims, Outcome, Rule};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};

pub const RULE: Rule =
    Rule { code: "image-partly-read", level: Severity::Note, page: include_str!("../page/image-partly-read.md"), run };

fn run(case: &Case<'_>, _: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let unread = case.inventory.image.iter().flat_map(|image| &image.unread);
    let note = |part: &String| {
        let seen = Evidence::observed(case.inventory.subject.given.display().to_string(), part.clone());
        Diagnostic::note(RULE.code, format!("not judged: {part}"), seen)
            .fix("say with --set-env what it sets, or verify the unpacked image: apptainer build --sandbox FOLDER FILE")
    };
    Ok(Outcome::Ran(unread.map(note).collect()))
}
