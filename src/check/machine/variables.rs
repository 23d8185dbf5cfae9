//! Variables of the shell that a job is started from: those left over from debugging, those that mean nothing, and those
//! that choose GPUs.

use std::collections::BTreeMap;

use super::{Context, HIDDEN, LEFT_OVER, Layer, Line, MIXED, SeenGpu};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::matrix::EnvVarFacts;

const LAYER: Layer = Layer::Application;
const UNKNOWN: &str = "env-variable-unknown";
/// Which order indices count in.
const ORDER_SOURCE: &str =
    "https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html";

pub(super) fn judge(context: &Context<'_>) -> Result<Line, Failure> {
    const TOPIC: &str = "variables";
    let Some(variables) = context.facts.variables.value() else {
        return Ok(Line::unread(LAYER, TOPIC, &context.facts.variables, "the variables of the job are not there"));
    };
    let facts = context.matrix.env_vars()?;
    let mut findings: Vec<Diagnostic> =
        variables.iter().filter_map(|(name, value)| left_over(name, value, facts)).collect();
    if !context.with_environment {
        findings.extend(variables.keys().filter_map(|name| unknown(name, facts)));
    }
    let is_ours = |name: &&String| facts.is_known(name) || facts.family(name).is_some();
    let count = variables.keys().filter(is_ours).count();
    let text = match count {
        0 => "none that has to do with GPUs".to_owned(),
        1 => "1 that has to do with GPUs".to_owned(),
        count => format!("{count} that have to do with GPUs"),
    };
    Ok(Line::judged(LAYER, TOPIC, text, context.facts.variables.how(), findings))
}

fn left_over(name: &str, value: &str, facts: &EnvVarFacts) -> Option<Diagnostic> {
    let row = facts.debugging(name, value)?;
    let message = format!("{name}={value} is left over from debugging: {}", row.effect);
    let seen = Evidence::observed("environment", format!("{name}={value}"));
    let finding =
        LEFT_OVER.found(message, seen).about(name).and(Evidence::fact(format!("{name}: {}", row.effect), &row.source));
    let severity = if row.slows { finding.severity } else { Severity::Note };
    Some(Diagnostic { severity, ..finding }.fix(format!("unset {name}, unless a fault is being looked for")))
}

/// What nobody reads, whatever is installed.
fn unknown(name: &str, facts: &EnvVarFacts) -> Option<Diagnostic> {
    if facts.is_known(name) {
        return None;
    }
    let seen = Evidence::observed("environment", format!("{name} is set"));
    if let Some(row) = facts.unread(name).filter(|row| row.until.is_none()) {
        let finding = Diagnostic::warning(UNKNOWN, format!("{name} has no effect: {}", row.reason), seen).about(name);
        let fix = row.instead.clone().unwrap_or_else(|| format!("unset {name}"));
        return Some(finding.and(Evidence::fact(&*row.reason, &row.source)).fix(fix));
    }
    let (known, row) =
        facts.near_known(name).filter(|_| facts.family(name).is_none() && facts.renamed(name).is_none())?;
    let note =
        Diagnostic::note(UNKNOWN, format!("{} reads {known}, and nobody is known to read {name}", row.reader), seen);
    let fact = Evidence::fact(format!("{} reads {known}", row.reader), &row.source);
    Some(note.about(name).and(fact).fix(format!("did you mean {known}?")))
}

