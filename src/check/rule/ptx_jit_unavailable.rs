//! Libraries of which only PTX would serve a GPU, and the driver is too old to compile that PTX.

use crate::check::coverage::Verdict;
use crate::check::device_code::{list, offers};
use crate::check::{Case, Claims, Outcome, Rule};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::elf::CodeKind;

pub const RULE: Rule = Rule {
    code: "ptx-jit-unavailable",
    level: Severity::Error,
    page: include_str!("../page/ptx-jit-unavailable.md"),
    run,
};

fn run(case: &Case<'_>, _: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let Some((_, driver)) = case.driver() else {
        return Ok(Outcome::Skipped("no driver declared".into()));
    };
    let facts = case.matrix.cuda()?;
    let mut findings = Vec::new();
    for offer in offers(case)? {
        if offer.verdict != Verdict::PtxTooNew || !offer.is_needed() {
            continue;
        }
        let codes = [&offer.object.gpu_code, &offer.object.gpu_code_embedded];
        let isas = codes.into_iter().flat_map(|codes| codes.codes()).filter(|(code, _)| code.kind == CodeKind::Ptx);
        let Some(isa) = isas.filter_map(|(code, _)| code.isa.clone()).min() else { continue };
        let message = format!(
            "{} serves {} ({}) by PTX alone, and driver {} cannot compile PTX {isa}: loading it fails with \"the provided \
             PTX was compiled with an unsupported toolchain\"",
            offer.library.name,
            offer.gpu.name,
            offer.gpu.capability.sm(),
            driver.given
        );
        let seen = Evidence::elf(&offer.library.name, format!("{}; PTX ISA {isa}", list(offer.object)));
        let mut finding = Diagnostic::error(RULE.code, message, seen).about(&offer.library.name);
        if let Some(own) = &driver.ptx_isa {
            let claim = format!("driver {} compiles PTX up to {own}", driver.given);
            let native = facts.native_cuda(&driver.decides).and_then(|cuda| facts.get(cuda));
            finding = finding.and(Evidence::fact(claim, native.map_or("", |file| &file.source)));
        }
        let newer = facts.cudas.iter().find(|file| file.ptx_isa.as_ref().is_some_and(|one| *one >= isa));
        if let Some(needed) = newer.and_then(|file| facts.native(file.cuda)) {
            finding = finding.fix(format!("install driver {} or later", needed.driver));
        }
        findings.push(finding);
    }
    Ok(Outcome::Ran(findings))
}
