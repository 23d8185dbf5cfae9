//! Packages and inputs as PubGrub sees them.

use std::cmp::Reverse;
use std::fmt;
use std::ops::Bound;

use pubgrub::{Dependencies, DependencyConstraints, DependencyProvider, PackageResolutionStatistics};
use version_ranges::Ranges;

use super::candidate::Candidate;
use super::package::Packages;
use super::rule::{Input, Rule, Verdict};
use crate::diag::Failure;
use crate::python::{Extra, PackageName, Requirement};
use crate::version::Pep440;
use crate::version::pep440::to_set;

/// A package of the solver.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Node {
    /// What is asked, as a whole.
    Root,
    /// One input.
    Input(Input),
    /// A Python package.
    Package(PackageName),
    /// An extra of a Python package.
    Extra(PackageName, Extra),
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str("the manifest"),
            Self::Input(input) => input.fmt(f),
            Self::Package(name) => name.fmt(f),
            Self::Extra(name, extra) => write!(f, "{name}[{extra}]"),
        }
    }
}

/// A set of versions.
pub type Set = Ranges<Pep440>;

/// The solver's view of one target.
pub struct Provider<'a> {
    pub packages: Packages<'a>,
    pub rules: &'a [Rule],
    /// What the user asks of Python packages: the input and the requirement behind it.
    pub asks: Vec<(Input, PackageName, Vec<Extra>, Set)>,
}

/// The only version of nodes that have none.
pub fn only() -> Pep440 {
    Pep440::new([0])
}

impl Provider<'_> {
    /// The set of torch versions that a rule allows, as runs of the sorted candidates.
    fn allowed(&self, rule: &Rule) -> Set {
        let candidates = self.packages.candidates;
        set_of(candidates, |i| rule.verdicts[i] != Verdict::No)
    }

    /// Requirements as constraints; those on one package are joined.
    fn constraints<'r>(&self, requirements: impl Iterator<Item = &'r Requirement>) -> Vec<(Node, Set)> {
        let mut constraints: Vec<(Node, Set)> = Vec::new();
        for requirement in requirements {
            let set = to_set(&requirement.specifiers);
            join(&mut constraints, Node::Package(requirement.package.clone()), set.clone());
            for extra in &requirement.extras {
                join(&mut constraints, Node::Extra(requirement.package.clone(), extra.clone()), set.clone());
            }
        }
        constraints
    }

    fn root(&self) -> Vec<(Node, Set)> {
        let mut constraints: Vec<(Node, Set)> =
            self.rules.iter().map(|rule| (Node::Input(rule.input.clone()), Set::full())).collect();
        constraints.extend(self.asks.iter().map(|(input, ..)| (Node::Input(input.clone()), Set::full())));
        constraints.push((Node::Package(self.packages.torch.clone()), Set::full()));
        constraints
    }

    fn input(&self, input: &Input) -> Vec<(Node, Set)> {
        let torch = Node::Package(self.packages.torch.clone());
        let mut constraints = Vec::new();
        if let Some(rule) = self.rules.iter().find(|rule| rule.input == *input) {
            constraints.extend(rule.refuses.iter().map(|(other, _)| (Node::Input(other.clone()), Set::empty())));
            join(&mut constraints, torch, self.allowed(rule));
        }
        for (_, package, extras, set) in self.asks.iter().filter(|(asked, ..)| asked == input) {
            join(&mut constraints, Node::Package(package.clone()), set.clone());
            for extra in extras {
                join(&mut constraints, Node::Extra(package.clone(), extra.clone()), set.clone());
            }
        }
        constraints
    }

    fn package(&self, package: &PackageName, version: &Pep440) -> Result<Vec<(Node, Set)>, Failure> {
        let metadata = self.packages.metadata(package, version)?;
        let applying = metadata.requires.iter().filter(|r| r.applies(&self.packages.env, &[]) && r.package != *package);
        let mut constraints = self.constraints(applying);
        if *package == self.packages.torch {
            // Packages in variants that are wanted anyway: bind them to torch's variant from this side too, so that the
            // solver need not try the others one by one.
            for (_, asked, ..) in &self.asks {
                if self.packages.in_variants(asked)? {
                    let versions = self.packages.variants_for(version, asked)?;
                    join(&mut constraints, Node::Package(asked.clone()), versions.into_iter().collect_set());
                }
            }
        } else if self.packages.in_variants(package)? {
            let versions = self.packages.torch_for(package, version);
            let set = set_of(self.packages.candidates, |i| versions.contains(&self.packages.candidates[i].version));
            join(&mut constraints, Node::Package(self.packages.torch.clone()), set);
        } else if let Some(family) = self.packages.family_of(package)? {
            let candidates = self.packages.candidates;
            let set = set_of(candidates, |i| candidates[i].cuda().is_none_or(|cuda| cuda.major == family));
            join(&mut constraints, Node::Package(self.packages.torch.clone()), set);
        }
        Ok(constraints)
    }

    fn extra(&self, package: &PackageName, extra: &Extra, version: &Pep440) -> Result<Vec<(Node, Set)>, Failure> {
        let metadata = self.packages.metadata(package, version)?;
        let extras = std::slice::from_ref(extra);
        let env = &self.packages.env;
        let added = metadata.requires.iter().filter(|r| r.applies(env, extras) && !r.applies(env, &[]));
        // `pkg[all]` may be defined as `pkg[a,b]`: extras of itself stay, the package itself is pinned below.
        let mut constraints = self.constraints(added);
        join(&mut constraints, Node::Package(package.clone()), Set::singleton(version.clone()));
        Ok(constraints)
    }
}

