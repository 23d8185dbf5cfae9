//! Answers of the resolver on the embedded matrix.

mod handed;
mod repairs;
mod tries;

use gpulock::diag::{Class, Failure};
use gpulock::manifest::{Platform, PythonAsk, Stack, Target};
use gpulock::matrix::{Matrix, Snapshot};
use gpulock::resolve::{Conflict, Context, Keep, Outcome, Request, Solution, resolve, resolve_all};

/// A request for one target; fields are set by the test.
pub fn request(gpus: &[&str], driver: &str) -> Request {
    let target = Target {
        name: "test".into(),
        platform: Platform::LinuxX86_64,
        glibc: None,
        gpus: gpus.iter().map(|gpu| (*gpu).to_owned()).collect(),
        driver: (!driver.is_empty()).then(|| driver.parse().unwrap()),
        forward_compat: false,
    };
    Request { target, stack: Stack::default(), packages: Vec::new(), indexes: Vec::new() }
}

/// What a request gives: of the matrix as a whole when `pending`, else of what the snapshot has.
pub fn answer(request: &Request, pending: bool) -> Outcome {
    let matrix = Matrix::embedded();
    with_context(&matrix, pending, |context| resolve(request, context)).unwrap()
}

/// The same for a request that may be no question at all.
pub fn outcome(request: &Request, matrix: &Matrix) -> Result<Outcome, Failure> {
    with_context(matrix, true, |context| resolve(request, context))
}

/// What several targets give together.
pub fn all(requests: &[Request]) -> Vec<Outcome> {
    let matrix = Matrix::embedded();
    let snapshot = matrix.snapshot();
    let keep = Keep::default();
    let context = |_: &Request| Context {
        matrix: &matrix,
        catalog: &snapshot,
        default_index: Snapshot::INDEX,
        pending: true,
        offline: true,
        keep: &keep,
    };
    let contexts: Vec<_> = requests.iter().map(context).collect();
    resolve_all(requests, &contexts).unwrap()
}

fn with_context<T>(matrix: &Matrix, pending: bool, act: impl FnOnce(&Context<'_>) -> T) -> T {
    let snapshot = matrix.snapshot();
    let keep = Keep::default();
    act(&Context { matrix, catalog: &snapshot, default_index: Snapshot::INDEX, pending, offline: true, keep: &keep })
}

/// `2.8.0+cu128, native` or `none: ...`
pub fn short(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Solved(s) => {
            let variant = s.stack.variant.clone().unwrap_or_default();
            let tier = s.driver.tier.map_or("no driver", |tier| tier.name());
            let gpus: Vec<String> = s
                .gpus
                .iter()
                .map(|gpu| format!("{} by {}", gpu.sm, gpu.code.map_or("unknown".into(), |code| code.to_string())))
                .collect();
            format!("{}+{variant}, {tier}, {}", s.stack.torch, gpus.join(", "))
        }
        Outcome::Conflict(c) => {
            let repairs: Vec<String> =
                c.repairs.iter().map(|r| format!("{} -> {}", r.change, r.gives.words())).collect();
            format!("none: {}", repairs.join("; "))
        }
    }
}

pub fn python(text: &str) -> Option<PythonAsk> {
    Some(PythonAsk::Exact(text.parse().unwrap()))
}
