//! Libraries that serve a GPU only by PTX, which the driver compiles when it is first used: good to know.

use crate::check::coverage::{Layout, Verdict};
use crate::check::device_code::{Offer, list, offers};
use crate::check::{Case, Claims, Outcome, Rule};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};

pub const RULE: Rule =
    Rule { code: "gpu-code-jit", level: Severity::Note, page: include_str!("../page/gpu-code-jit.md"), run };

fn run(case: &Case<'_>, _: &mut Claims<'_>) -> Result<Outcome, Failure> {
    if case.machine.is_none() {
        return Ok(Outcome::Skipped("no GPU declared".into()));
    }
    // NVIDIA's libraries bring PTX where that is how they serve a GPU.
    let is_remark = |offer: &&Offer<'_>| offer.verdict == Verdict::Jit && offer.layout == Layout::List;
    let notes = offers(case)?.iter().filter(is_remark).map(|offer| {
        let message = format!(
            "{} serves {} ({}) by PTX alone in {} of {} containers: the driver compiles it when it is first used, which \
             takes minutes for large libraries",
            offer.library.name,
            offer.gpu.name,
            offer.gpu.capability.sm(),
            offer.tally.jit,
            offer.tally.total()
        );
        let seen = Evidence::elf(&offer.library.name, list(offer.object));
        Diagnostic::note(RULE.code, message, seen).about(&offer.library.name)
    });
    Ok(Outcome::Ran(notes.collect()))
}
