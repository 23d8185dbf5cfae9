//! Libraries that a running process should have and has not: those that its own libraries need, and those that the lock
//! has for a workload that is up.

use crate::check::{Case, Claims, Locked, Outcome, Rule, evidence, stack};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::link::{Context, Running};
use crate::matrix::matches_glob;
use crate::matrix::schema::WorkloadRow;

pub const RULE: Rule =
    Rule { code: "not-loaded", level: Severity::Error, page: include_str!("../page/not-loaded.md"), run };

fn run(case: &Case<'_>, _: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let (Some(process), Some(running)) = (&case.inventory.process, &case.links.running) else {
        return Ok(Outcome::Ran(Vec::new()));
    };
    if process.is_loading {
        return Ok(Outcome::Skipped(format!("process {} loads libraries while it is read: ask again", process.pid)));
    }
    let Some(context) = case.links.contexts.first() else { return Ok(Outcome::Ran(Vec::new())) };
    let mut findings: Vec<Diagnostic> = needed(case, context, running).into_iter().collect();
    if let Some(locked) = case.locked {
        for row in &case.matrix.dlopen()?.workloads {
            findings.extend(locked_away(case, context, locked, row));
        }
    }
    Ok(Outcome::Ran(findings))
}

/// What libraries of the GPU stack need.
fn needed(case: &Case<'_>, context: &Context, running: &Running) -> Option<Diagnostic> {
    let of_stack = |at: usize| stack::identity(&context.loads[at].library).is_some();
    let mut missing = running.not_mapped.iter().filter(|(_, by)| of_stack(*by));
    let (name, by) = missing.next()?;
    let by = &context.loads[*by].library;
    let pid = case.inventory.process.as_ref()?.pid;
    let message = format!("{name}, which {} needs, is not mapped in process {pid}", by.name);
    let fact = |name: &str| format!("DT_NEEDED names {name}");
    let finding = Diagnostic::error(RULE.code, message, Evidence::elf(&by.name, fact(name))).about(name);
    let more = missing.map(|(name, by)| Evidence::elf(&context.loads[*by].library.name, fact(name)));
    Some(
        evidence::finding(finding, more.collect::<Vec<_>>())
            .fix("start the job again from the environment of the lock"),
    )
}

/// What the lock has and a workload that is up loads.
fn locked_away(case: &Case<'_>, context: &Context, locked: Locked<'_>, row: &WorkloadRow) -> Option<Diagnostic> {
    let mapped = &context.loads[..context.lazy.min(context.loads.len())];
    let file_name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let has = |pattern: &str| {
        mapped.iter().any(|load| {
            let soname = load.library.object.as_ref().ok().and_then(|object| object.soname.as_deref());
            let file = load.library.path.file_name().and_then(|name| name.to_str());
            [soname, file].into_iter().flatten().any(|name| matches_glob(pattern, name))
        })
    };
    if !has(&row.when_loaded) {
        return None;
    }
    let wheels = locked.target.packages.values().filter_map(|package| locked.lock.wheel(package));
    let files: Vec<String> = wheels.flat_map(|(_, wheel)| wheel.libraries.keys().map(|path| file_name(path))).collect();
    let locked_file = |pattern: &String| files.iter().find(|name| matches_glob(pattern, name));
    let mut absent = row.loads.iter().filter(|pattern| !has(pattern)).filter_map(locked_file);
    let first = absent.next()?;
    let rest: Vec<&String> = absent.collect();
    let pid = case.inventory.process.as_ref()?.pid;
    let names = [&[first], &rest[..]].concat().iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
    let message = format!(
        "{} is up in process {pid} without {names}, which the lock has: this process does not run the stack of the lock",
        row.name
    );
    let seen =
        Evidence::observed(format!("/proc/{pid}/maps"), format!("{} libraries, none of them {names}", mapped.len()));
    let fact = Evidence::fact(format!("{} loads {} when it is imported", row.name, row.loads.join(", ")), &row.source);
    let finding = Diagnostic::error(RULE.code, message, seen).about(first.as_str()).and(fact);
    Some(finding.fix("start the job with the environment that was installed from the lock"))
}
