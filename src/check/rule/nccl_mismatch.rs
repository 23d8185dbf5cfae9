//! An NCCL that lacks what was linked against it.

use crate::check::rule::mismatch::{Mismatch, findings};
use crate::check::{Case, Claims, Outcome, Rule};
use crate::diag::{Failure, Severity};

pub const RULE: Rule =
    Rule { code: "nccl-mismatch", level: Severity::Error, page: include_str!("../page/nccl-mismatch.md"), run };

fn run<'a>(case: &Case<'a>, claims: &mut Claims<'a>) -> Result<Outcome, Failure> {
    let nccl =
        Mismatch { code: RULE.code, name: "NCCL", identity: "nccl", file: "libnccl.so", symbols: &["nccl", "pnccl"] };
    Ok(Outcome::Ran(findings(case, claims, &nccl)))
}
