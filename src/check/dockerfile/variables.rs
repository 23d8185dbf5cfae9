//! Variables that a Dockerfile sets for the job: under a name that its torch does not read, or that nobody reads.

use std::collections::BTreeMap;

use super::read::Dockerfile;
use super::{Context, torch};
use crate::check::rule::{env_variable_renamed, env_variable_unknown};
use crate::check::variables::Releases;
use crate::diag::{Diagnostic, Evidence, Failure};

/// The findings of `env-variable-renamed` and `env-variable-unknown`, as far as the file alone tells.
pub fn judge(file: &Dockerfile<'_>, context: &Context<'_>) -> Result<Vec<Diagnostic>, Failure> {
    let facts = context.matrix.env_vars()?;
    let mut findings = Vec::new();
    for at in 0..file.stages.len() {
        let releases = releases(file, at, context)?;
        let all: BTreeMap<String, String> = file
            .chain(at)
            .into_iter()
            .flat_map(|stage| &file.stages[stage].env)
            .map(|(name, value, _)| (name.clone(), value.clone()))
            .collect();
        let renamed = env_variable_renamed::judge(&all, &releases, facts);
        for (name, _, span) in &file.stages[at].env {
            let place = || file.lines.span(Some(span.clone()));
            if let Some(found) = renamed.iter().find(|finding| finding.subject.as_ref() == Some(name)) {
                let mut finding = found.clone();
                if let Some(first) = finding.evidence.first_mut() {
                    *first = place();
                }
                findings.push(finding);
            }
            let Some(row) = facts.unread(name).filter(|row| env_variable_unknown::holds(row, &releases)) else {
                continue;
            };
            // What was read once is unread only for a release that is known.
            if row.reader.is_some_and(|reader| row.until.is_some() && releases.of(reader).is_empty()) {
                continue;
            }
            let message = format!("{name} has no effect: {}", row.reason);
            let finding = Diagnostic::warning(env_variable_unknown::RULE.code, message, place()).about(name);
            let finding = finding.and(Evidence::fact(format!("{name}: {}", row.reason), &row.source));
            findings.push(finding.fix(row.instead.clone().unwrap_or_else(|| format!("remove {name}"))));
        }
    }
    Ok(findings)
}

/// The torch that the stage pins, else the one of the whole file, else the lock's; with the NCCL that it pins.
fn releases(file: &Dockerfile<'_>, stage: usize, context: &Context<'_>) -> Result<Releases, Failure> {
    let mut pinned = torch::of_stage(file, stage, context.matrix)?;
    if pinned.is_empty() {
        for other in 0..file.stages.len() {
            pinned.extend(torch::of_stage(file, other, context.matrix)?);
        }
    }
    let mut releases = Releases::default();
    if pinned.is_empty() {
        let targets = context.lock.iter().flat_map(|lock| &lock.targets);
        for target in targets {
            releases.torch.insert(target.torch.clone());
            releases.nccl.extend(target.nccl.as_ref().and_then(|nccl| nccl.to_string().parse().ok()));
        }
        return Ok(releases);
    }
    // With one that is not pinned, nothing is certain.
    if pinned.iter().all(|torch| torch.release.is_some()) {
        releases.torch = pinned.iter().filter_map(|torch| torch.release.clone()).collect();
    }
    if pinned.iter().all(|torch| torch.build.is_some()) {
        let rows =
            pinned.iter().filter_map(|torch| torch.build.as_ref()?.row().nccl.as_ref()?.to_string().parse().ok());
        releases.nccl = rows.collect();
    }
    Ok(releases)
}
