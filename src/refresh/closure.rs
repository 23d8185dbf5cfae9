//! Which packages the snapshot needs: those that its own require, on some Python and platform that can be asked for.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::line::Line;
use crate::python::{Extra, MarkerEnv, PackageName, Platform, PythonVersion, Requirement};
use crate::version::{Pep440, Specifiers};

/// Python minors, from the oldest that wheels are kept for to the newest that they are made for.
const MINORS: std::ops::RangeInclusive<u32> = 7..=15;

/// A package with its lines.
pub(super) struct Node<'l> {
    pub(super) lines: &'l [Line],
    pub(super) gpu: bool,
}

/// The packages that `nodes` require, themselves included.
pub(super) fn needed(nodes: &BTreeMap<PackageName, Node<'_>>) -> BTreeSet<PackageName> {
    let mut closure = Closure::default();
    loop {
        let before = closure.size();
        for (name, node) in nodes {
            closure.follow(name, node);
        }
        if closure.size() == before {
            break;
        }
    }
    closure.asked.into_keys().chain(nodes.keys().cloned()).collect()
}

/// What was asked of each package so far.
#[derive(Default)]
struct Closure {
    asked: BTreeMap<PackageName, Asked>,
    parsed: HashMap<String, Option<Requirement>>,
    envs: Vec<(PythonVersion, MarkerEnv)>,
}

#[derive(Default)]
struct Asked {
    extras: BTreeSet<Extra>,
    specifiers: BTreeMap<String, Specifiers>,
}

impl Closure {
    fn size(&self) -> usize {
        self.asked.values().map(|asked| 1 + asked.extras.len() + asked.specifiers.len()).sum()
    }

    fn follow(&mut self, name: &PackageName, node: &Node<'_>) {
        if self.envs.is_empty() {
            let pythons = MINORS.map(|minor| PythonVersion { major: 3, minor, free_threaded: false });
            let envs =
                pythons.flat_map(|python| Platform::ALL.map(|platform| (python, MarkerEnv::new(python, platform))));
            self.envs = envs.collect();
        }
        let extras: Vec<Extra> = self.asked.get(name).map(|a| a.extras.iter().cloned().collect()).unwrap_or_default();
        for line in node.lines {
            if !node.gpu && !self.allowed(name, line) {
                continue;
            }
            let mut seen = BTreeSet::new();
            for entry in line.wheels.iter().filter(|entry| !entry.yanked) {
                // Most wheels of a release say the same.
                if !seen.insert((entry.meta, entry.python.as_deref())) {
                    continue;
                }
                for text in line.requires_of(entry) {
                    self.require(text, entry.python.as_deref(), &extras);
                }
            }
        }
    }

    /// Whether something asks for this release.
    fn allowed(&self, name: &PackageName, line: &Line) -> bool {
        let Ok(version) = line.version.parse::<Pep440>() else { return false };
        let asked = self.asked.get(name);
        asked.is_some_and(|asked| asked.specifiers.values().any(|specifiers| specifiers.contains(&version)))
    }

    fn require(&mut self, text: &str, python: Option<&str>, extras: &[Extra]) {
        let parsed = self.parsed.entry(text.to_owned()).or_insert_with(|| text.parse().ok());
        let Some(requirement) = parsed else { return };
        let allowed: Option<Specifiers> = python.and_then(|python| python.parse().ok());
        let fits = |python: &PythonVersion| {
            // The newest patch release stands for the minor.
            let version = Pep440::new([u64::from(python.major), u64::from(python.minor), 20]);
            allowed.as_ref().is_none_or(|allowed| allowed.contains(&version))
        };
        // No extra, and each by itself.
        let each = || std::iter::once(&[][..]).chain(extras.chunks(1));
        let holds =
            self.envs.iter().any(|(python, env)| fits(python) && each().any(|extras| requirement.applies(env, extras)));
        if holds {
            let asked = self.asked.entry(requirement.package.clone()).or_default();
            asked.extras.extend(requirement.extras.iter().cloned());
            asked
                .specifiers
                .entry(requirement.specifiers.to_string())
                .or_insert_with(|| requirement.specifiers.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Matrix;
    use crate::refresh::line;

    #[test]
    fn the_embedded_snapshot_is_closed() {
        let matrix = Matrix::embedded();
        let groups = matrix.package().unwrap();
        let read = |path: &str| {
            let name: PackageName = path.trim_start_matches("snapshot/").trim_end_matches(".jsonl").parse().unwrap();
            (name, line::read(matrix.files().text(path).unwrap()).unwrap())
        };
        let packages: Vec<_> = matrix.files().paths("snapshot/", ".jsonl").into_iter().map(read).collect();
        let node = |(name, lines): &'_ (PackageName, Vec<Line>)| (name.clone(), groups.is_gpu(name), lines.len());
        assert!(packages.iter().map(node).all(|(_, _, releases)| releases > 0));
        let nodes: BTreeMap<_, _> =
            packages.iter().map(|(name, lines)| (name.clone(), Node { lines, gpu: groups.is_gpu(name) })).collect();
        let new: Vec<_> = needed(&nodes).into_iter().filter(|name| !nodes.contains_key(name)).collect();
        assert!(new.is_empty(), "{new:?}");
    }
}
