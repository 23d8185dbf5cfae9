//! Libraries that serve a GPU only by PTX, which the driver compiles when it is first used: good to know.

use crate::check::coverage::{Layout, Verdict};
use crate::check::device_code::{Offer, by_package, list, offers, subject};
use crate::check::{Case, Claims, Outcome, Rule};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};

pub const RULE: Rule =
    Rule { code: "gpu-code-jit", level: Severity::Note, page: include_str!("../page/gpu-code-jit.md"), run };

fn run(case: &Case<'_>, _: &mut Claims<'_>) -> Result<Outcome, Failure> {
    if case.machine.is_none_or(|machine| machine.gpus.is_empty()) {
        return Ok(Outcome::Skipped("no GPU declared".into()));
    }
    // NVIDIA's libraries bring PTX where that is how they serve a GPU.
    let is_remark = |offer: &&Offer<'_>| offer.verdict == Verdict::Jit && offer.layout == Layout::List;
    let notes = by_package(case, offers(case)?.iter().filter(is_remark)).into_iter().map(|group| {
        let count = |of: fn(&Offer<'_>) -> usize| group.iter().map(|offer| of(offer)).sum::<usize>();
        let gpu = group[0].gpu;
        let message = format!(
            "{} {} {} ({}) by PTX alone in {} of {} containers: the driver compiles it when it is first used, which takes \
             minutes for large libraries",
            subject(case, &group),
            if group.len() == 1 { "serves" } else { "serve" },
            gpu.name,
            gpu.capability.sm(),
            count(|offer| offer.tally.jit),
            count(|offer| offer.tally.total())
        );
        let mut seen = group.iter().map(|offer| Evidence::elf(&offer.library.name, list(offer.object)));
        let first = seen.next()?;
        Some(seen.fold(Diagnostic::note(RULE.code, message, first).about(&group[0].library.name), Diagnostic::and))
    });
    Ok(Outcome::Ran(notes.flatten().collect()))
}
