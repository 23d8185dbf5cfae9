//! Libraries without code for a GPU of the machines.

use std::collections::{BTreeMap, BTreeSet};

use crate::check::coverage::Verdict;
use crate::check::device_code::{Offer, by_package, list, offers, subject};
use crate::check::{Case, Claims, Outcome, Rule, stack};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::matrix::{Gpu, Served, Usage};
use crate::python::Platform;
use crate::version::Pep440;

pub const RULE: Rule =
    Rule { code: "gpu-code-missing", level: Severity::Error, page: include_str!("../page/gpu-code-missing.md"), run };

/// Libraries that a finding names; that there are more is said.
const SHOWN: usize = 6;

fn run(case: &Case<'_>, _: &mut Claims<'_>) -> Result<Outcome, Failure> {
    if case.machine.is_none_or(|machine| machine.gpus.is_empty()) {
        return Ok(Outcome::Skipped("no GPU declared".into()));
    }
    let offers = offers(case)?;
    let mut findings = Vec::new();
    for (_, missing) in grouped(case, offers)? {
        findings.extend(finding(case, missing)?);
    }
    findings.extend(offers.iter().filter_map(unused));
    let parts = offers.iter().filter(|offer| offer.verdict == Verdict::Part);
    findings.extend(by_package(case, parts).iter().filter_map(|group| remark(case, group, in_part)));
    let others = offers.iter().filter(|offer| offer.verdict == Verdict::Missing && is_for_others(offer));
    findings.extend(by_package(case, others).iter().filter_map(|group| remark(case, group, for_others)));
    Ok(Outcome::Ran(findings))
}

/// What is missing, by GPU and by what has to be replaced: torch with all that it brings, or another package.
type Groups<'o, 'a> = BTreeMap<(String, String), Vec<&'o Offer<'a>>>;

