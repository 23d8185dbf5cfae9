//! Whether a machine is one that the lock's target describes.

use super::{Context, Layer, Line, NOT_TARGET};
use crate::diag::{Diagnostic, Evidence};
use crate::inventory::machine::Reading;
use crate::lock::Target;

const LAYER: Layer = Layer::Framework;
const TOPIC: &str = "lock";

pub(super) fn judge(context: &Context<'_>) -> Option<Line> {
    if context.targets.is_empty() {
        return None;
    }
    let words = |target: &Target| format!("target {}: {}", target.name, described(target));
    if context.gpus.is_empty() {
        return Some(Line::not_checked(
            LAYER,
            TOPIC,
            "there is no GPU here to compare with its targets",
            "gpulock.lock",
        ));
    }
    if let Some(target) = context.target() {
        return Some(Line::judged(LAYER, TOPIC, words(target), "gpulock.lock", differences(context, target)));
    }
    // It is none of several: each says why.
    let names: Vec<&str> = context.targets.iter().map(|target| target.name.as_str()).collect();
    let message = format!("this machine is none of the lock's targets: {}", names.join(", "));
    let reasons = context.targets.iter().filter_map(|target| {
        let difference = differences(context, target).into_iter().next()?;
        Some(in_lock(target, difference.message))
    });
    let finding = NOT_TARGET.found(message, context.gpus[0].seen.clone());
    let finding = reasons.fold(finding, |finding, reason| finding.and(reason));
    let fix = "add these machines to a target of gpulock.toml and gpulock resolve, or name the target that is \
               meant: --target";
    Some(Line::judged(LAYER, TOPIC, "none of its targets", "gpulock.lock", vec![finding.fix(fix)]))
}

/// What keeps a machine from being one of a target.
pub(super) fn differences(context: &Context<'_>, target: &Target) -> Vec<Diagnostic> {
    let mut findings: Vec<Diagnostic> = platform(context, target).into_iter().collect();
    findings.extend(gpus(context, target));
    findings.extend(driver(context, target));
    findings
}

fn described(target: &Target) -> String {
    let gpus: Vec<&str> = target.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
    match &target.driver.given {
        Some(driver) => format!("{}, driver {driver}", gpus.join(", ")),
        None => gpus.join(", "),
    }
}

fn in_lock(target: &Target, what: String) -> Evidence {
    Evidence::observed("gpulock.lock", format!("target {}: {what}", target.name))
}

fn platform(context: &Context<'_>, target: &Target) -> Option<Diagnostic> {
    let processor = context.facts.processor.fact()?;
    if target.platform.machine() == processor.value {
        return None;
    }
    let message = format!("this machine is {}, and target {} is {}", processor.value, target.name, target.platform);
    let finding = NOT_TARGET.found(message, processor.seen.clone()).and(in_lock(target, target.platform.to_string()));
    Some(finding.fix("add a target for these machines to gpulock.toml, and gpulock resolve"))
}

/// GPUs of an architecture that the target does not have; a stack serves those of one architecture alike.
fn gpus(context: &Context<'_>, target: &Target) -> Vec<Diagnostic> {
    let is_described = |sm: &str| target.gpus.iter().any(|gpu| gpu.sm == sm);
    let mut findings: Vec<Diagnostic> = Vec::new();
    for gpu in context.ours() {
        let Some(capability) = gpu.capability else { continue };
        let message = format!("{} is none of the GPUs of target {}", gpu.words(), target.name);
        if is_described(&capability.sm()) || findings.iter().any(|known| known.message == message) {
            continue;
        }
        let finding = NOT_TARGET.found(message, gpu.seen.clone()).and(in_lock(target, described(target)));
        findings.push(
            finding.fix(format!("add \"{}\" to gpus of [target.{}], and gpulock resolve", gpu.name, target.name)),
        );
    }
    findings
}

fn driver(context: &Context<'_>, target: &Target) -> Option<Diagnostic> {
    let Reading::Is(driver) = &context.facts.module.version else { return None };
    let floor = target.driver.floor.as_ref().filter(|floor| driver.value < **floor)?;
    let message = format!("driver {} is older than {floor}, the least that the lock's stack runs with", driver.value);
    let finding = Diagnostic::error("driver-too-old", message, driver.seen.clone());
    Some(finding.and(in_lock(target, format!("driver floor {floor}"))).fix(format!("install driver {floor} or later")))
}
