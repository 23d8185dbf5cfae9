//! Libraries of a running process whose files were replaced or removed after they were loaded.

use std::sync::Arc;

use crate::check::{Case, Claims, Outcome, Rule, Symptom, evidence, stack};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::inventory::process::Process;
use crate::inventory::{Library, shown};

pub const RULE: Rule =
    Rule { code: "deleted-mapping", level: Severity::Error, page: include_str!("../page/deleted-mapping.md"), run };

/// A mapped library, and the file that has its place now.
type Replaced<'a> = (&'a Arc<Library>, Option<Arc<Library>>);

fn run(case: &Case<'_>, claims: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let Some(process) = &case.inventory.process else { return Ok(Outcome::Ran(Vec::new())) };
    let gone: Vec<Replaced<'_>> = process
        .mapped
        .iter()
        .filter(|mapped| mapped.deleted)
        .map(|mapped| (&mapped.library, case.inventory.at(&mapped.library.path)))
        .collect();
    for (library, _) in &gone {
        claims.blame(library);
    }
    // The same file once more is what the process has; what belongs to no package of Python is the system's, or was made
    // to be loaded once.
    let is_other = |(library, now): &&Replaced<'_>| now.as_ref().is_none_or(|now| !is_same(library, now));
    let (stack, rest): (Vec<&Replaced<'_>>, Vec<&Replaced<'_>>) =
        gone.iter().filter(is_other).partition(|(library, _)| stack::identity(library).is_some());
    let packages: Vec<&Replaced<'_>> = rest.into_iter().filter(|(library, _)| library.package.is_some()).collect();
    let mut findings: Vec<Diagnostic> = Vec::new();
    // What those that are opened from now on do not find in the old files is their consequence.
    let fails = claims.take(|symptom| stack.iter().any(|(library, _)| lacks(symptom, library)));
    let fails: Vec<Evidence> = fails.iter().map(evidence::symptom).collect();
    findings.extend(finding(case, Severity::Error, &stack).map(|finding| evidence::finding(finding, fails)));
    findings.extend(finding(case, Severity::Warning, &packages));
    let unread: Vec<Evidence> = process
        .unreadable
        .iter()
        .filter(|path| process.death.is_some() || case.inventory.packages.iter().any(|one| path.starts_with(&one.site)))
        .map(|path| Evidence::observed(shown(path), "mapped, and no longer the file of that name"))
        .collect();
    if let Some((first, rest)) = unread.split_first() {
        let count = unread.len();
        let (word, them) = if count == 1 { ("library was", "it") } else { ("libraries were", "them") };
        let pid = process.pid;
        let (follows, fix) = match process.death {
            // Since when, a core file does not say.
            Some(_) => (
                "not judged here",
                "if that was while the job ran, it may be why it died; else read the core where its files are"
                    .to_owned(),
            ),
            None => (
                "what it has of them only an administrator may read",
                format!("start the job again; `sudo gpulock verify pid:{pid}` says more"),
            ),
        };
        let message = format!("{count} {word} replaced or removed after process {pid} loaded {them}; {follows}");
        let finding = Diagnostic::warning(RULE.code, message, first.clone());
        let finding = evidence::finding(finding, rest.iter().cloned());
        findings.push(finding.fix(fix));
    }
    findings.extend(in_doubt(process));
    Ok(Outcome::Ran(findings))
}

/// That a core file does not say which files those are that are judged.
fn in_doubt(process: &Process) -> Option<Diagnostic> {
    let (first, rest) = process.by_name.split_first()?;
    let others = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
    let pid = process.pid;
    let message = format!(
        "the core has kept nothing of {}{others} that process {pid} had mapped: what is there now under that name is \
         judged, and may be another file",
        shown(first)
    );
    let seen =
        Evidence::observed(shown(first), "its beginning is not in the core, which ends early or was written without");
    let fix = "let the system write whole cores: `ulimit -c unlimited`, and bit 4 of /proc/PID/coredump_filter set";
    Some(Diagnostic::warning(RULE.code, message, seen).fix(fix))
}

/// Whether a symptom is that a new file does not find in an old one what it needs, or that an old one does not find what
/// was removed with it.
fn lacks(symptom: &Symptom<'_>, old: &Library) -> bool {
    let soname = old.object.as_ref().ok().and_then(|object| object.soname.as_ref());
    let needs = |by: &Arc<Library>| {
        by.object.as_ref().is_ok_and(|object| soname.is_some_and(|soname| object.needed.contains(soname)))
    };
    if symptom.unresolved().is_some() && symptom.by().is_some_and(|by| by.inode == old.inode) {
        return true;
    }
    let lacks = symptom.undefined().is_some() || symptom.version_missing().is_some();
    lacks
        && match symptom.definer() {
            Some(definer) => definer.inode == old.inode,
            None => symptom.by().is_some_and(needs),
        }
}

/// Whether two files are the same build.
fn is_same(one: &Library, other: &Library) -> bool {
    let id = |library: &Library| library.object.as_ref().ok().and_then(|object| object.build_id.clone());
    one.size == other.size && id(one) == id(other) && id(one).is_some()
}

fn finding(case: &Case<'_>, severity: Severity, gone: &[&Replaced<'_>]) -> Option<Diagnostic> {
    let pid = case.inventory.process.as_ref()?.pid;
    let ((first, now), more) = gone.split_first()?;
    let was = if now.is_some() { "replaced" } else { "removed" };
    let names = match more.len() {
        0 => format!("{} was {was}", first.name),
        count => format!("{} and {count} more were {was}", first.name),
    };
    let version = |library: &Library| stack::identity(library).and_then(|identity| identity.version.clone());
    let versions = match (version(first), now.as_ref().and_then(|now| version(now))) {
        (Some(mapped), Some(now)) if mapped != now => format!(" ({mapped} is mapped, {now} is on disk)"),
        _ => String::new(),
    };
    let follows = match severity {
        Severity::Error => {
            ": what it opens from now on comes from other files, and parts of two releases fail together"
        }
        _ => ": it goes on with the old file, and what it opens from now on comes from the new ones",
    };
    let message = format!("{names} after process {pid} loaded it{versions}{follows}");
    let seen = |(library, now): &&&Replaced<'_>| {
        let told = |library: &Library| {
            let id = library.object.as_ref().ok().and_then(|object| object.build_id.clone());
            let version = version(library).map(|version| format!("{version}, "));
            let id = id.map(|id| format!(", build id {id}"));
            format!("{}{} bytes{}", version.unwrap_or_default(), library.size, id.unwrap_or_default())
        };
        let now = now.as_ref().map_or("nothing is there now".into(), |now| format!("now there: {}", told(now)));
        Evidence::observed(shown(&library.path), format!("mapped: {}; {now}", told(library)))
    };
    let mut each = gone.iter().map(|one| seen(&one));
    let finding = Diagnostic { severity, ..Diagnostic::error(RULE.code, message, each.next()?) }.about(&first.name);
    let fix = "start the job again; upgrade an environment only while no job runs from it";
    Some(evidence::finding(finding, each.collect::<Vec<_>>()).fix(fix))
}