fn grouped<'o, 'a>(case: &Case<'a>, offers: &'o [Offer<'a>]) -> Result<Groups<'o, 'a>, Failure> {
    let packages = case.matrix.package()?;
    let mut groups = Groups::new();
    for offer in offers.iter().filter(|offer| offer.verdict == Verdict::Missing && offer.is_needed()) {
        let owner = stack::package(case.inventory, offer.library);
        let owner = owner.map_or(offer.library.name.clone(), |package| package.name.to_string());
        groups.entry((offer.gpu.name.clone(), owner)).or_default().push(offer);
    }
    // Where torch itself has no code, what belongs to it is not worth findings of its own.
    let gpus: BTreeSet<String> = offers.iter().map(|offer| offer.gpu.name.clone()).collect();
    for gpu in gpus {
        if groups.contains_key(&(gpu.clone(), "torch".into())) {
            let of_torch = |owner: &str| owner.parse().is_ok_and(|name| packages.is_gpu(&name));
            let own: Vec<_> = groups.keys().filter(|(of, owner)| *of == gpu && of_torch(owner)).cloned().collect();
            let merged: Vec<_> = own.into_iter().filter_map(|key| groups.remove(&key)).flatten().collect();
            groups.insert((gpu, "torch".into()), merged);
        }
    }
    Ok(groups)
}

fn finding(case: &Case<'_>, mut missing: Vec<&Offer<'_>>) -> Result<Option<Diagnostic>, Failure> {
    // The largest is what people know the package by; then by name.
    let rank = |offer: &Offer<'_>| (stack::is_torch(case.inventory, offer.library), offer.library.size);
    let Some(main) = missing.iter().copied().max_by_key(|offer| rank(offer)) else { return Ok(None) };
    missing.sort_by_key(|offer| (!std::ptr::eq(*offer, main), &offer.library.name));
    let owner = stack::package(case.inventory, main.library);
    let what = owner.map_or(main.library.name.clone(), |package| format!("{} {}", package.name, package.version));
    let gpu = main.gpu;
    let named = match &missing[..] {
        [only] if !stack::is_torch(case.inventory, only.library) => format!("{} of {what}", only.library.name),
        _ => what,
    };
    let message = format!(
        "{named} has no code for {}: its first kernel there fails with \"no kernel image is available for execution on \
         the device\"",
        shown(gpu)
    );
    let mut evidence = missing.iter().map(|offer| {
        let served = offer.tally.sass + offer.tally.jit;
        let rest = match served {
            0 => String::new(),
            _ => format!("; {served} of {} containers serve it", offer.tally.total()),
        };
        Evidence::elf(&offer.library.name, format!("{}{rest}", list(offer.object)))
    });
    let Some(first) = evidence.next() else { return Ok(None) };
    let mut finding = Diagnostic::error(RULE.code, message, first).about(&main.library.name);
    finding.evidence.extend(evidence.by_ref().take(SHOWN - 1));
    let rest = evidence.count();
    if rest > 0 {
        finding = finding
            .and(Evidence::observed("the rest of the stack", format!("{rest} more libraries without code for it")));
    }
    if let Some(row) = case.matrix.gpu()?.get(gpu.capability) {
        let claim = format!("{} has compute capability {}", gpu.name, gpu.capability);
        finding = finding.and(Evidence::fact(claim, &row.source));
    }
    let is_torch = owner.is_some_and(|package| package.name.as_str() == "torch");
    let newer = if is_torch { torch_for(case, gpu)? } else { None };
    Ok(Some(finding.fix(match newer {
        Some((torch, variant)) => {
            let driver = case.driver().map_or(String::new(), |(_, driver)| format!(" --driver '{}'", driver.given));
            let python = case.inventory.pythons.first().and_then(|python| python.version);
            let python = python.map_or(String::new(), |python| format!(" --python {python}"));
            format!(
                "gpulock resolve --dry-run --gpu \"{}\"{driver}{python} --torch '{torch}' finds a build that has it and runs \
                 there, such as {variant}",
                gpu.name
            )
        }
        None if is_torch => format!("no torch that is known here has code for {}", shown(gpu)),
        None => format!("take a release of it that is built for {}, or build it for that", gpu.capability.sm()),
    })))
}

/// The torch releases that serve a GPU: from the oldest such release that is not older than the installed one, else up
/// to the newest such release.
fn torch_for(case: &Case<'_>, gpu: &Gpu) -> Result<Option<(String, String)>, Failure> {
    let installed = stack::distribution(case.inventory, "torch").and_then(|torch| torch.pep440());
    let platform = case.inventory.loader.platform.unwrap_or(Platform::LinuxX86_64);
    let gpus = case.matrix.gpu()?;
    let mut serving = Vec::new();
    for build in case.matrix.torch()?.builds(platform) {
        let Some(code) = &build.row().code else { continue };
        let served = gpus.serve(code, gpu.capability, build.row().cuda, None, None);
        if matches!(served, Served::Sass(_) | Served::Ptx(_)) {
            serving.push((build.release().version.clone(), build.row().variant.clone()));
        }
    }
    serving.sort();
    let not_older = |version: &Pep440| installed.as_ref().is_none_or(|installed| version >= installed);
    let newer = serving.iter().find(|(version, _)| not_older(version));
    let newer = newer.map(|(version, variant)| (format!(">={version}"), format!("{version}+{variant}")));
    let newest = serving.last().map(|(version, variant)| (format!("<={version}"), format!("{version}+{variant}")));
    Ok(newer.or(newest))
}

/// A library that this GPU does without. What no GPU needs is not worth a word.
fn unused(offer: &Offer<'_>) -> Option<Diagnostic> {
    let (Verdict::Missing, Usage::Unused(row)) = (offer.verdict, offer.usage) else { return None };
    row.from.or(row.below)?;
    let message =
        format!("{} has no code for {}, which does without it: {}", offer.library.name, shown(offer.gpu), row.reason);
    let seen = Evidence::elf(&offer.library.name, list(offer.object));
    let fact = Evidence::fact(&row.reason, &row.source);
    Some(Diagnostic::note(RULE.code, message, seen).about(&offer.library.name).and(fact))
}

/// Whether a library may be for other GPUs than this one, for which its package has code elsewhere.
fn is_for_others(offer: &Offer<'_>) -> bool {
    matches!(offer.usage, Usage::Unknown) && !offer.is_needed()
}

fn in_part(who: &str, gpu: &str, group: &[&Offer<'_>]) -> String {
    let served: usize = group.iter().map(|offer| offer.tally.sass + offer.tally.jit).sum();
    let total: usize = group.iter().map(|offer| offer.tally.total()).sum();
    let verb = if group.len() == 1 { "serves" } else { "serve" };
    format!("{who} {verb} {gpu} in part: {served} of {total} containers; what the rest holds was not built for it")
}

fn for_others(who: &str, gpu: &str, group: &[&Offer<'_>]) -> String {
    let verb = if group.len() == 1 { "has" } else { "have" };
    format!(
        "{who} {verb} no code for {gpu}, which the package has in other libraries; whether anything uses it there is not \
         known"
    )
}

/// What is good to know of some libraries of a package.
fn remark(case: &Case<'_>, group: &[&Offer<'_>], words: fn(&str, &str, &[&Offer<'_>]) -> String) -> Option<Diagnostic> {
    let mut seen = group.iter().map(|offer| Evidence::elf(&offer.library.name, list(offer.object)));
    let message = words(&subject(case, group), &shown(group[0].gpu), group);
    let note = Diagnostic::note(RULE.code, message, seen.next()?).about(&group[0].library.name);
    Some(seen.fold(note, Diagnostic::and))
}

fn shown(gpu: &Gpu) -> String {
    let sm = gpu.capability.sm();
    if gpu.name == sm { sm } else { format!("{} ({sm})", gpu.name) }
}
