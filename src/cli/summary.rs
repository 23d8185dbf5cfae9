//! A lock and a conflict, for people.

use std::fmt::Write;

use super::Globals;
use crate::lock::{Code, Gpu, Image, Lock, Reference, Target, Tier, Wheel};
use crate::report::human::{one_line, printable};
use crate::resolve::Conflict;

/// The stacks of a lock.
pub fn lock(lock: &Lock) -> String {
    let blocks: Vec<String> = lock.targets.iter().map(|one| target(lock, one)).collect();
    blocks.join("\n")
}

fn target(lock: &Lock, target: &Target) -> String {
    let mut text = format!("target {} ({}, Python {})\n", target.name, target.platform, target.python);
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<9} {}", one_line(&value));
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
    target.gpus.iter().for_each(|one| line("GPU", gpu(one)));
    if let Some(glibc) = &target.glibc {
        line("glibc", format!("{glibc} or later"));
    }
    if let Some(image) = &target.image {
        line("image", self::image(image));
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

fn gpu(gpu: &Gpu) -> String {
    let served = match (&gpu.from, gpu.code) {
        (Some(from), Code::Sass) => format!("runs {from} code"),
        (Some(from), Code::Ptx) => format!("runs {from}, compiled by the driver"),
        (_, _) => "not known whether its code runs".into(),
    };
    let sm = if gpu.name == gpu.sm { String::new() } else { format!(" ({})", gpu.sm) };
    format!("{}{sm} {served}", gpu.name)
}

fn image(image: &Image) -> String {
    match &image.base {
        Some(Reference { name, digest }) => {
            let digest = digest.as_ref().map(|digest| format!("@{digest}")).unwrap_or_default();
            format!("{name}{digest}")
        }
        None => format!("none known for {} on {}", image.flavor, image.os),
    }
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
        let known = changes.len();
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
                Some(was) => {
                    let (was, is) = (old.wheel(was), new.wheel(package));
                    let what = was.zip(is).and_then(|((_, was), (_, is))| of_a_file(was, is));
                    changes.extend(what.map(|what| format!("{}: {name} {}: {what}", target.name, package.version)));
                }
            }
        }
        for (name, package) in &before.packages {
            if !target.packages.contains_key(name) {
                changes.push(format!("{}: removed {name} {}", target.name, package.version));
            }
        }
        // What follows from other packages need not be said beside them.
        if changes.len() == known && before != target {
            changes.extend(facts(before, target).into_iter().map(|what| format!("{}: {what}", target.name)));
        }
    }
    for (name, url) in &new.indexes {
        if let Some(was) = old.indexes.get(name).filter(|was| *was != url) {
            changes.push(format!("index {name}: {was} -> {url}"));
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
    if changes.is_empty() && !old.same_content(new) {
        changes.push("lines that no target uses, or the order of the targets".into());
    }
    changes
}

/// What is said differently of a file of one name.
fn of_a_file(was: &Wheel, is: &Wheel) -> Option<String> {
    if was.sha256 != is.sha256 {
        return Some(format!("another file of the same name (sha256 {} -> {})", was.sha256, is.sha256));
    }
    if was.index != is.index {
        return Some(format!("from {} -> {}", was.index, is.index));
    }
    let known = |size: Option<u64>| size.map_or_else(|| "not known".into(), |size| size.to_string());
    if was.size != is.size {
        return Some(format!("size {} -> {}", known(was.size), known(is.size)));
    }
    (was != is).then(|| "its address or its shared libraries".into())
}

/// What differs between two states of a target whose packages have the same versions and files.
fn facts(before: &Target, target: &Target) -> Vec<String> {
    let known = |value: Option<String>| value.unwrap_or_else(|| "unknown".into());
    let pairs = |one: &Target| {
        [
            ("platform", one.platform.to_string()),
            ("glibc", known(one.glibc.as_ref().map(ToString::to_string))),
            ("torch", one.torch.to_string()),
            ("variant", one.variant.clone()),
            ("CUDA", known(one.cuda.map(|cuda| cuda.to_string()))),
            ("cuDNN", known(one.cudnn.as_ref().map(ToString::to_string))),
            ("NCCL", known(one.nccl.as_ref().map(ToString::to_string))),
            ("driver", driver(one)),
            ("GPUs", one.gpus.iter().map(gpu).collect::<Vec<_>>().join(", ")),
            ("image", one.image.as_ref().map_or_else(|| "none".into(), image)),
        ]
    };
    let mut facts: Vec<String> = std::iter::zip(pairs(before), pairs(target))
        .filter(|(was, is)| was != is)
        .map(|((what, was), (_, is))| format!("{what} {was} -> {is}"))
        .collect();
    if before.env != target.env {
        facts.push("variables for the image and the job".into());
    }
    if facts.is_empty() {
        facts.push("who needs a package, its extras, or which facts are inferred".into());
    }
    facts
}

/// Why there is no stack, and what would give one; as it may be printed.
pub fn conflict(conflict: &Conflict, globals: &Globals) -> String {
    let style = globals.style();
    let mut text = format!("{}\n", style.error(&format!("error[no-stack]: no stack for target `{}`", conflict.target)));
    for line in conflict.explanation.lines() {
        let _ = writeln!(text, "  {}", printable(line));
    }
    if !conflict.facts.is_empty() {
        text.push_str("  facts:\n");
        for fact in &conflict.facts {
            let _ = writeln!(text, "    - {}", printable(&fact.claim));
            if globals.verbose > 0 {
                let _ = writeln!(text, "      source: {}", printable(&fact.source));
            }
        }
    }
    if conflict.repairs.is_empty() {
        text.push_str("  no change of one or two inputs gives a stack\n");
    } else {
        text.push_str(&format!("  {}\n", style.fix("what would work:")));
        for repair in &conflict.repairs {
            let repair = format!("{}  ->  {}", repair.change, repair.words());
            let _ = writeln!(text, "    - {}", printable(&repair));
        }
    }
    text
}
