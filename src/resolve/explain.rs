//! Why there is no solution: the solver's derivation in sentences.

use std::ops::Bound;

use pubgrub::{DerivationTree, External};

use super::package::{Artefact, Packages};
use super::provider::{Node, Provider, Set};
use super::rule::{Fact, Input};
use super::solution::Gives;
use super::{Request, candidate};
use crate::diag::{Diagnostic, Failure};
use crate::python::{PackageName, PythonVersion};
use crate::version::pep440::LocalSegment;
use crate::version::{Driver, Pep440};

/// There is no stack for a target.
#[derive(Debug, Clone)]
pub struct Conflict {
    /// Name of the target.
    pub target: String,
    /// Sentences.
    pub explanation: String,
    /// The facts behind them.
    pub facts: Vec<Fact>,
    /// What would give a stack; each was resolved.
    pub repairs: Vec<Repair>,
    /// What else the machines give rise to: GPUs that are not known, and the like.
    pub warnings: Vec<Diagnostic>,
}

/// A change of the inputs that gives a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// `torch >=2.7`
    pub change: String,
    /// What it gives when it is applied as it is written.
    pub gives: Gives,
    /// For a lower bound on the driver, of which the newest driver counts: the bound itself, and what that driver gives
    /// where it is something else.
    pub at_bound: Option<(Driver, Gives)>,
}

impl Repair {
    /// What it gives, in words: `torch 2.15.0, cu132; with driver 570.26 itself: torch 2.13.0, cu129`.
    pub fn words(&self) -> String {
        let gives = self.gives.words();
        match &self.at_bound {
            Some((driver, other)) => format!("{gives}; with driver {driver} itself: {}", other.words()),
            None => gives,
        }
    }
}

/// How many premises an explanation shows.
const MOST_PREMISES: usize = 14;

/// A derivation that there is no solution, in words.
#[derive(Debug, Clone, Default)]
pub struct Derivation {
    /// What holds; together impossible.
    pub premises: Vec<String>,
    /// The facts behind them.
    pub facts: Vec<Fact>,
    /// It holds for this Python, which nobody asked for; others fail in other ways.
    pub python: Option<PythonVersion>,
    /// How many of the premises are that a package has no wheel for that Python.
    pub wheels_missing: usize,
    /// A package is on no index, as far as is known.
    pub unknown_packages: bool,
    /// The indexes were not asked.
    pub offline: bool,
    /// A wheel that cannot be read is among the premises: worth more than that others do not exist.
    pub unreadable: bool,
}

impl Derivation {
    /// No Python that is asked for has wheels of torch.
    pub fn no_python(request: &Request) -> Self {
        let asked = request.stack.python.as_ref().map_or_else(|| "any version".into(), ToString::to_string);
        let premise = format!("no known build of torch for {} has wheels for Python {asked}", request.target.platform);
        Self { premises: vec![premise], ..Self::default() }
    }

    /// The index that torch is taken from has none for the platform, as far as is known here.
    pub fn no_torch(request: &Request, default_index: &str) -> Self {
        let torch = "torch".parse().ok();
        let index = torch.as_ref().and_then(|torch| request.pinned_index(torch)).unwrap_or(default_index);
        let premise = format!("no wheel of torch for {} is known here of the index {index}", request.target.platform);
        Self { premises: vec![premise], ..Self::default() }
    }

    /// Puts a derivation into words.
    ///
    /// # Errors
    /// When a catalog fails that has to be asked again.
    pub fn new(
        tree: DerivationTree<Node, Set, String>,
        provider: &Provider<'_>,
        request: &Request,
    ) -> Result<Self, Failure> {
        let mut externals = Vec::new();
        collect(&tree, &mut externals);
        let mut derivation = Self { offline: provider.packages.context.offline, ..Self::default() };
        let mut merged: Vec<External<Node, Set, String>> = Vec::new();
        for external in externals {
            merge(&mut merged, external);
        }
        for external in &merged {
            let sentence = derivation.sentence(external, provider, request)?;
            if let Some(sentence) = sentence.filter(|s| !derivation.premises.contains(s)) {
                derivation.premises.push(sentence);
            }
        }
        derivation.facts.sort();
        derivation.facts.dedup();
        Ok(derivation)
    }

