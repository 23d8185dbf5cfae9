//! `gpulock resolve`: manifest and matrix become the lock, or an explanation.

use std::collections::BTreeSet;
use std::mem::ManuallyDrop;
use std::path::Path;

use clap::Args as ClapArgs;

use super::image;
use super::input::{self, Flags, Input, Place};
use super::source::Source;
use super::{Answer, Form, Globals, here, output, summary, write};
use crate::diag::{Class, Diagnostic, Evidence, Failure};
use crate::file;
use crate::lock::{self, Lock, Origin, Seal, inputs_hash};
use crate::manifest::{Manifest, parse_package_name};
use crate::matrix::Matrix;
use crate::python::{Catalog, PackageName};
use crate::report::json;
use crate::resolve::{Chosen, Conflict, Context, Keep, Outcome, Request, Solution, resolve_all};

/// Flags of `gpulock resolve`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(flatten)]
    place: Place,
    /// Write nothing; exit 1 if the lock would change
    #[arg(long, conflicts_with_all = ["locked", "dry_run"], env = "GPULOCK_CHECK")]
    check: bool,
    /// Resolve nothing; exit 1 if the lock was not made for this manifest
    #[arg(long, conflicts_with = "dry_run", env = "GPULOCK_LOCKED")]
    locked: bool,
    /// Show the result, write nothing
    #[arg(long, env = "GPULOCK_DRY_RUN")]
    dry_run: bool,
    /// Take the best versions, whatever the lock holds
    #[arg(long, env = "GPULOCK_UPGRADE")]
    upgrade: bool,
    /// Take the best version of this package, keep the others; may be repeated
    #[arg(long, value_name = "PACKAGE", value_parser = parse_package_name, env = "GPULOCK_UPGRADE_PACKAGE", value_delimiter = ',')]
    upgrade_package: Vec<PackageName>,
    /// Lock the best that the matrix knows; artefacts without known hash are marked pending
    #[arg(long, env = "GPULOCK_ALLOW_PENDING")]
    allow_pending: bool,
    /// Resolve this target only, keep the others as they are in the lock; may be repeated; `auto` for the one that this
    /// machine is
    #[arg(long = "target", value_name = "TARGET", env = "GPULOCK_TARGET", value_delimiter = ',')]
    targets: Vec<String>,
    /// Ask this address instead of a registry of images: docker.io=https://mirror.example; may be repeated
    #[arg(long = "registry-mirror", value_name = "REGISTRY=URL", env = "GPULOCK_REGISTRY_MIRROR", value_delimiter = ' ', value_parser = image::mirror)]
    registry_mirrors: Vec<(String, String)>,
    // Last: its heading holds for what follows.
    #[command(flatten)]
    flags: Flags,
}

