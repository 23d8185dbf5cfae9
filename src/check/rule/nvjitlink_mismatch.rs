//! An nvJitLink that is older than what was linked against it: cuSPARSE and cuSOLVER take versioned symbols from it.

use crate::check::rule::mismatch::{Mismatch, findings};
use crate::check::{Case, Claims, Outcome, Rule};
use crate::diag::{Failure, Severity};

pub const RULE: Rule = Rule {
    code: "nvjitlink-mismatch",
    level: Severity::Error,
    page: include_str!("../page/nvjitlink-mismatch.md"),
    run,
};

fn run<'a>(case: &Case<'a>, claims: &mut Claims<'a>) -> Result<Outcome, Failure> {
    let nvjitlink = Mismatch {
        code: RULE.code,
        name: "nvJitLink",
        identity: "nvjitlink",
        file: "libnvJitLink.so",
        symbols: &["nvJitLink", "__nvJitLink"],
    };
    Ok(Outcome::Ran(findings(case, claims, &nvjitlink)))
}