    fn sentence(
        &mut self,
        external: &External<Node, Set, String>,
        provider: &Provider<'_>,
        request: &Request,
    ) -> Result<Option<String>, Failure> {
        let candidates = provider.packages.candidates;
        Ok(match external {
            External::NotRoot(..) | External::FromDependencyOf(Node::Root, ..) => None,
            External::Custom(_, _, reason) => {
                self.unreadable = true;
                Some(reason.clone())
            }
            External::FromDependencyOf(Node::Input(input), _, dependency, set) => {
                let rule = provider.rules.iter().find(|rule| rule.input == *input);
                if let Some(rule) = rule {
                    self.facts.extend(rule.facts.iter().cloned());
                }
                match (rule, dependency) {
                    (Some(rule), Node::Input(other)) => {
                        rule.refuses.iter().find(|(refused, _)| refused == other).map(|(_, sentence)| sentence.clone())
                    }
                    (Some(rule), _) => Some(rule.sentence(candidates)),
                    (None, Node::Package(_) | Node::Extra(..)) if *set == Set::full() => {
                        Some(format!("{dependency} is asked for"))
                    }
                    (None, _) if *set == Set::empty() => Some(format!(
                        "what is asked of {dependency} contradicts itself: no version satisfies all of it"
                    )),
                    (None, Node::Package(name)) if *set == Set::empty() => Some(contradiction(name, request)),
                    (None, _) => Some(format!("{dependency} {} is asked for", words(set))),
                }
            }
            External::FromDependencyOf(dependent, set, dependency, dependency_set) => {
                let what = match dependent {
                    Node::Package(name) => format!("{name} {}", self.versions(name, set, provider)?),
                    other => other.to_string(),
                };
                if matches!((dependent, dependency), (Node::Extra(a, _), Node::Package(b)) if a == b) {
                    None
                } else if *dependency_set == Set::empty() {
                    Some(format!("{what} goes with no {dependency} for this target"))
                } else {
                    let allowed = match dependency {
                        Node::Package(name) if *name == provider.packages.torch => {
                            self.versions(name, dependency_set, provider)?
                        }
                        _ => words(dependency_set),
                    };
                    let (verb, source) = self.relation(dependent, set, dependency, dependency_set, provider)?;
                    let claim = format!("{what} {verb} {dependency} {allowed}");
                    self.facts.extend(source.map(|source| Fact { claim: claim.clone(), source }));
                    Some(claim)
                }
            }
            External::NoVersions(Node::Package(name) | Node::Extra(name, _), set) => {
                let (sentence, no_wheel) = no_versions(name, set, provider, request)?;
                self.wheels_missing += usize::from(no_wheel);
                self.unknown_packages |= provider.packages.known_versions(name)?.is_empty();
                sentence
            }
            External::NoVersions(..) => None,
        })
    }

    /// How a package stands to another: by its METADATA, with the wheel that says so, or as builds that go together.
    fn relation(
        &self,
        dependent: &Node,
        set: &Set,
        dependency: &Node,
        dependency_set: &Set,
        provider: &Provider<'_>,
    ) -> Result<(&'static str, Option<String>), Failure> {
        let packages = &provider.packages;
        let (Node::Package(from), Node::Package(to)) = (dependent, dependency) else { return Ok(("requires", None)) };
        for version in packages.known_versions(from)?.iter().rev().filter(|version| set.contains(*version)) {
            let Ok(metadata) = packages.metadata(from, version) else { continue };
            if metadata.requires.iter().any(|requirement| requirement.package == *to) {
                let wheel = match packages.chosen(from, version)? {
                    Some(Artefact::Wheel(wheel)) => Some(format!("METADATA of {}", wheel.name)),
                    _ => None,
                };
                return Ok(("requires", wheel));
            }
            break;
        }
        // The pairs of the matrix: said where the torch release is.
        let torch = if *from == packages.torch { set } else { dependency_set };
        let candidate = packages.candidates.iter().rev().find(|candidate| torch.contains(&candidate.version));
        let source = candidate.and_then(|c| c.build.as_ref()).map(|build| build.release().source.clone());
        Ok(("goes only with", source))
    }

    /// A set of versions as those that exist.
    fn versions(&self, name: &PackageName, set: &Set, provider: &Provider<'_>) -> Result<String, Failure> {
        if *name == provider.packages.torch {
            let members = provider.packages.candidates.iter().filter(|c| set.contains(&c.version));
            return Ok(candidate::summary(members));
        }
        let known = provider.packages.known_versions(name)?;
        let members: Vec<&Pep440> = known.iter().filter(|version| set.contains(*version)).collect();
        Ok(match &members[..] {
            [] => words(set),
            [one] => one.to_string(),
            _ if members.len() == known.len() => "(every version)".into(),
            [first, .., last] => format!("{first} to {last}"),
        })
    }

