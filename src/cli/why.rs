//! `gpulock why PACKAGE`: the chain of facts that chose a version.

use std::collections::BTreeSet;
use std::fmt::Write;

use clap::Args as ClapArgs;

use super::input::{self, Flags, Place};
use super::source::Source;
use super::{Answer, Form, Globals, output};
use crate::diag::{Diagnostic, Evidence, Failure};
use crate::lock::{Lock, Package, Target, Tier};
use crate::manifest::{self, Manifest, Stack, parse_package_name};
use crate::matrix::Matrix;
use crate::python::{Catalog, PackageName};
use crate::render;
use crate::report::json::{self, Why};
use crate::resolve::{self, Context, Keep, Request, why};

/// Flags of `gpulock why`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// The package
    #[arg(value_parser = parse_package_name)]
    package: PackageName,
    #[command(flatten)]
    place: Place,
    /// For this target only
    #[arg(long, env = "GPULOCK_TARGET")]
    target: Option<String>,
}

/// Runs it.
///
/// # Errors
/// No lock, a lock that cannot be read, a package that is not in it.
pub fn run(args: &Args, globals: &Globals) -> Result<Answer, Failure> {
    let path = input::lock_path(&args.place);
    let name = path.display().to_string();
    let lock = input::read_lock(&path)?;
    if let Some(target) = &args.target {
        render::choose(&lock, Some(target))?;
    }
    let manifest = input::read(&args.place, &Flags::default()).ok().map(|input| input.manifest);
    let matrix = globals.matrix()?;
    let source = Source::new(&matrix, &manifest.clone().unwrap_or_default(), globals, true)?;
    let wanted = |target: &&Target| args.target.as_ref().is_none_or(|name| *name == target.name);
    let mut all = Vec::new();
    for target in lock.targets.iter().filter(wanted) {
        let Some(package) = target.packages.get(&args.package) else { continue };
        let mut why = Why {
            target: target.name.clone(),
            version: package.version.to_string(),
            chain: chain(&lock, target, &args.package, &source),
            preferred: Vec::new(),
            facts: Vec::new(),
        };
        if args.package.as_str() == "torch"
            && let Some(build) = build(target, manifest.as_ref(), &matrix, &source, globals)?
        {
            (why.preferred, why.facts) = (build.excluded, build.facts);
        }
        all.push(why);
    }
    if all.is_empty() {
        let known: BTreeSet<&str> =
            lock.targets.iter().flat_map(|t| t.packages.keys()).map(PackageName::as_str).collect();
        let near = crate::diag::did_you_mean(args.package.as_str(), known);
        let evidence = Evidence::observed(name, "no such package in it");
        let part = part(args.package.as_str(), &lock);
        let error = Diagnostic::error("package-unknown", format!("{} is not in the lock", args.package), evidence);
        return Err(Failure::no(match near {
            _ if part.is_some() => error.fix(part.unwrap_or_default()),
            Some(near) => error.fix(format!("did you mean `{near}`?")),
            None => error.fix("`gpulock export constraints` lists the packages of the lock"),
        }));
    }
    match globals.form() {
        Form::Human => output::human(globals, &human(&args.package, &all, globals)),
        Form::Json => output::write(globals, &json::why(args.package.as_str(), &all)),
    }?;
    Ok(Answer::Yes)
}

/// What to ask for a part of the stack that is no package: it follows from torch, or from the manifest.
fn part(name: &str, lock: &Lock) -> Option<String> {
    /// Parts, with how the names of their packages begin.
    const PARTS: [(&str, &str); 4] = [
        ("cuda", "nvidia-cuda-runtime"),
        ("cudnn", "nvidia-cudnn"),
        ("nccl", "nvidia-nccl"),
        ("cublas", "nvidia-cublas"),
    ];
    let follows = "it follows from the build of torch: `gpulock why torch`";
    if let Some((_, begins)) = PARTS.iter().find(|(part, _)| *part == name) {
        let packages = lock.targets.iter().flat_map(|target| target.packages.keys());
        let package = packages.map(PackageName::as_str).find(|package| package.starts_with(begins));
        return Some(match package {
            Some(package) => format!("{follows}; its package is {package}: `gpulock why {package}`"),
            None => follows.into(),
        });
    }
    match name {
        "driver" | "gpu" => {
            Some("what the driver has to be follows from the build of torch: `gpulock why torch`".into())
        }
        "python" => {
            Some("it is what [stack] asks for, or the newest that all packages have: `gpulock why torch`".into())
        }
        _ => None,
    }
}