/// Which GPUs a job sees, and whether they are of one model.
pub(super) fn visible(context: &Context<'_>) -> Line {
    const TOPIC: &str = "visible GPUs";
    const NAME: &str = "CUDA_VISIBLE_DEVICES";
    let facts = context.facts;
    let Some(variables) = facts.variables.value() else {
        return Line::unread(LAYER, TOPIC, &facts.variables, "the variables of the job are not there");
    };
    let how = facts.variables.how();
    let usable = usable(context);
    let count = usable.len();
    let Some(value) = variables.get(NAME) else {
        return Line::judged(
            LAYER,
            TOPIC,
            format!("all {count}"),
            how,
            mixed(&usable, variables, None).into_iter().collect(),
        );
    };
    let parts: Vec<&str> = value.split(',').map(str::trim).collect();
    let text = format!("{NAME}={value}");
    // What neither is a number nor begins as a UUID is an index that is none.
    let is_uuid = |part: &&str| ["GPU-", "MIG-"].iter().any(|begin| part.starts_with(begin));
    let indices: Vec<i64> = parts.iter().map(|part| part.parse().unwrap_or(-1)).collect();
    let seen = Evidence::observed("environment", text.clone());
    let hidden = |message: String| {
        let fact = Evidence::fact("devices behind the first index that is none are not visible", ORDER_SOURCE);
        let finding = HIDDEN.found(message, seen.clone()).about(NAME).and(fact);
        Line::judged(
            LAYER,
            TOPIC,
            text.clone(),
            how,
            vec![finding.fix(format!("unset {NAME}, or name GPUs that are there: 0 to {}", count.saturating_sub(1)))],
        )
    };
    if value.trim().is_empty() {
        return hidden(format!("{NAME} is empty: CUDA sees no GPU"));
    }
    if parts.iter().any(is_uuid) {
        return Line::not_checked(LAYER, TOPIC, format!("{text} names GPUs by their UUID, which no file shows"), how);
    }
    let is_there = |index: &&i64| **index >= 0 && (**index as usize) < count;
    let valid: Vec<usize> = indices.iter().take_while(is_there).map(|index| *index as usize).collect();
    match (valid.len(), parts.get(valid.len())) {
        (0, _) => hidden(format!("{text}: CUDA sees no GPU, since there are {count}, counted from 0")),
        (_, Some(bad)) => hidden(format!("{text}: there is no GPU `{bad}`, and CUDA sees only those before it")),
        _ => Line::judged(LAYER, TOPIC, text, how, mixed(&usable, variables, Some(&valid)).into_iter().collect()),
    }
}

/// Those that CUDA can count: not one that another driver holds, or none.
fn usable<'a>(context: &'a Context<'_>) -> Vec<&'a SeenGpu> {
    let driven: Vec<&SeenGpu> = context.gpus.iter().filter(|gpu| gpu.is_driven()).collect();
    if driven.is_empty() { context.gpus.iter().collect() } else { driven }
}

/// Several models in one job: the slowest decides how fast it is, and code is needed for each.
fn mixed(all: &[&SeenGpu], variables: &BTreeMap<String, String>, chosen: Option<&[usize]>) -> Option<Diagnostic> {
    let models = |gpus: &[&SeenGpu]| {
        let mut names: Vec<String> = gpus.iter().map(|gpu| gpu.words()).collect();
        names.sort();
        names.dedup();
        names
    };
    let names = models(all);
    if names.len() < 2 {
        return None;
    }
    let by_bus = variables.get("CUDA_DEVICE_ORDER").is_some_and(|order| order == "PCI_BUS_ID");
    let of_job: Vec<&SeenGpu> = match chosen {
        Some(chosen) if by_bus => chosen.iter().filter_map(|index| all.get(*index).copied()).collect(),
        // Without an order, what one index stands for is not known; it is one GPU all the same.
        Some([_]) => return None,
        _ => all.to_vec(),
    };
    let names = models(&of_job);
    if names.len() < 2 {
        return None;
    }
    let message = format!("a job here sees GPUs of {} models: {}", names.len(), names.join(", "));
    let finding = MIXED.found(message, of_job[0].seen.clone());
    let finding = of_job
        .iter()
        .skip(1)
        .filter(|gpu| gpu.seen != of_job[0].seen)
        .fold(finding, |finding, gpu| finding.and(gpu.seen.clone()));
    let fact = Evidence::fact("CUDA counts the fastest GPU first unless CUDA_DEVICE_ORDER=PCI_BUS_ID", ORDER_SOURCE);
    Some(finding.and(fact).fix("choose those of one model: CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=.."))
}