/// Runs it.
///
/// # Errors
/// Input that cannot be read or is wrong, catalogs that fail, a lock that cannot be written.
pub fn run(args: &Args, globals: &Globals) -> Result<Answer, Failure> {
    let (Input { manifest, lock: path, one_off }, targets) = asked_of(args, globals)?;
    not_the_lock(globals, &path)?;
    let old = read_lock(&path, args)?;
    if args.locked {
        return locked(old.as_ref(), &manifest, &path, globals);
    }
    // The process ends with this command: taking apart what was read would be a tenth of its time.
    let matrix = ManuallyDrop::new(globals.matrix()?);
    let source = ManuallyDrop::new(Source::new(&matrix, &manifest, globals, args.allow_pending)?);
    let manifest_targets: Vec<&str> = manifest.targets.iter().map(|target| target.name.as_str()).collect();
    if let Some(unknown) = targets.iter().find(|name| !manifest_targets.contains(&name.as_str())) {
        return Err(unknown_target(unknown, &manifest_targets));
    }
    let chosen = |name: &str| targets.is_empty() || targets.iter().any(|target| target == name);
    let requests: Vec<Request> =
        Request::all(&manifest).into_iter().filter(|request| chosen(&request.target.name)).collect();
    known_upgrades(old.as_ref(), &manifest, args)?;
    let edited =
        old.as_ref().filter(|old| old.seal == Seal::Broken).and_then(|old| input::seal(old, &args_path(&path)));
    if let Some(edited) = edited.filter(|_| !args.targets.is_empty()) {
        let fix = "leave out --target: what the lock has for other targets may be edited too";
        return Err(Failure::no(edited.fix(fix)));
    }
    let kept = old.as_ref().filter(|_| !one_off);
    let keeps: Vec<Keep> = requests.iter().map(|request| keep(kept, &request.target.name, args)).collect();
    let default_index = source.default_index();
    let contexts: Vec<Context<'_>> = keeps
        .iter()
        .map(|keep| Context {
            matrix: &matrix,
            catalog: &*source,
            default_index,
            pending: args.allow_pending,
            offline: globals.offline,
            keep,
        })
        .collect();
    let mut solutions: Vec<Solution> = Vec::new();
    let mut conflicts: Vec<Conflict> = Vec::new();
    for outcome in resolve_all(&requests, &contexts)? {
        match outcome {
            Outcome::Solved(solution) => solutions.push(*solution),
            Outcome::Conflict(conflict) => conflicts.push(*conflict),
        }
    }
    if !conflicts.is_empty() {
        has_torch(&requests, &source, &matrix, globals)?;
        return refuse(&conflicts, globals);
    }
    let mut lock = make(&solutions, &manifest, &matrix, &source)?;
    // Digests that somebody may have written into the lock are asked for anew.
    let trusted = old.as_ref().filter(|old| old.seal != Seal::Broken);
    let about_images = image::fill(&mut lock, trusted, &manifest, &matrix, &asked(args), globals)?;
    for solution in &mut solutions {
        // Among several targets, a note says which it is about.
        let of_several = requests.len() > 1;
        for note in solution.notes.iter_mut().filter(|_| of_several) {
            note.message = format!("target {}: {}", solution.target, note.message);
        }
    }
    let notes = solutions.iter().flat_map(|solution| &solution.notes);
    globals.tell(notes.chain(&source.warnings()).chain(&about_images));
    if let Some(old) = old.as_ref().filter(|_| !targets.is_empty()) {
        lock.adopt(old, &manifest_targets);
    }
    finish(&lock, old.as_ref(), &path, args, globals)
}

/// What is to be resolved, and which targets of it; all where none is named.
fn asked_of(args: &Args, globals: &Globals) -> Result<(Input, Vec<String>), Failure> {
    if !args.targets.iter().any(|name| name == here::AUTO) {
        return Ok((input::read(&args.place, &args.flags)?, args.targets.clone()));
    }
    let matrix = globals.matrix()?;
    let host = here::host(&matrix)?;
    let (input, targets) = here::input(&args.place, &args.flags, &host, &matrix)?;
    globals.tell_briefly(&here::notes(&host));
    if !targets.is_empty() {
        let seen = Evidence::observed("manifest", "has its GPUs, its platform and its driver");
        let note = Diagnostic::note("from-host", format!("this machine is target {}", targets.join(", ")), seen);
        globals.tell_briefly([&note]);
    }
    Ok((input, targets))
}

/// The lock that is there; one that `--upgrade` is to replace may be broken.
fn read_lock(path: &Path, args: &Args) -> Result<Option<Lock>, Failure> {
    match input::lock_if_there(path) {
        // Asked to forget what it holds; a newer format is still not ours to write over.
        Err(failure) if args.upgrade && !args.check && !args.locked => {
            let spare = |code: &str| ["lock-too-new", "cannot-read"].contains(&code);
            if failure.diagnostics.iter().any(|problem| spare(problem.code)) {
                return Err(failure);
            }
            ours(path).map(|()| None)
        }
        lock => lock,
    }
}

/// Refuses to write over a file that never was a lock: a mistyped `--lock` must not cost a manifest.
fn ours(path: &Path) -> Result<(), Failure> {
    let bytes = file::read(path, file::LARGEST).map_err(|error| file::unread(path, &error))?;
    let text = String::from_utf8_lossy(&bytes);
    if text.trim().is_empty() || text.contains(lock::MARK) {
        return Ok(());
    }
    let evidence = Evidence::observed(path.display().to_string(), format!("no line `{} ...`", lock::MARK));
    let message = format!("{} does not look like a lock, so it is not written over", path.display());
    Err(Failure::unanswerable(
        Diagnostic::error("lock-foreign", message, evidence).fix("remove it, or name another file: --lock FILE"),
    ))
}

