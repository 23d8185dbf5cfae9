//! A package that is installed for GPUs and computes on the CPU, since its GPU library cannot be loaded.

use std::collections::BTreeSet;

use crate::check::{Case, Claims, Outcome, Rule, evidence, stack};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::inventory::Distribution;
use crate::link::{Context, Problem, Root};
use crate::matrix::schema::FallbackRow;

pub const RULE: Rule =
    Rule { code: "cpu-fallback", level: Severity::Warning, page: include_str!("../page/cpu-fallback.md"), run };

fn run(case: &Case<'_>, _: &mut Claims<'_>) -> Result<Outcome, Failure> {
    // A process that opened it was to compute on a GPU.
    let is_process = case.inventory.process.is_some();
    if !is_process && case.machine.is_none_or(|machine| machine.gpus.is_empty()) {
        return Ok(Outcome::Skipped("no GPU declared".into()));
    }
    let mut findings = Vec::new();
    for context in &case.links.contexts {
        for root in &context.roots {
            let Some(fallback) = &root.fallback else { continue };
            findings.extend(finding(case, context, root, fallback));
        }
    }
    Ok(Outcome::Ran(findings))
}

fn finding(case: &Case<'_>, context: &Context, root: &Root, fallback: &FallbackRow) -> Option<Diagnostic> {
    let problems = &context.problems[root.problems.clone()];
    let mut fails = problems.iter().filter(|problem| problem.optional().is_none());
    let first = fails.next()?;
    let rest: Vec<&Problem> = fails.collect();
    let package = stack::package(case.inventory, &root.library);
    let what = package.map_or(context.name.clone(), |package| format!("{} {}", package.name, package.version));
    let library = &root.library.name;
    let here = std::iter::once(first).chain(rest.iter().copied()).all(|problem| is_here(case, problem));
    let evidence_of = |problem: &Problem| {
        let by = problem.by().map_or("Python", |by| by.name.as_str());
        Evidence::elf(by, problem.to_string())
    };
    let more = rest.iter().map(|problem| evidence_of(problem)).collect::<Vec<_>>();
    if here && case.inventory.process.is_none() {
        let message = format!("{what} {} unless {} makes its libraries known", fallback.instead, fallback.preload);
        let note = Diagnostic::note(RULE.code, message, evidence_of(first)).about(library);
        return Some(evidence::finding(note, more));
    }
    let message = format!(
        "{what} {}, and says so in its log alone: {library} cannot be loaded for {}, {first}",
        fallback.instead, root.when
    );
    let finding = evidence::finding(Diagnostic::warning(RULE.code, message, evidence_of(first)).about(library), more);
    Some(match package.and_then(extras) {
        _ if here => finding.fix(fallback.preload.clone()),
        Some(install) => finding.fix(format!("{install}, and {}", fallback.preload)),
        None => finding.fix("install the CUDA that it is built for, where the loader finds it"),
    })
}

/// Whether what is not found is in the environment, where only a preload finds it.
fn is_here(case: &Case<'_>, problem: &Problem) -> bool {
    let Problem::Unresolved { needed, by, .. } = problem else { return false };
    case.inventory.libraries().iter().filter_map(|library| library.object.as_ref().ok()).any(|object| {
        object.soname.as_ref() == Some(needed) && by.object.as_ref().is_ok_and(|by| by.machine == object.machine)
    })
}

/// The extras of a package that bring NVIDIA's libraries: `pip install 'onnxruntime-gpu[cuda,cudnn]'`.
fn extras(package: &Distribution) -> Option<String> {
    let extra = |text: &String| {
        let (requirement, marker) = text.split_once(';')?;
        let name = marker.split_once("extra")?.1.trim_start_matches([' ', '=']).trim_matches(['"', '\'', ' ']);
        requirement.trim().starts_with("nvidia-").then(|| name.to_owned())
    };
    let extras: BTreeSet<String> = package.requires.iter().filter_map(extra).collect();
    let list = extras.into_iter().collect::<Vec<_>>().join(",");
    (!list.is_empty()).then(|| format!("pip install '{}[{list}]'", package.name))
}
