//! Why a torch build was chosen: what each newer or otherwise preferred build is excluded by.

use super::candidate::{Candidate, candidates, summary};
use super::rank::ranked;
use super::rule::{Fact, Rule, Verdict, python_rule, rules};
use super::{Context, Machine, Request};
use crate::diag::Failure;
use crate::python::PythonVersion;

/// The case for a torch build.
#[derive(Debug, Clone)]
pub struct Why {
    /// A sentence for each group of builds that would be preferred, with what excludes them.
    pub excluded: Vec<String>,
    /// Facts about the chosen build and the inputs.
    pub facts: Vec<Fact>,
}

/// Why torch `label` (`2.8.0+cu128`) was chosen for a request, with the Python that the lock has.
///
/// # Errors
/// As [`super::resolve`].
pub fn why(
    request: &Request,
    context: &Context<'_>,
    label: &str,
    python: PythonVersion,
) -> Result<Option<Why>, Failure> {
    let machine = Machine::of(request, context.matrix)?;
    let candidates = candidates(request, context)?;
    let mut all = rules(request, &machine, &candidates, context)?;
    all.push(python_rule(request, &[python], &candidates));
    let order = ranked(&candidates, &all, &machine, context)?;
    let Some(at) = order.iter().position(|&i| candidates[i].label() == label) else { return Ok(None) };
    let mut groups: Vec<(String, Vec<&Candidate>)> = Vec::new();
    for &i in &order[..at] {
        let reason = reason(&all, i);
        match groups.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, members)) => members.push(&candidates[i]),
            None => groups.push((reason, vec![&candidates[i]])),
        }
    }
    for (_, members) in &mut groups {
        members.sort_by(|a, b| a.version.cmp(&b.version));
    }
    let excluded =
        groups.iter().map(|(reason, members)| format!("torch {}: {reason}", summary(members.iter().copied())));
    let mut facts: Vec<Fact> = all.iter().flat_map(|rule| rule.facts.iter().cloned()).collect();
    if let Some(build) = &candidates[order[at]].build {
        let row = build.row();
        let code: Vec<String> = row.code.iter().flatten().map(ToString::to_string).collect();
        let claim = format!(
            "torch {label} carries {}",
            if code.is_empty() { "code that nobody has read".into() } else { code.join(" ") }
        );
        facts.push(Fact { claim, source: row.source.clone() });
    }
    facts.dedup();
    Ok(Some(Why { excluded: excluded.collect(), facts }))
}

/// The inputs that exclude a candidate, in words.
fn reason(rules: &[Rule], i: usize) -> String {
    let against: Vec<&str> =
        rules.iter().filter(|rule| rule.verdicts[i] == Verdict::No).map(|rule| rule.subject.as_str()).collect();
    if against.is_empty() {
        "no wheel of it is known here, or it does not go with the other packages".into()
    } else {
        format!("not with {}", against.join(", "))
    }
}