/// Without a stack, looks whether the index that torch comes from has any: its address may be wrong.
fn has_torch(requests: &[Request], source: &Source<'_>, matrix: &Matrix, globals: &Globals) -> Result<(), Failure> {
    let Ok(torch) = "torch".parse::<PackageName>() else { return Ok(()) };
    let of_request = |request: &Request| request.pinned_index(&torch).unwrap_or(source.default_index()).to_owned();
    let mut indexes: BTreeSet<String> = BTreeSet::new();
    for request in requests {
        // What the matrix alone answered says nothing about an index.
        if !request.variant_is_unknown(matrix)? {
            indexes.insert(of_request(request));
        }
    }
    for index in indexes.iter().filter(|_| !globals.offline) {
        if source.versions(index, &torch)?.is_empty() {
            let url = source.url(index).unwrap_or_default();
            let evidence = Evidence::observed(format!("index `{index}`"), "no page of torch, or none with wheels");
            let message = format!("index `{index}` has no torch at all");
            let fix = format!("check its address ({url}, or what --mirror says), or use --offline");
            return Err(Failure::unanswerable(Diagnostic::error("index-empty", message, evidence).fix(fix)));
        }
    }
    Ok(())
}

/// Refuses to print over the lock.
fn not_the_lock(globals: &Globals, path: &Path) -> Result<(), Failure> {
    match &globals.output {
        Some(output) if write::is_same(output, path) => {
            let evidence = Evidence::observed("command line", format!("--output {}", output.display()));
            let message = format!("{} is the lock: what is printed cannot go there too", path.display());
            Err(Failure::unanswerable(
                Diagnostic::error("usage", message, evidence).fix("name another file with -o, or leave it out"),
            ))
        }
        _ => Ok(()),
    }
}

/// Refuses packages to upgrade that neither the lock nor the manifest knows: the name is mistyped.
fn known_upgrades(old: Option<&Lock>, manifest: &Manifest, args: &Args) -> Result<(), Failure> {
    let Some(old) = old else { return Ok(()) };
    let mut known: BTreeSet<&str> =
        old.targets.iter().flat_map(|target| target.packages.keys()).map(PackageName::as_str).collect();
    known.extend(manifest.packages.iter().map(|ask| ask.package.as_str()));
    known.extend(["torchvision", "torchaudio", "triton"]);
    let Some(unknown) = args.upgrade_package.iter().find(|name| !known.contains(name.as_str())) else { return Ok(()) };
    let evidence = Evidence::observed("the lock and the manifest", format!("no package {unknown} in them"));
    let message = format!("--upgrade-package {unknown}: there is no such package to upgrade");
    let error = Diagnostic::error("package-unknown", message, evidence);
    Err(Failure::unanswerable(match crate::diag::did_you_mean(unknown.as_str(), known) {
        Some(near) => error.fix(format!("did you mean `{near}`?")),
        None => error.fix("`gpulock export constraints` lists the packages of the lock"),
    }))
}

fn keep(old: Option<&Lock>, target: &str, args: &Args) -> Keep {
    let Some(target) = old.filter(|_| !args.upgrade).and_then(|lock| lock.target(target)) else {
        return Keep::default();
    };
    let upgraded: BTreeSet<&PackageName> = args.upgrade_package.iter().collect();
    let kept = target.packages.iter().filter(|(name, _)| !upgraded.contains(name));
    Keep {
        versions: kept.map(|(name, package)| (name.clone(), package.version.clone())).collect(),
        python: Some(target.python),
    }
}

fn make(solutions: &[Solution], manifest: &Manifest, matrix: &Matrix, source: &Source<'_>) -> Result<Lock, Failure> {
    let gpu = &matrix.package()?.gpu;
    let has_libraries = |chosen: &&Chosen| crate::matrix::matches_any(gpu, &chosen.package);
    let chosen = solutions.iter().flat_map(|solution| &solution.packages);
    source.prefetch_libraries(chosen.filter(has_libraries).filter_map(|chosen| chosen.wheel.as_ref()))?;
    Lock::of(
        solutions,
        &Origin {
            inputs: inputs_hash(manifest),
            matrix: matrix.files().digest(),
            url: &|name| source.url(name),
            has_libraries: &|chosen| has_libraries(&chosen),
            catalog: source,
        },
    )
}

/// What the flags say of registries: a check asks none, since it is to give the same answer every time.
fn asked(args: &Args) -> image::Asked<'_> {
    image::Asked { registries: !args.check, anew: args.upgrade, mirrors: &args.registry_mirrors }
}