    /// The sentence of the whole.
    pub fn text(&self) -> String {
        let shown = &self.premises[..self.premises.len().min(MOST_PREMISES)];
        let more = self.premises.len() - shown.len();
        let mut text = match shown {
            [] => "The inputs leave no stack.".to_owned(),
            [one] => format!("{}.", capitalised(one)),
            [first, rest @ ..] => {
                format!("Because {first},\nand because {},\nthere is no stack.", rest.join(",\nand because "))
            }
        };
        if self.offline && (self.wheels_missing > 0 || self.unknown_packages) {
            text.push_str(
                "\n(Known here is what the snapshot and the cache hold; without --offline the indexes are asked.)",
            );
        }
        if let Some(python) = self.python {
            text.push_str(&format!("\n(This is for Python {python}; the other Pythons that may be chosen fail too.)"));
        }
        if more > 0 {
            text.push_str(&format!("\n({more} more of the same kind.)"));
        }
        text
    }
}

/// Two asks of one package that no version satisfies.
fn contradiction(name: &PackageName, request: &Request) -> String {
    let asks = request.packages.iter().filter(|ask| ask.package == *name);
    let asks: Vec<String> = asks.map(|ask| format!("{name} {}", ask.specifiers)).collect();
    format!("{} exclude each other", asks.join(" and "))
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Why a package has no version that will do, and whether that is for want of a wheel.
fn no_versions(
    name: &PackageName,
    set: &Set,
    provider: &Provider<'_>,
    request: &Request,
) -> Result<(Option<String>, bool), Failure> {
    let packages = &provider.packages;
    let index = request.pinned_index(name).unwrap_or(packages.context.default_index);
    let known = packages.known_versions(name)?;
    let members: Vec<&Pep440> = known.iter().filter(|version| set.contains(*version)).collect();
    if let Some(sentence) = withdrawn(name, &members, packages)? {
        return Ok((Some(sentence), false));
    }
    if *name == packages.torch {
        let members: Vec<_> = packages.candidates.iter().filter(|c| set.contains(&c.version)).collect();
        let sentence = (!members.is_empty()).then(|| {
            let members = candidate::summary(members);
            format!("no wheel of torch {members} for Python {} is known here", packages.runtime.python)
        });
        let no_wheel = sentence.is_some();
        return Ok((sentence, no_wheel));
    }
    let runtime = &packages.runtime;
    if known.is_empty() {
        let sentence = match packages.context.offline {
            true => format!("the package {name} is not known here of the index {index}"),
            false => format!("the index {index} has no wheel of {name} (source distributions are not locked)"),
        };
        return Ok((Some(sentence), false));
    }
    if members.is_empty() {
        let span = format!("{} to {}", known[0], known[known.len() - 1]);
        return Ok((Some(format!("there is no {name} {} (known here: {span})", words(set))), false));
    }
    let glibc = runtime.glibc.as_ref().map_or_else(String::new, |glibc| format!(", glibc {glibc}"));
    let versions = match &members[..] {
        [first, .., last] => format!("{first} to {last}"),
        _ => members[0].to_string(),
    };
    let sentence =
        format!("{name} {versions} has no wheel for Python {} on {}{glibc}", runtime.python, runtime.platform);
    Ok((Some(sentence), true))
}

/// That all versions which have a wheel for this target were withdrawn, and how to take one all the same.
fn withdrawn(name: &PackageName, members: &[&Pep440], packages: &Packages<'_>) -> Result<Option<String>, Failure> {
    let mut last = None;
    let mut count = 0;
    for version in members {
        match packages.chosen(name, version)? {
            Some(Artefact::Wheel(wheel)) => match wheel.withdrawn() {
                Some(withdrawn) => (last, count) = (Some((version, withdrawn)), count + 1),
                None => return Ok(None),
            },
            Some(Artefact::Pending(_)) => return Ok(None),
            None => {}
        }
    }
    let others =
        if count > 1 { format!(", as were {} older versions that would do", count - 1) } else { String::new() };
    Ok(last.map(|(version, withdrawn)| {
        format!("{name} {version} was {withdrawn}{others}; only `=={version}` takes it all the same")
    }))
}

fn collect(tree: &DerivationTree<Node, Set, String>, externals: &mut Vec<External<Node, Set, String>>) {
    match tree {
        DerivationTree::External(external) => {
            if !externals.iter().any(|known| same(known, external)) {
                externals.push(external.clone());
            }
        }
        DerivationTree::Derived(derived) => {
            collect(&derived.cause1, externals);
            collect(&derived.cause2, externals);
        }
    }
}

fn same(a: &External<Node, Set, String>, b: &External<Node, Set, String>) -> bool {
    match (a, b) {
        (External::NoVersions(p, s), External::NoVersions(q, t)) => p == q && s == t,
        (External::Custom(p, s, m), External::Custom(q, t, n)) => p == q && s == t && m == n,
        (External::FromDependencyOf(p, s, d, x), External::FromDependencyOf(q, t, e, y)) => {
            p == q && s == t && d == e && x == y
        }
        _ => false,
    }
}

/// Joins versions that require the same, and sets of which there is no version.
fn merge(merged: &mut Vec<External<Node, Set, String>>, external: External<Node, Set, String>) {
    for known in merged.iter_mut() {
        match (known, &external) {
            (External::FromDependencyOf(p, s, d, x), External::FromDependencyOf(q, t, e, y))
                if p == q && d == e && x == y =>
            {
                *s = s.union(t);
                return;
            }
            (External::NoVersions(p, s), External::NoVersions(q, t)) if p == q => {
                *s = s.union(t);
                return;
            }
            _ => {}
        }
    }
    merged.push(external);
}

/// A set as specifiers: `==2.8.0`, `>=1.2,<2`.
pub fn words(set: &Set) -> String {
    if *set == Set::full() {
        return "(any version)".into();
    }
    let plain = |version: &Pep440| {
        let artificial = version.local().contains(&LocalSegment::Number(u64::MAX));
        let version = if artificial { version.clone().without_local() } else { version.clone() };
        let version = if version.dev() == Some(0) { version.with_dev(None) } else { version };
        version.to_string()
    };
    let parts: Vec<String> = set
        .iter()
        .map(|(low, high)| match (low, high) {
            (Bound::Included(a), Bound::Included(b)) if plain(a) == plain(b) => format!("=={}", plain(a)),
            (low, high) => {
                let low = match low {
                    Bound::Included(v) => Some(format!(">={}", plain(v))),
                    Bound::Excluded(v) => Some(format!(">{}", plain(v))),
                    Bound::Unbounded => None,
                };
                let high = match high {
                    Bound::Included(v) => Some(format!("<={}", plain(v))),
                    Bound::Excluded(v) => Some(format!("<{}", plain(v))),
                    Bound::Unbounded => None,
                };
                low.into_iter().chain(high).collect::<Vec<_>>().join(",")
            }
        })
        .collect();
    match &parts[..] {
        [] => "(no version)".into(),
        [first, .., last] if parts.len() > 4 => format!("{first} ... {last}"),
        _ => parts.join(" or "),
    }
}

/// The inputs that a request sets, in the order in which they are least missed.
pub fn inputs(request: &Request) -> Vec<Input> {
    let stack = &request.stack;
    let mut inputs: Vec<Input> = request.packages.iter().map(|ask| Input::Package(ask.package.clone())).collect();
    let package = |name: &str| name.parse().map(Input::Package).ok();
    inputs.extend(stack.triton.as_ref().and_then(|_| package("triton")));
    inputs.extend(stack.torchaudio.as_ref().and_then(|_| package("torchaudio")));
    inputs.extend(stack.torchvision.as_ref().and_then(|_| package("torchvision")));
    inputs.extend(stack.nccl.as_ref().map(|_| Input::Nccl));
    inputs.extend(stack.cudnn.as_ref().map(|_| Input::Cudnn));
    inputs.extend(stack.python.as_ref().map(|_| Input::Python));
    inputs.extend(request.target.glibc.as_ref().map(|_| Input::Glibc));
    inputs.extend(stack.variant.as_ref().map(|_| Input::Variant));
    inputs.extend(request.target.driver.as_ref().map(|_| Input::Driver));
    inputs.extend(stack.cuda.as_ref().map(|_| Input::Cuda));
    inputs.extend(stack.torch.as_ref().map(|_| Input::Torch));
    inputs.extend(request.target.gpus.iter().cloned().map(Input::Gpu));
    inputs
}
