//! A lock and a conflict, for people.

use std::fmt::Write;

use super::Globals;
use crate::lock::{Code, Lock, Target, Tier};
use crate::resolve::Conflict;

/// The stacks of a lock.
pub fn lock(lock: &Lock) -> String {
    let blocks: Vec<String> = lock.targets.iter().map(|one| target(lock, one)).collect();
    blocks.join("\n")
}

fn target(lock: &Lock, target: &Target) -> String {
    let mut text = format!("target {} ({}, Python {})\n", target.name, target.platform, target.python);
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<9} {value}");
    };
    let torch = target.packages.iter().find(|(name, _)| name.as_str() == "torch");
    let index = torch.and_then(|(_, package)| lock.index_of(package)).unwrap_or("unknown index");
    line("torch", format!("{} ({}) from {index}", target.torch, target.variant));
    let known = |value: Option<String>| value.unwrap_or_else(|| "unknown".into());
    line(
        "CUDA",
        format!(
            "{}, cuDNN {}, NCCL {}",
            known(target.cuda.map(|v| v.to_string())),
            known(target.cudnn.as_ref().map(ToString::to_string)),
            known(target.nccl.as_ref().map(ToString::to_string))
        ),
    );
    line("driver", driver(target));
    for gpu in &target.gpus {
        let served = match (&gpu.from, gpu.code) {
            (Some(from), Code::Sass) => format!("runs {from} code"),
            (Some(from), Code::Ptx) => format!("runs {from}, compiled by the driver"),
            (_, _) => "not known whether its code runs".into(),
        };
        let sm = if gpu.name == gpu.sm { String::new() } else { format!(" ({})", gpu.sm) };
        line("GPU", format!("{}{sm} {served}", gpu.name));
    }
    if let Some(glibc) = &target.glibc {
        line("glibc", format!("{glibc} or later"));
    }
    let pending: Vec<&str> = target.pending().map(|name| name.as_str()).collect();
    let wheels = target.packages.values().filter_map(|package| lock.wheel(package));
    let (size, libraries) =
        wheels.fold((0, 0), |(size, libs), (_, wheel)| (size + wheel.size.unwrap_or(0), libs + wheel.libraries.len()));
    line(
        "packages",
        format!(
            "{}, {} shared libraries locked, {:.2} GB to download",
            target.packages.len(),
            libraries,
            size as f64 / 1e9
        ),
    );
    if !pending.is_empty() {
        line("pending", format!("{} without known hash: {}", pending.len(), pending.join(", ")));
    }
    text
}

fn driver(target: &Target) -> String {
    let driver = &target.driver;
    let floor = driver.floor.as_ref().map_or_else(|| "unknown".into(), ToString::to_string);
    let native = driver.native.as_ref().map_or_else(|| "unknown".into(), ToString::to_string);
    let how = match driver.tier {
        Some(Tier::Native) => "native",
        Some(Tier::MinorVersion) => "minor-version compatibility",
        Some(Tier::Forward) => "forward compatibility (cuda-compat)",
        None => "not checked",
    };
    let given = driver.given.as_deref().unwrap_or("not given");
    // Bounds are a driver that the user controls: what it has to be is said, not how one of them would do.
    if given.starts_with(['<', '>', '!', '*']) {
        return format!("{given}: has to be {floor} or later, {native} or later for native support");
    }
    format!("{given}: {how} (runs from {floor}, native from {native})")
}

/// What changed between two locks, a line each.
pub fn changes(old: Option<&Lock>, new: &Lock) -> Vec<String> {
    let Some(old) = old else { return Vec::new() };
    let mut changes = Vec::new();
    for target in &new.targets {
        let Some(before) = old.target(&target.name) else {
            changes.push(format!("target {} is new", target.name));
            continue;
        };
        if before.python != target.python {
            changes.push(format!("{}: Python {} -> {}", target.name, before.python, target.python));
        }
        // What everything else follows from comes first.
        let (torch, others): (Vec<_>, Vec<_>) = target.packages.iter().partition(|(name, _)| name.as_str() == "torch");
        for (name, package) in torch.into_iter().chain(others) {
            match before.packages.get(name) {
                None => changes.push(format!("{}: added {name} {}", target.name, package.version)),
                Some(was) if was.version != package.version => {
                    changes.push(format!("{}: {name} {} -> {}", target.name, was.version, package.version));
                }
                Some(was) if was.artefact != package.artefact => {
                    changes.push(format!("{}: {name} {}: another file", target.name, package.version));
                }
                Some(_) => {}
            }
        }
        for (name, package) in &before.packages {
            if !target.packages.contains_key(name) {
                changes.push(format!("{}: removed {name} {}", target.name, package.version));
            }
        }
    }
    for target in &old.targets {
        if new.target(&target.name).is_none() {
            changes.push(format!("target {} is gone", target.name));
        }
    }
    if changes.is_empty() && old.inputs != new.inputs {
        changes.push("what is asked changed, the stack did not".into());
    }
    changes
}

/// Why there is no stack, and what would give one.
pub fn conflict(conflict: &Conflict, globals: &Globals) -> String {
    let style = globals.style();
    let mut text = format!("{}\n", style.error(&format!("error[no-stack]: no stack for target `{}`", conflict.target)));
    for line in conflict.explanation.lines() {
        let _ = writeln!(text, "  {line}");
    }
    if !conflict.facts.is_empty() {
        text.push_str("  facts:\n");
        for fact in &conflict.facts {
            let _ = writeln!(text, "    - {}", fact.claim);
            if globals.verbose > 0 {
                let _ = writeln!(text, "      source: {}", fact.source);
            }
        }
    }
    if conflict.repairs.is_empty() {
        text.push_str("  no change of one or two inputs gives a stack\n");
    } else {
        text.push_str(&format!("  {}\n", style.fix("what would work:")));
        for repair in &conflict.repairs {
            let _ = writeln!(text, "    - {}  ->  {}", repair.change, repair.gives.words());
        }
    }
    text
}
