//! Libraries that nothing is known to load. They are judged leniently: what they need may come from anything that the
//! environment has, whoever loads it first.

use std::collections::HashSet;
use std::sync::Arc;

use super::model::{LinkModel, Problem, Unreached};
use super::process::Process;
use crate::inventory::Role;

/// All libraries of the subject that no context loads or tries to load, each with what nothing here could provide.
pub(super) fn unreached(start: &Process<'_>, model: &LinkModel) -> Vec<Unreached> {
    let contexts = &model.contexts;
    let world = start.world;
    let loads = contexts.iter().flat_map(|context| &context.loads).map(|load| load.library.inode);
    let roots = contexts.iter().flat_map(|context| &context.roots).map(|root| root.library.inode);
    let loaded: HashSet<(u64, u64)> = loads.chain(roots).chain(model.closed.iter().copied()).collect();
    let libraries = world.inventory.libraries();
    let names: HashSet<&str> = libraries
        .iter()
        .flat_map(|library| {
            let soname = library.object.as_ref().ok().and_then(|object| object.soname.as_deref());
            [soname, library.place.file_name().and_then(|name| name.to_str())].into_iter().flatten()
        })
        .collect();
    let mut found = Vec::new();
    for library in libraries {
        let other = library.role != Role::Library || loaded.contains(&library.inode);
        if other || library.object.is_err() || world.is_foreign(library).is_some() {
            continue;
        }
        let mut problems = start.clone().open_path(&library.place, false).problems;
        problems.retain(|problem| match problem {
            Problem::Unresolved { needed, optional: None, .. } => !names.contains(needed.as_str()),
            _ => false,
        });
        found.push(Unreached { library: Arc::clone(library), problems });
    }
    found
}
