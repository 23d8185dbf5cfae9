//! The loader's symptoms, each explained by at most one rule: the first that knows its cause.
//!
//! What is optional is no symptom. One that shows in several processes is one, with all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::inventory::Library;
use crate::link::{Context, Edge, LinkModel, Load, Problem, Root};

/// Something that fails, and where it shows.
#[derive(Debug, Clone)]
pub struct Symptom<'a> {
    /// What fails.
    pub fault: Fault<'a>,
    /// When it shows, each time as the end of a sentence: "`import torch`".
    pub when: Vec<String>,
    /// The process in which it shows first; `None` for a library that no process is known to load.
    pub context: Option<&'a Context>,
}

/// What fails.
#[derive(Debug, Clone, Copy)]
pub enum Fault<'a> {
    /// A file that is being loaded.
    Load(&'a Problem),
    /// A library that a library opens while it works: none of its names leads to a file.
    Open(&'a Edge, &'a Load),
}

/// Symptoms that no rule has explained yet.
#[derive(Debug)]
pub struct Claims<'a> {
    left: Vec<Symptom<'a>>,
    /// Libraries, by inode, that a finding names as the cause of what fails.
    blamed: BTreeSet<(u64, u64)>,
}

impl<'a> Claims<'a> {
    /// All symptoms of a model.
    pub fn of(links: &'a LinkModel) -> Self {
        let mut all = Collected::default();
        for context in &links.contexts {
            all.context(context);
        }
        // What nothing is known to load may never be loaded; with GPU code it is worth a word.
        let with_code = |library: &Library| library.object.as_ref().is_ok_and(|object| !object.gpu_code.is_empty());
        for unreached in links.unreached.iter().filter(|unreached| with_code(&unreached.library)) {
            for problem in unreached.problems.iter().filter(|problem| problem.optional().is_none()) {
                all.add(Fault::Load(problem), "it is loaded".into(), None);
            }
        }
        Self { left: all.symptoms, blamed: BTreeSet::new() }
    }

    /// The symptoms that are left.
    pub fn left(&self) -> &[Symptom<'a>] {
        &self.left
    }

    /// Notes that a finding names this library as a cause.
    pub fn blame(&mut self, library: &Library) {
        self.blamed.insert(library.inode);
    }

    /// Whether a finding names this library as a cause.
    pub fn is_blamed(&self, library: &Library) -> bool {
        self.blamed.contains(&library.inode)
    }

    /// Takes those that `explained` holds for, in order.
    pub fn take(&mut self, explained: impl Fn(&Symptom<'a>) -> bool) -> Vec<Symptom<'a>> {
        let (taken, left) = std::mem::take(&mut self.left).into_iter().partition(explained);
        self.left = left;
        taken
    }
}

/// Symptoms that share a key, in the order in which the keys first come.
pub fn grouped<'s, 'a, K: PartialEq>(
    symptoms: &'s [Symptom<'a>],
    key: impl Fn(&Symptom<'a>) -> K,
) -> Vec<(K, Vec<&'s Symptom<'a>>)> {
    let mut groups: Vec<(K, Vec<&Symptom<'a>>)> = Vec::new();
    for symptom in symptoms {
        let key = key(symptom);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(symptom),
            None => groups.push((key, vec![symptom])),
        }
    }
    groups
}

#[derive(Default)]
struct Collected<'a> {
    symptoms: Vec<Symptom<'a>>,
    by_text: BTreeMap<String, usize>,
}

impl<'a> Collected<'a> {
    fn context(&mut self, context: &'a Context) {
        for (i, problem) in context.problems.iter().enumerate() {
            let root: Option<&Root> = context.roots.iter().find(|root| root.problems.contains(&i));
            if problem.optional().is_some() || root.is_some_and(|root| root.optional.is_some()) {
                continue;
            }
            let when = root.map_or(context.name.clone(), |root| root.when.clone());
            self.add(Fault::Load(problem), when, Some(context));
        }
        for edge in &context.edges {
            self.edge(edge, context);
        }
    }

    /// A file that is there and fails is the fault; one that is not there is one unless it is optional.
    fn edge(&mut self, edge: &'a Edge, context: &'a Context) {
        let not_found = |problem: &Problem| match problem {
            Problem::Unresolved { needed, .. } => edge.candidates.contains(needed),
            _ => false,
        };
        let mut fails = edge.problems.iter().filter(|problem| !not_found(problem)).peekable();
        if fails.peek().is_none()
            && edge.optional.is_none()
            && let (None, Some(by)) = (&edge.opened, context.loads.get(edge.by))
        {
            self.add(Fault::Open(edge, by), edge.when.clone(), Some(context));
        }
        // A library that may be absent and is there fails like any other.
        for problem in fails.filter(|problem| problem.optional().is_none()) {
            self.add(Fault::Load(problem), edge.when.clone(), Some(context));
        }
    }

