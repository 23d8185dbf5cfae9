//! What a solution should be read with: better builds that could not be taken, JIT, holes, what is newer than the matrix.

use super::Machine;
use super::candidate::Candidate;
use super::package::Packages;
use super::rank::is_hole;
use super::rule::{Rule, Verdict, tier};
use super::solution::Solution;
use crate::diag::{Diagnostic, Evidence, Failure};
use crate::matrix::Tier;
use crate::version::CodeKind;

/// Notes and warnings on a solution.
pub fn notes(
    solution: &Solution,
    packages: &Packages<'_>,
    rules: &[Rule],
    order: &[usize],
    machine: &Machine,
) -> Result<Vec<Diagnostic>, Failure> {
    let mut notes = Vec::new();
    let matrix = packages.context.matrix;
    let is_chosen = |c: &Candidate| c.public() == solution.stack.torch && c.variant() == solution.stack.variant;
    let Some(chosen) = packages.candidates.iter().find(|c| is_chosen(c)) else { return Ok(notes) };
    let allowed = |i: usize| rules.iter().all(|rule| rule.verdicts[i] != Verdict::No);
    let acceptable: Vec<&Candidate> = order.iter().filter(|&&i| allowed(i)).map(|&i| &packages.candidates[i]).collect();
    let source = |c: &Candidate| c.build.as_ref().map_or_else(String::new, |build| build.row().source.clone());

    let better = acceptable.iter().take_while(|c| !is_chosen(c)).find(|c| c.build.is_some() && !is_hole(c));
    if let Some(better) = better.filter(|_| chosen.build.is_some()) {
        let at = |c: &Candidate| (c.public(), c.index.to_string());
        let locked = packages.context.keep.versions.get(&packages.torch);
        let kept = solution.packages.iter().any(|one| one.package == packages.torch && Some(&one.version) == locked);
        let unseen = packages.chosen(&packages.torch, &better.version)?.is_none();
        let message = if unseen {
            format!(
                "the matrix would prefer torch {}, of which no wheel is known here (index {})",
                better.label(),
                at(better).1
            )
        } else if kept {
            format!("torch {} would be preferred; the lock holds {}, which is kept", better.label(), chosen.label())
        } else {
            format!("torch {} would be preferred, but not together with the other packages", better.label())
        };
        let note = Diagnostic::note("better-build", message, Evidence::fact(better.label(), source(better)));
        notes.push(if unseen {
            let online = "resolve online to take it from its index";
            note.fix(if packages.context.pending {
                online.to_owned()
            } else {
                format!("{online}, or `--allow-pending` to lock it without hash")
            })
        } else if kept {
            note.fix("`--upgrade-package torch` takes it")
        } else {
            note
        });
    }
    if solution.driver.tier == Some(Tier::MinorVersion) {
        let driver = solution.driver.given.clone().unwrap_or_default();
        let cuda = solution.stack.cuda.map_or_else(String::new, |cuda| cuda.to_string());
        let native = solution.driver.native.as_ref().map_or_else(String::new, ToString::to_string);
        let mut newest_native = None;
        // Who controls the driver can have any of them natively.
        let controlled = machine.driver.as_ref().is_some_and(|driver| driver.controlled);
        for candidate in acceptable.iter().filter(|_| !controlled) {
            if candidate.build.is_some()
                && !is_hole(candidate)
                && tier(candidate, machine, matrix)? == Some(Tier::Native)
            {
                newest_native = Some(candidate.label());
                break;
            }
        }
        let other = match newest_native {
            Some(label) => format!("; the newest build with native support is torch {label}"),
            None => String::new(),
        };
        let floor = solution.driver.floor.as_ref().map_or_else(String::new, ToString::to_string);
        let subject = if controlled {
            format!(
                "this stack needs driver {floor} or later of what {driver} allows; before {native} it runs CUDA {cuda}"
            )
        } else {
            format!("driver {driver} runs CUDA {cuda} (native from {native} on)")
        };
        let message = format!(
            "{subject} by minor-version compatibility: code that needs the driver to compile newer PTX does not run{other}"
        );
        let evidence =
            Evidence::fact("minor-version compatibility", "NVIDIA CUDA Compatibility, \"Minor Version Compatibility\"");
        notes.push(Diagnostic::note("minor-version-compatibility", message, evidence));
    }
    if solution.driver.tier == Some(Tier::Forward) {
        let cuda = solution.stack.cuda.map_or_else(String::new, |cuda| format!("-{}-{}", cuda.major, cuda.minor));
        let message = format!("the package cuda-compat{cuda} has to be installed on the machines or in the image");
        let evidence = Evidence::fact("forward compatibility", "NVIDIA CUDA Compatibility, \"Forward Compatibility\"");
        notes.push(Diagnostic::warning("forward-compatibility", message, evidence));
    }
    for gpu in &solution.gpus {
        if let Some(code) = gpu.code.filter(|code| code.kind == CodeKind::Ptx) {
            let message = format!(
                "{} ({}) is served by {code} only: the driver compiles it at first use, and libraries without PTX may not run",
                gpu.name, gpu.sm
            );
            notes.push(Diagnostic::warning("jit-only", message, Evidence::fact(chosen.label(), source(chosen))));
        }
    }
    if is_hole(chosen) {
        let row = chosen.build.as_ref().map(|build| build.row());
        let what = match row {
            Some(row) if row.code.is_none() => "which GPUs its code serves",
            _ => "which Pythons it has wheels for",
        };
        let message =
            format!("nobody has read {what} for torch {}; it was chosen because nothing else fits", chosen.label());
        notes.push(Diagnostic::warning("build-unread", message, Evidence::fact(chosen.label(), source(chosen))));
    }
    let pending = solution.packages.iter().any(|c| c.package == packages.torch && c.wheel.is_none());
    if pending && chosen.build.as_ref().is_some_and(|build| build.row().requires.is_none()) {
        let message = format!(
            "which CUDA packages torch {} pins is not known here, so the lock lacks them until an online resolve",
            chosen.label()
        );
        notes.push(Diagnostic::warning("pins-unknown", message, Evidence::fact(chosen.label(), source(chosen))));
    }
    if chosen.build.is_none() {
        let message = format!(
            "torch {} is newer than this matrix or unknown to it: GPUs and driver are not checked, the rest is what the index says",
            chosen.version
        );
        let evidence = Evidence::observed(format!("index {}", chosen.index), format!("torch {}", chosen.version));
        notes.push(Diagnostic::warning("torch-unknown", message, evidence).fix("`gpulock matrix update` learns it"));
    } else if let Some(newer) =
        packages.candidates.iter().rev().find(|c| c.build.is_none() && c.version > chosen.version)
        && acceptable.iter().any(|c| c.version == newer.version)
    {
        let message = format!("torch {} exists, but this matrix does not know it", newer.version);
        let evidence = Evidence::observed(format!("index {}", newer.index), format!("torch {}", newer.version));
        notes.push(Diagnostic::note("torch-unknown", message, evidence).fix("`gpulock matrix update` learns it"));
    }
    for chosen in &solution.packages {
        if let Some((wheel, withdrawn)) = chosen.wheel.as_ref().and_then(|wheel| Some((wheel, wheel.withdrawn()?))) {
            let message = format!("{} {} was {withdrawn}", chosen.package, chosen.version);
            notes.push(Diagnostic::warning(
                "yanked",
                message,
                Evidence::observed(format!("index {}", chosen.index), wheel.name.to_string()),
            ));
        }
    }
    if !solution.inferred.is_empty() {
        let message = format!("this rests on inferred facts: {}", solution.inferred.join("; "));
        notes.push(Diagnostic::note("inferred", message, Evidence::fact(chosen.label(), source(chosen))));
    }
    Ok(notes)
}