/// The versions of the candidates that `wanted` accepts, as few intervals.
fn set_of(candidates: &[Candidate], wanted: impl Fn(usize) -> bool) -> Set {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for i in (0..candidates.len()).filter(|&i| wanted(i)) {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == i => *last = i,
            _ => runs.push((i, i)),
        }
    }
    let bound = |i: usize| Bound::Included(candidates[i].version.clone());
    runs.into_iter().map(|(first, last)| (bound(first), bound(last))).collect()
}

trait CollectSet {
    fn collect_set(self) -> Set;
}

impl<I: Iterator<Item = Pep440>> CollectSet for I {
    fn collect_set(self) -> Set {
        self.map(|version| (Bound::Included(version.clone()), Bound::Included(version))).collect()
    }
}

fn join(constraints: &mut Vec<(Node, Set)>, node: Node, set: Set) {
    match constraints.iter_mut().find(|(known, _)| *known == node) {
        Some((_, known)) => *known = known.intersection(&set),
        None => constraints.push((node, set)),
    }
}

impl DependencyProvider for Provider<'_> {
    type P = Node;
    type V = Pep440;
    type VS = Set;
    type M = String;
    type Err = Failure;
    type Priority = (u8, u32, bool, Reverse<String>);

    /// Inputs first, then torch, then what comes with torch; among the rest what conflicts most, what is pinned, by name.
    fn prioritize(&self, node: &Node, range: &Set, statistics: &PackageResolutionStatistics) -> Self::Priority {
        let class = match node {
            Node::Root | Node::Input(_) => 3,
            Node::Package(name) if *name == self.packages.torch => 2,
            Node::Package(name) if self.packages.in_variants(name).unwrap_or(false) => 1,
            Node::Package(_) | Node::Extra(..) => 0,
        };
        (class, statistics.conflict_count(), range.as_singleton().is_some(), Reverse(node.to_string()))
    }

    fn choose_version(&self, node: &Node, range: &Set) -> Result<Option<Pep440>, Failure> {
        match node {
            Node::Root | Node::Input(_) => Ok(range.contains(&only()).then(only)),
            Node::Package(name) | Node::Extra(name, _) => self.packages.choose(name, range),
        }
    }

    fn get_dependencies(&self, node: &Node, version: &Pep440) -> Result<Dependencies<Node, Set, String>, Failure> {
        let constraints = match node {
            Node::Root => Ok(self.root()),
            Node::Input(input) => Ok(self.input(input)),
            Node::Package(name) => self.package(name, version),
            Node::Extra(name, extra) => self.extra(name, extra, version),
        };
        let constraints = match constraints {
            // Somebody's old or odd METADATA rules out that version, not the whole question.
            Err(failure) if failure.diagnostics.iter().any(|d| d.code == "wheel-unreadable") => {
                return Ok(Dependencies::Unavailable(failure.to_string()));
            }
            constraints => constraints?,
        };
        Ok(Dependencies::Available(DependencyConstraints::from_iter(constraints)))
    }
}