    fn add(&mut self, fault: Fault<'a>, when: String, context: Option<&'a Context>) {
        let text = match fault {
            Fault::Load(problem) => problem.to_string(),
            Fault::Open(edge, by) => format!("{} {}", by.library.name, edge.candidates.join(" ")),
        };
        match self.by_text.get(&text) {
            Some(&known) => {
                let known = &mut self.symptoms[known];
                if !known.when.contains(&when) {
                    known.when.push(when);
                }
            }
            None => {
                self.by_text.insert(text, self.symptoms.len());
                self.symptoms.push(Symptom { fault, when: vec![when], context });
            }
        }
    }
}

impl<'a> Symptom<'a> {
    /// The library that meets it.
    pub fn by(&self) -> Option<&'a Arc<Library>> {
        match self.fault {
            Fault::Load(problem) => problem.by(),
            Fault::Open(_, load) => Some(&load.library),
        }
    }

    /// The name of the library that meets it; empty where that is Python.
    pub fn by_name(&self) -> String {
        self.by().map_or(String::new(), |by| by.name.clone())
    }

    /// The name that is asked for and not found, if that is what fails.
    pub fn unresolved(&self) -> Option<&'a str> {
        match self.fault {
            Fault::Load(Problem::Unresolved { needed, .. }) => Some(needed),
            // Of the names that are tried, the one that files have: with the major.
            Fault::Open(edge, _) => edge
                .candidates
                .iter()
                .rev()
                .find(|name| name.contains(".so."))
                .or(edge.candidates.last())
                .map(String::as_str),
            Fault::Load(_) => None,
        }
    }

    /// The symbol that nothing defines, if that is what fails.
    pub fn undefined(&self) -> Option<&'a str> {
        match self.fault {
            Fault::Load(Problem::Undefined { symbol, .. }) => Some(symbol),
            _ => None,
        }
    }

    /// The version that a library lacks, and that library, if that is what fails.
    pub fn version_missing(&self) -> Option<(&'a str, &'a Arc<Library>)> {
        match self.fault {
            Fault::Load(Problem::VersionMissing { version, library, .. }) => Some((version, library)),
            _ => None,
        }
    }

    /// The version of a symbol, or the version, that is asked for in vain: `GLIBC_2.38`.
    pub fn version(&self) -> Option<&'a str> {
        match self.fault {
            Fault::Load(Problem::Undefined { version, .. }) => version.as_ref().map(|version| version.name.as_str()),
            Fault::Load(Problem::VersionMissing { version, .. }) => Some(version),
            _ => None,
        }
    }

    /// The loaded library that was to define an undefined symbol, or that lacks a version.
    pub fn definer(&self) -> Option<&'a Arc<Library>> {
        match self.fault {
            Fault::Load(Problem::Undefined { expected, other_version, .. }) => {
                expected.as_ref().or(other_version.as_ref())
            }
            Fault::Load(Problem::VersionMissing { library, .. }) => Some(library),
            _ => None,
        }
    }

    /// A loaded library that defines the symbol and does not offer it to this one: it was opened with RTLD_LOCAL.
    pub fn hidden_definer(&self) -> Option<&'a Arc<Library>> {
        let symbol = self.undefined()?;
        let defines =
            |library: &&Arc<Library>| library.object.as_ref().is_ok_and(|object| object.symbols.find(symbol).len() > 0);
        self.context?.loads.iter().map(|load| &load.library).find(defines)
    }

    /// As the loader says it.
    pub fn text(&self) -> String {
        match self.fault {
            Fault::Load(problem) => problem.to_string(),
            Fault::Open(edge, _) => format!("cannot open any of {}", edge.candidates.join(", ")),
        }
    }

    /// What fails, in words: "`import torch` fails".
    pub fn fails(&self) -> String {
        format!("{} {}", self.when(), if self.when.len() > 1 { "fail" } else { "fails" })
    }

    /// When it shows, in words.
    pub fn when(&self) -> String {
        match &self.when[..] {
            [one] => one.clone(),
            [first, rest @ ..] => format!("{first} and {} more", rest.len()),
            [] => String::new(),
        }
    }
}