/// Writes, checks or shows the lock.
fn finish(lock: &Lock, old: Option<&Lock>, path: &Path, args: &Args, globals: &Globals) -> Result<Answer, Failure> {
    let mut changes = summary::changes(old, lock);
    match old.map(|old| old.seal) {
        Some(Seal::Broken) if changes.is_empty() => changes.push("the hash of what it holds".into()),
        Some(Seal::Absent) if changes.is_empty() => changes.push("a hash of what it holds, which it lacks".into()),
        _ => {}
    }
    let up_to_date = old.is_some_and(|old| old.same_content(lock) && matches!(old.seal, Seal::Whole | Seal::Unknown));
    if args.check {
        if old.is_none() {
            return Err(missing(path));
        }
        if up_to_date {
            report(lock, globals, &format!("{} is up to date\n", path.display()))?;
            return Ok(Answer::Yes);
        }
        let evidence = Evidence::observed(path.display().to_string(), some(&changes));
        let error = Diagnostic::error("lock-stale", format!("{} would change", path.display()), evidence);
        return Err(Failure::no(error.fix("run `gpulock resolve` and commit the lock")));
    }
    let mut text = summary::lock(lock);
    if args.dry_run {
        text.push_str(&format!("\nnothing written ({})\n", args_path(path)));
    } else if up_to_date {
        // The same stack from a newer matrix is no change to commit.
        text.push_str(&format!("\n{} is up to date\n", args_path(path)));
    } else {
        write::atomically(path, &lock.to_file())?;
        text.push_str(&format!("\nwrote {}\n", args_path(path)));
    }
    if old.is_some() {
        for change in &changes {
            text.push_str(&format!("  {change}\n"));
        }
    }
    report(lock, globals, &text)?;
    Ok(Answer::Yes)
}

/// The first of many changes, a line each, and how many more there are.
fn some(changes: &[String]) -> String {
    const MOST: usize = 10;
    let mut lines: Vec<String> = changes.iter().take(MOST).cloned().collect();
    if changes.len() > MOST {
        lines.push(format!("and {} more, all shown by --dry-run", changes.len() - MOST));
    }
    lines.join("\n")
}

fn args_path(path: &Path) -> String {
    path.display().to_string()
}

fn report(lock: &Lock, globals: &Globals, human: &str) -> Result<(), Failure> {
    match globals.form() {
        Form::Human => output::human(globals, human),
        Form::Json => output::write(globals, &json::lock(lock)),
    }
}

fn refuse(conflicts: &[Conflict], globals: &Globals) -> Result<Answer, Failure> {
    let human: Vec<String> = conflicts.iter().map(|conflict| summary::conflict(conflict, globals)).collect();
    if globals.form() == Form::Json {
        output::write(globals, &json::conflicts(conflicts))?;
    }
    globals.tell(conflicts.iter().flat_map(|conflict| &conflict.warnings));
    output::stderr(&human.join("\n"));
    Ok(Answer::No)
}

/// `--locked`: the lock as it is, if it was made for this manifest.
fn locked(old: Option<&Lock>, manifest: &Manifest, path: &Path, globals: &Globals) -> Result<Answer, Failure> {
    let Some(old) = old else { return Err(missing(path)) };
    let sealed = input::seal(old, &args_path(path));
    let (edited, unsealed) = sealed.into_iter().partition::<Vec<_>, _>(|_| old.seal == Seal::Broken);
    let stale = (!old.satisfies(manifest)).then(|| input::stale(path, old, manifest));
    let diagnostics: Vec<Diagnostic> = edited.into_iter().chain(stale).collect();
    if !diagnostics.is_empty() {
        return Err(Failure { class: Class::No, diagnostics });
    }
    globals.tell(&unsealed);
    report(old, globals, &summary::lock(old))?;
    Ok(Answer::Yes)
}

fn missing(path: &Path) -> Failure {
    Failure::no(input::missing(path))
}

fn unknown_target(name: &str, known: &[&str]) -> Failure {
    let evidence = Evidence::observed("manifest", format!("targets: {}", known.join(", ")));
    let error = Diagnostic::error("target-unknown", format!("the manifest has no target `{name}`"), evidence);
    let near = crate::diag::did_you_mean(name, known.iter().copied());
    Failure::unanswerable(error.fix(match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("name one of: {}", known.join(", ")),
    }))
}
