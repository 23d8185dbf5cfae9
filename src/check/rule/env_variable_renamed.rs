//! Variables of the job under a name that the installed release does not read, since it reads another one.

use std::collections::BTreeMap;

use crate::check::variables::{Readers, Releases};
use crate::check::{Case, Claims, Outcome, Rule};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::matrix::EnvVarFacts;

pub const RULE: Rule = Rule {
    code: "env-variable-renamed",
    level: Severity::Warning,
    page: include_str!("../page/env-variable-renamed.md"),
    run,
};

fn run(case: &Case<'_>, _: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let variables = &case.inventory.variables;
    if variables.is_empty() {
        return Ok(Outcome::Ran(Vec::new()));
    }
    Ok(Outcome::Ran(judge(variables, &Readers::of(case).releases, case.matrix.env_vars()?)))
}

/// What is to be said of variables that are set together.
pub fn judge(variables: &BTreeMap<String, String>, releases: &Releases, facts: &EnvVarFacts) -> Vec<Diagnostic> {
    variables.keys().filter_map(|name| one(name, variables, releases, facts)).collect()
}

fn one(
    name: &str,
    variables: &BTreeMap<String, String>,
    installed: &Releases,
    facts: &EnvVarFacts,
) -> Option<Diagnostic> {
    let renamed = facts.renamed(name)?;
    let (old, new, row) = (renamed.old, renamed.new, renamed.row);
    let releases = installed.of(row.reader);
    // With both names set, the job is right whichever is read.
    if releases.is_empty() || variables.contains_key(old) && variables.contains_key(new) {
        return None;
    }
    let (reader, installed) = (row.reader.name(), installed.words(row.reader));
    let (message, severity, instead) = if name == new {
        if releases.iter().any(|release| row.reads_new(release)) {
            return None;
        }
        let message =
            format!("{new} has no effect: {installed} does not read it yet, {reader} {} is the first", row.since);
        (message, Severity::Warning, old)
    } else if releases.iter().all(|release| !row.reads_old(release)) {
        (format!("{old} has no effect: {installed} reads it as {new}"), Severity::Warning, new)
    } else if releases.iter().all(|release| row.reads_new(release)) {
        (format!("{old} is the old name of {new}: {installed} still reads it"), Severity::Note, new)
    } else {
        return None;
    };
    let until =
        row.until.as_ref().map_or(String::new(), |until| format!("; {until} is the last that reads the old one"));
    let claim = format!("{new} is the new name of {old}, from {reader} {} on{until}", row.since);
    let finding =
        Diagnostic::warning(RULE.code, message, Evidence::observed("the job's variables", format!("{name} is set")));
    let finding =
        finding.about(name).and(Evidence::fact(claim, &row.source)).fix(format!("set {instead} instead of {name}"));
    Some(Diagnostic { severity, ..finding })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Matrix;

    /// Findings for variables that are set, by severity and name.
    fn findings(torch: &str, nccl: &str, names: &[&str]) -> Vec<(Severity, String, Option<String>)> {
        let matrix = Matrix::embedded();
        let releases = |text: &str| text.split_whitespace().map(|release| release.parse().unwrap()).collect();
        let installed = Releases { torch: releases(torch), nccl: releases(nccl) };
        let variables = names.iter().map(|name| ((*name).to_owned(), "1".to_owned())).collect();
        let found = judge(&variables, &installed, matrix.env_vars().unwrap());
        found.into_iter().map(|one| (one.severity, one.subject.unwrap(), one.fix)).collect()
    }

    #[test]
    fn fires() {
        use Severity::{Note, Warning};
        for (torch, nccl, name, severity, instead) in [
            ("2.8.0", "2.27.3", "PYTORCH_ALLOC_CONF", Warning, "PYTORCH_CUDA_ALLOC_CONF"),
            ("2.1.2", "2.18.1", "TORCH_NCCL_BLOCKING_WAIT", Warning, "NCCL_BLOCKING_WAIT"),
            ("2.8.0", "2.27.3", "NCCL_IB_GDR_LEVEL", Warning, "NCCL_NET_GDR_LEVEL"),
            ("2.8.0", "2.20.5 2.27.3", "NCCL_IB_GDR_LEVEL", Warning, "NCCL_NET_GDR_LEVEL"),
            ("2.2.0", "2.19.3", "NCCL_ASYNC_ERROR_HANDLING", Note, "TORCH_NCCL_ASYNC_ERROR_HANDLING"),
            ("2.15.0", "2.30.7", "PYTORCH_CUDA_ALLOC_CONF", Note, "PYTORCH_ALLOC_CONF"),
        ] {
            let fix = Some(format!("set {instead} instead of {name}"));
            assert_eq!(findings(torch, nccl, &[name]), [(severity, name.to_owned(), fix)], "{torch} {nccl}");
        }
    }

    #[test]
    fn stays_quiet() {
        for (torch, nccl, names) in [
            // The name that this release reads.
            ("2.8.0", "2.27.3", &["PYTORCH_CUDA_ALLOC_CONF", "TORCH_NCCL_ASYNC_ERROR_HANDLING"][..]),
            ("2.9.0", "2.27.5", &["PYTORCH_ALLOC_CONF", "NCCL_NET_GDR_LEVEL"]),
            ("2.1.2", "2.18.1", &["NCCL_ASYNC_ERROR_HANDLING"]),
            // Both names, for jobs that run with either release.
            ("2.8.0", "2.27.3", &["PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"]),
            // Nobody knows which release reads it.
            ("", "", &["PYTORCH_ALLOC_CONF", "NCCL_IB_GDR_LEVEL", "NCCL_ASYNC_ERROR_HANDLING"]),
            ("2.8.0 2.9.0", "", &["PYTORCH_ALLOC_CONF"]),
            ("2.8.0", "2.27.3", &["NCCL_DEBUG", "MY_VARIABLE"]),
        ] {
            assert_eq!(findings(torch, nccl, names), [], "{torch} {nccl} {names:?}");
        }
    }
}