fn human(package: &PackageName, all: &[Why], globals: &Globals) -> String {
    let mut text = String::new();
    for why in all {
        let _ = writeln!(text, "target {}: {package} {}", why.target, why.version);
        for (depth, sentence) in &why.chain {
            let _ = writeln!(text, "{}{sentence}", "  ".repeat(*depth));
        }
        if !why.preferred.is_empty() {
            text.push_str("  builds that would be preferred:\n");
        }
        for sentence in &why.preferred {
            let _ = writeln!(text, "    - {sentence}");
        }
        if !why.facts.is_empty() {
            text.push_str("  facts:\n");
        }
        for fact in &why.facts {
            let _ = writeln!(text, "    - {}", fact.claim);
            if globals.verbose > 0 {
                let _ = writeln!(text, "      source: {}", fact.source);
            }
        }
    }
    text
}

/// Who asks for the package, up to the manifest, each with what it asks.
fn chain(lock: &Lock, target: &Target, package: &PackageName, source: &Source<'_>) -> Vec<(usize, String)> {
    let mut sentences = Vec::new();
    let mut seen = BTreeSet::new();
    let mut open = vec![(package.clone(), 1)];
    while let Some((name, depth)) = open.pop() {
        let Some(locked) = target.packages.get(&name).filter(|_| seen.insert(name.clone())) else { continue };
        for by in &locked.needed_by {
            if by == Package::MANIFEST {
                sentences.push((depth, format!("the manifest asks for {name}")));
                continue;
            }
            let Ok(parent) = by.parse::<PackageName>() else { continue };
            let asks = asked(lock, target, &parent, &name, source).unwrap_or_default();
            let version = target.packages.get(&parent).map(|p| p.version.to_string()).unwrap_or_default();
            sentences.push((depth, format!("{parent} {version} requires {name}{asks}")));
            open.push((parent, depth + 1));
        }
    }
    sentences
}

/// The specifier with which `parent` asks for `name`.
fn asked(
    lock: &Lock,
    target: &Target,
    parent: &PackageName,
    name: &PackageName,
    source: &Source<'_>,
) -> Option<String> {
    let package = target.packages.get(parent)?;
    let index = lock.index_of(package)?;
    let release = source.release(index, parent, &package.version).ok()??;
    let (file, _) = lock.wheel(package)?;
    let wheel = release.wheels.iter().find(|wheel| *wheel.name.file == *file)?;
    let metadata = source.metadata(wheel).ok()?;
    let requirement = metadata.requires.iter().find(|requirement| requirement.package == *name)?;
    let text = requirement.specifiers.to_string();
    Some(if text.is_empty() { " (any version)".into() } else { format!(" {text}") })
}

/// Why this torch build and none that would be preferred.
fn build(
    target: &Target,
    manifest: Option<&Manifest>,
    matrix: &Matrix,
    source: &Source<'_>,
    globals: &Globals,
) -> Result<Option<resolve::Why>, Failure> {
    let request = manifest.map(Request::all).unwrap_or_default().into_iter().find(|r| r.target.name == target.name);
    // Without the manifest, the machines that the lock names; what was asked of torch is not known then.
    let request = request.unwrap_or_else(|| of_machines(target));
    let keep = Keep::default();
    let context = Context {
        matrix,
        catalog: source,
        default_index: source.default_index(),
        pending: false,
        offline: globals.offline,
        keep: &keep,
    };
    let label = format!("{}+{}", target.torch, target.variant);
    why(&request, &context, &label, target.python)
}

fn of_machines(target: &Target) -> Request {
    let machines = manifest::Target {
        name: target.name.clone(),
        platform: target.platform,
        glibc: None,
        gpus: target.gpus.iter().map(|gpu| gpu.name.clone()).collect(),
        driver: target.driver.given.as_ref().and_then(|given| given.parse().ok()),
        forward_compat: target.driver.tier == Some(Tier::Forward),
    };
    Request { target: machines, stack: Stack::default(), packages: Vec::new(), indexes: Vec::new() }
}
