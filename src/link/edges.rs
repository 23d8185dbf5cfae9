//! Libraries that libraries open while they work (`edge` rows of `dlopen.toml`).

use std::sync::Arc;

use super::model::{Edge, Problem};
use super::process::Process;
use super::{import, symbols};
use crate::matrix::schema::EdgeRow;

/// Opens what the loads from `from` on open, and what those open; the process has it all in the end.
pub(super) fn follow(process: &mut Process<'_>, from: usize) -> Vec<Edge> {
    let mut edges = Vec::new();
    let mut at = from;
    while at < process.loads.len() {
        let load = Arc::clone(&process.loads[at]);
        let object = load.library.object.as_ref().ok();
        let name = object.and_then(|object| object.soname.as_deref()).unwrap_or(&load.requested);
        for row in process.world.facts.edges(name) {
            if row.when_loaded.as_ref().is_none_or(|name| process.named(name).is_some()) {
                edges.extend(edge(process, at, row));
            }
        }
        at += 1;
    }
    edges
}

/// `None` where no name is known, since the version of its caller is not.
fn edge(process: &mut Process<'_>, by: usize, row: &EdgeRow) -> Option<Edge> {
    let library = Arc::clone(&process.loads[by].library);
    let identity = library.object.as_ref().ok().and_then(|object| object.identity.as_ref());
    let version = identity.and_then(|identity| identity.version.as_deref());
    let candidates: Vec<String> = row.open.iter().filter_map(|name| named(name, version)).collect();
    if candidates.is_empty() {
        return None;
    }
    let mut edge = Edge {
        by,
        candidates,
        when: row.when.clone(),
        optional: row.optional.clone(),
        source: row.source.clone(),
        opened: None,
        tried: Vec::new(),
        problems: Vec::new(),
    };
    let mut failures: Vec<Problem> = Vec::new();
    for name in &edge.candidates {
        let before = process.clone();
        let Some(mut opened) = process.open_name(name, by, &mut edge.tried) else { continue };
        let mut problems = std::mem::take(&mut opened.problems);
        problems.extend(symbols::check(process, &opened));
        match opened.root {
            Some(root) if !import::fails(&problems) => {
                edge.problems = problems;
                edge.opened = Some((name.clone(), root));
                return Some(edge);
            }
            // The next name is tried after any failure.
            _ => *process = before,
        }
        failures.extend(problems);
    }
    if failures.is_empty()
        && let Some(needed) = edge.candidates.last()
    {
        let tried = edge.tried.clone();
        let file = library.path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let absent = process.world.facts.absent(needed, &file).map(|row| row.reason.clone());
        let optional = row.optional.clone().or(absent);
        failures.push(Problem::Unresolved { needed: needed.clone(), by: library, tried, optional });
    }
    edge.problems = failures;
    Some(edge)
}

/// A name with the version of its caller in it; `None` when the version is not known.
fn named(name: &str, version: Option<&str>) -> Option<String> {
    if !name.contains('{') {
        return Some(name.to_owned());
    }
    let version = version?;
    let minor: Vec<&str> = version.split('.').take(2).collect();
    Some(name.replace("{version}", version).replace("{minor}", &minor.join(".")))
}
