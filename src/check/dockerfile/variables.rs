//! Variables that a Dockerfile sets for the job: under a name that its torch does not read, or that nobody reads.

use std::collections::BTreeMap;

use super::other_torch::{BaseTorch, torch_of_base};
use super::read::Dockerfile;
use super::{Context, torch};
use crate::check::rule::{env_variable_renamed, env_variable_unknown};
use crate::check::variables::Releases;
use crate::diag::{Diagnostic, Evidence, Failure, Severity, mistakes};
use crate::lock::Lock;
use crate::manifest::Manifest;
use crate::matrix::{EnvVarFacts, Matrix};

/// The longest name that is compared with others, in bytes.
const LONGEST: usize = 64;

/// The findings of `env-variable-renamed` and `env-variable-unknown`, as far as the file alone tells.
pub fn judge(file: &Dockerfile<'_>, context: &Context<'_>) -> Result<Vec<Diagnostic>, Failure> {
    let facts = context.matrix.env_vars()?;
    let mut findings = Vec::new();
    for at in 0..file.stages.len() {
        let releases = releases(file, at, context)?;
        let set = file.chain(at).into_iter().flat_map(|stage| &file.stages[stage].env);
        let all: BTreeMap<String, String> = set.map(|(name, value, _)| (name.clone(), value.clone())).collect();
        let renamed = env_variable_renamed::judge(&all, &releases, facts);
        for (name, _, span) in file.stages[at].env.iter().filter(|(name, ..)| !context.variables.contains(name)) {
            findings.extend(one(name, &renamed, &releases, facts, &|| file.lines.span(Some(span.clone()))));
        }
    }
    Ok(findings)
}

/// The same of variables that a manifest sets, for the stacks of its lock.
///
/// # Errors
/// When the matrix cannot be read.
pub fn of_manifest(manifest: &Manifest, lock: Option<&Lock>, matrix: &Matrix) -> Result<Vec<Diagnostic>, Failure> {
    let (facts, releases) = (matrix.env_vars()?, of_lock(lock));
    let renamed = env_variable_renamed::judge(&manifest.env, &releases, facts);
    let find = |name: &String| {
        let unknown = || Evidence::observed("[env]", format!("{name} is set"));
        let place = || manifest.place(&format!("env.{name}")).cloned().unwrap_or_else(unknown);
        one(name, &renamed, &releases, facts, &place)
    };
    Ok(manifest.env.keys().flat_map(find).collect())
}

/// What is to be said of one of the variables that are set together; `renamed` is what is said of their old names.
fn one(
    name: &str,
    renamed: &[Diagnostic],
    releases: &Releases,
    facts: &EnvVarFacts,
    place: &dyn Fn() -> Evidence,
) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> =
        renamed.iter().filter(|finding| finding.subject.as_deref() == Some(name)).cloned().collect();
    for first in found.iter_mut().filter_map(|finding| finding.evidence.first_mut()) {
        *first = place();
    }
    let unknown = |message: String| Diagnostic::warning(env_variable_unknown::RULE.code, message, place()).about(name);
    if let Some(row) = facts.unread(name).filter(|row| env_variable_unknown::holds(row, releases)) {
        // What was read once is unread only for a release that is known.
        if row.reader.is_none_or(|reader| row.until.is_none() || !releases.of(reader).is_empty()) {
            let finding = unknown(format!("{name} has no effect: {}", row.reason));
            let finding = finding.and(Evidence::fact(format!("{name}: {}", row.reason), &row.source));
            found.push(finding.fix(row.instead.clone().unwrap_or_else(|| format!("remove {name}"))));
        }
    } else if name.len() > LONGEST {
        // No name is that long.
    } else if let Some((near, reader, source)) = facts.misspelt(name) {
        let reader = reader.name();
        let finding = unknown(format!("{name} has no effect: {reader} reads {near}"));
        let fact = Evidence::fact(format!("{reader} reads {near}, and no release {name}"), source);
        found.push(finding.and(fact).fix(format!("did you mean {near}?")));
    } else if let Some((near, row)) = facts.near_known(name).filter(|(near, _)| mistakes(name, near) == 1)
        && !facts.is_known(name)
    {
        let finding = unknown(format!("{name} is nearly {near}, which {} reads", row.reader));
        let fact = Evidence::fact(format!("{} reads {near}", row.reader), &row.source);
        found.push(Diagnostic { severity: Severity::Note, ..finding.and(fact).fix(format!("did you mean {near}?")) });
    }
    found
}

/// The torch that the stage installs, else its base's; where that has none, the one of the whole file, else the lock's; with
/// the NCCL that it pins. Of a base that nobody knows nothing is certain.
fn releases(file: &Dockerfile<'_>, stage: usize, context: &Context<'_>) -> Result<Releases, Failure> {
    let mut pinned = torch::of_stage(file, stage, context.matrix)?;
    if pinned.is_empty() {
        match torch_of_base(file, stage, context)? {
            BaseTorch::Release(torch) => return Ok(Releases { torch: [torch].into(), ..Releases::default() }),
            BaseTorch::Unknown => return Ok(Releases::default()),
            BaseTorch::None => {}
        }
        for other in 0..file.stages.len() {
            pinned.extend(torch::of_stage(file, other, context.matrix)?);
        }
    }
    if pinned.is_empty() {
        return Ok(of_lock(context.lock));
    }
    let mut releases = Releases::default();
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

/// Those of all targets of a lock.
fn of_lock(lock: Option<&Lock>) -> Releases {
    let mut releases = Releases::default();
    for target in lock.iter().flat_map(|lock| &lock.targets) {
        releases.torch.insert(target.torch.clone());
        releases.nccl.extend(target.nccl.as_ref().and_then(|nccl| nccl.to_string().parse().ok()));
    }
    releases
}
