//! `gpulock check`: one command for CI that fails when manifest, lock, generated files or environment have drifted.

mod files;
mod lock;
mod others;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::Args as ClapArgs;

use super::environment::{self, Judged, Question};
use super::fail_on::FailOn;
use super::input::{self, Place};
use super::subject::{ImageArgs, Reader, platform};
use super::{Answer, Globals, dockerfile};
use crate::check::{self, Findings};
use crate::diag::{Diagnostic, Evidence, Failure, SourceText};
use crate::file;
use crate::lock::{Lock, Seal};
use crate::manifest::{Check, Manifest};
use crate::matrix::Matrix;
use crate::render::{self, generated, pinned};
use crate::report::verify::Report;
use files::{Files, ProjectFile};

/// Flags of `gpulock check`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Dockerfiles to judge besides those that are named so
    #[arg(value_name = "DOCKERFILE")]
    dockerfiles: Vec<PathBuf>,
    #[command(flatten)]
    place: Place,
    /// Hold this environment against the lock too: a virtual environment, site-packages, root filesystem, image:FILE, oci:DIR, sif:FILE, registry:NAME
    #[arg(long = "env", value_name = "PATH", env = "GPULOCK_ENV")]
    environment: Option<PathBuf>,
    /// For --env: the target, where the lock has several
    #[arg(long, env = "GPULOCK_TARGET")]
    target: Option<String>,
    /// For --env: read all libraries and compare their SHA-256 with the lock's
    #[arg(long, env = "GPULOCK_INTEGRITY")]
    integrity: bool,
    /// Template that files here were written by, besides the embedded ones and *.j2 files here; may be repeated
    #[arg(long = "template", value_name = "FILE", env = "GPULOCK_TEMPLATE", value_delimiter = ':')]
    templates: Vec<PathBuf>,
    /// Pass over this file or folder; may be repeated
    #[arg(long = "exclude", value_name = "PATH", env = "GPULOCK_EXCLUDE", value_delimiter = ':')]
    excluded: Vec<PathBuf>,
    /// Days after which a compatibility matrix is called old
    #[arg(long, value_name = "DAYS", default_value_t = 90, env = "GPULOCK_MATRIX_AGE")]
    matrix_age: u64,
    /// The least severity that fails
    #[arg(long, value_enum, default_value = "error", env = "GPULOCK_FAIL_ON")]
    fail_on: FailOn,
    #[command(flatten)]
    images: ImageArgs,
}

/// The code of a matrix that was made long ago.
const OLD: &str = "matrix-old";

/// Runs it.
///
/// # Errors
/// A manifest or lock that cannot be read, an environment that cannot be read, a Dockerfile that is named and not there.
pub fn run(args: &Args, globals: &Globals) -> Result<Answer, Failure> {
    let matrix = globals.matrix()?;
    let project = Project::read(args)?;
    let mut all = project.against_manifest();
    all.findings.extend(project.against_facts(&matrix)?);
    let mut files = files::find(&project.folder, &project.lock_path, &args.excluded, &args.dockerfiles)?;
    all.findings.extend(files.unread.iter().cloned());
    all.skipped.extend(closed(&files.closed));
    let names: Vec<String> = files.projects.iter().map(|folder| folder.display().to_string()).collect();
    all.skipped.extend(listed(&names).map(|names| (generated::STALE, format!("projects of their own below: {names}"))));
    project.without_others(&mut files, &mut all);
    project.against_files(&files, args, &matrix, &mut all)?;
    project.dockerfiles(&files, &matrix, &mut all)?;
    // An environment tells more of the manifest's variables than their names alone.
    if let (Some((_, manifest)), None) = (&project.manifest, &args.environment) {
        all.findings.extend(check::dockerfile::variables_of_manifest(manifest, project.lock.as_ref(), &matrix)?);
    }
    all.findings.extend(age(&matrix, args.matrix_age));
    let looked_at = files.looked_at();
    let nothing = project.manifest.is_none() && project.lock.is_none() && looked_at.is_empty();
    let judged = args.environment.as_ref().map(|path| project.environment(path, args, &matrix, globals)).transpose()?;
    let mut checks = project.checks();
    // A level for environments holds for the same finding in a Dockerfile, and may well meet nothing there.
    let found = |code: &str| all.findings.iter().any(|finding| finding.code == code);
    // A matrix that is not old today will be.
    checks.retain(|code, _| !(check::is_of_environments(code) || code == OLD) || found(code));
    all.findings = check::exceptions(all.findings, &checks);
    if let Some(judged) = &judged {
        globals.tell(&judged.warnings);
        all.findings.extend(judged.findings.findings.iter().cloned());
        all.skipped.extend(judged.findings.skipped.iter().cloned());
    }
    all.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));

    let environment = judged.as_ref().zip(args.environment.as_ref()).map(|(judged, path)| judged.report(path));
    let is_empty = nothing || judged.as_ref().is_some_and(|judged| !judged.is_gpu_stack);
    let report = Report {
        run: None,
        kind: "project",
        path: project.name(),
        files: Some(looked_at.len()),
        is_empty,
        stack: environment.as_ref().map_or_else(|| project.stack(), |environment| environment.stack.clone()),
        target: environment.as_ref().and_then(|environment| environment.target.clone()),
        libraries: environment.as_ref().map_or(0, |environment| environment.libraries),
        bytes: environment.as_ref().map_or(0, |environment| environment.bytes),
        findings: &all,
    };
    environment::print(&report, "gpulock check", project.anchors(), args.fail_on, globals)?;
    if all.findings.iter().any(|finding| args.fail_on.fails(finding.severity)) {
        return Ok(Answer::No);
    }
    Ok(if is_empty { Answer::Nothing } else { Answer::Yes })
}

/// A manifest, its lock, and where they are.
struct Project {
    /// Where the manifest is, else the lock.
    folder: PathBuf,
    manifest: Option<(PathBuf, Manifest)>,
    lock_path: PathBuf,
    lock: Option<Lock>,
}

impl Project {
    fn read(args: &Args) -> Result<Self, Failure> {
        let manifest = input::manifest_with_path(&args.place)?;
        let beside = |path: &Path| path.parent().map_or_else(PathBuf::new, Path::to_path_buf);
        let lock_path = match (&args.place.lock, &manifest) {
            (None, Some((path, _))) => beside(path).join(input::LOCK),
            _ => input::lock_path(&args.place),
        };
        let lock = match &args.place.lock {
            Some(path) => Some(input::read_lock(path)?),
            None => input::lock_if_there(&lock_path)?,
        };
        let folder = match (&manifest, &lock) {
            (Some((path, _)), _) => beside(path),
            (None, Some(_)) => beside(&lock_path),
            (None, None) => PathBuf::new(),
        };
        Ok(Self { folder, manifest, lock_path, lock })
    }

    fn name(&self) -> String {
        match &self.manifest {
            Some((path, _)) => path.display().to_string(),
            None if self.lock.is_some() => self.lock_path.display().to_string(),
            None => ".".into(),
        }
    }

    /// Files that stand for a finding without a place of its own.
    fn anchors(&self) -> Vec<String> {
        let lock = self.lock.as_ref().map(|_| &self.lock_path);
        self.manifest.iter().map(|(path, _)| path).chain(lock).map(|path| path.display().to_string()).collect()
    }

    fn checks(&self) -> BTreeMap<String, Check> {
        self.manifest.as_ref().map(|(_, manifest)| manifest.checks.clone()).unwrap_or_default()
    }

    /// What the lock holds, a target each.
    fn stack(&self) -> Vec<String> {
        let targets = self.lock.iter().flat_map(|lock| &lock.targets);
        targets.map(|target| format!("torch {} ({}) for {}", target.torch, target.variant, target.name)).collect()
    }

    /// The lock against the manifest.
    fn against_manifest(&self) -> Findings {
        let mut all = Findings::default();
        match (&self.manifest, &self.lock) {
            (Some(_), None) => all.findings.push(input::missing(&self.lock_path)),
            (Some((_, manifest)), Some(lock)) if !lock.satisfies(manifest) => {
                all.findings.push(input::stale(&self.lock_path, lock, manifest));
            }
            (Some(_), Some(_)) => {}
            (None, Some(_)) => all.findings.push(input::alone(&self.lock_path)),
            (None, None) => all.skipped.push(("lock-stale", "no manifest here".into())),
        }
        all
    }

    /// The lock against what its torch brings and its index gives.
    fn against_facts(&self, matrix: &Matrix) -> Result<Vec<Diagnostic>, Failure> {
        let Some(lock) = &self.lock else { return Ok(Vec::new()) };
        let text = file::text(&self.lock_path)?;
        let manifest = self.manifest.as_ref().map(|(_, manifest)| manifest);
        lock::judge(lock, SourceText::new(&self.lock_path.display().to_string(), &text), manifest, matrix)
    }

    /// Takes out what was written from the locks of other projects: it is held against those, and not by this lock.
    fn without_others(&self, files: &mut Files, all: &mut Findings) {
        let ours = self.lock.as_ref().map(Lock::digest);
        let mark = |file: &ProjectFile| {
            let header = generated::header(&file.text)?;
            header.lock.filter(|mark| ours.as_deref() != Some(mark)).map(str::to_owned)
        };
        if files.generated.iter().all(|file| mark(file).is_none()) {
            return;
        }
        let manifest = self.manifest.as_ref().map(|(path, _)| path.as_path());
        let theirs = others::marks(&files.projects, &files.locks, manifest);
        let is_theirs = |file: &mut ProjectFile| mark(file).is_some_and(|mark| theirs.contains(&mark));
        let names: Vec<String> = files.generated.extract_if(.., is_theirs).map(|file| file.name).collect();
        files.dockerfiles.retain(|file| !names.contains(&file.name));
        all.skipped.extend(listed(&names).map(|names| (generated::STALE, format!("written for other locks: {names}"))));
    }

    /// Generated files against the lock.
    fn against_files(&self, files: &Files, args: &Args, matrix: &Matrix, all: &mut Findings) -> Result<(), Failure> {
        let Some(lock) = &self.lock else {
            if self.manifest.is_none() {
                let judge = |file: &ProjectFile| generated::without_lock(&file.name, &file.text);
                all.findings.extend(files.generated.iter().chain(&files.pinned).map(judge));
            } else if !files.generated.is_empty() || !files.pinned.is_empty() {
                // That the lock is missing is a finding already.
                all.skipped.push((generated::STALE, "no lock here".into()));
            }
            return Ok(());
        };
        // Written anew from such a lock, they would be what nobody resolved.
        if lock.seal == Seal::Broken && !(files.generated.is_empty() && files.pinned.is_empty()) {
            let why = format!("{} was edited: run `gpulock resolve` first", self.lock_path.display());
            all.skipped.push((generated::STALE, why));
            return Ok(());
        }
        let mut templates = files.templates.clone();
        for path in &args.templates {
            templates.push((path.display().to_string(), file::text(path)?));
        }
        if files.generated.is_empty() && files.pinned.is_empty() {
            return Ok(());
        }
        let mut whole = lock.clone();
        for target in &mut whole.targets {
            // Without any image there is no Dockerfile, and nothing to say of one.
            if let Ok(with_image) = dockerfile::with_image(target, matrix) {
                *target = with_image;
            }
        }
        let lock_name = input::lock_name(&self.lock_path);
        let place = args.place.flags();
        let templates = &templates;
        let origin = generated::Origin { lock, with_images: &whole, lock_name: &lock_name, templates, place: &place };
        let written = files.generated.iter();
        all.findings.extend(written.filter_map(|file| generated::judge(&file.name, &file.text, &origin)));
        let pinned = files.pinned.iter();
        all.findings.extend(pinned.filter_map(|file| pinned::judge(&file.name, &file.text, lock, &place)));
        Ok(())
    }

    /// Dockerfiles, whoever wrote them.
    fn dockerfiles(&self, files: &Files, matrix: &Matrix, all: &mut Findings) -> Result<(), Failure> {
        let generated = |name: &str| files.generated.iter().any(|file| file.name == name);
        let variables = self.manifest.as_ref().map(|(_, manifest)| manifest.env.keys().cloned().collect());
        let variables: BTreeSet<String> = variables.unwrap_or_default();
        for file in &files.dockerfiles {
            // What a Dockerfile calls a file in the image is most often called the same beside it.
            let beside = Path::new(&file.name).parent().unwrap_or(Path::new("")).to_owned();
            let read = |path: &str| {
                let name = Path::new(path).file_name()?;
                let inside = path.trim_start_matches('/');
                let places = [beside.join(inside), beside.join(name), self.folder.join(inside), self.folder.join(name)];
                places.iter().find_map(|place| file::text(place).ok())
            };
            let variables = if generated(&file.name) { variables.clone() } else { BTreeSet::new() };
            let context = check::dockerfile::Context { matrix, lock: self.lock.as_ref(), read: &read, variables };
            all.findings.extend(check::dockerfile::judge(SourceText::new(&file.name, &file.text), &context)?);
        }
        Ok(())
    }

    /// An environment against the lock's target.
    fn environment(&self, path: &Path, args: &Args, matrix: &Matrix, globals: &Globals) -> Result<Judged, Failure> {
        let target = match &self.lock {
            Some(lock) => Some(environment::of_lock(render::choose(lock, args.target.as_deref())?)?),
            None => None,
        };
        let mut checks = self.checks();
        checks.retain(|code, _| check::is_of_environments(code));
        environment::judge(Question {
            subject: path,
            lock: self.lock.as_ref(),
            target: target.as_ref(),
            variables: self.manifest.as_ref().map(|(_, manifest)| manifest.env.clone()).unwrap_or_default(),
            integrity: args.integrity,
            matrix,
            checks: &checks,
            reader: Reader { globals, images: &args.images, platform: platform(target.as_ref()) },
        })
    }
}

/// What is said of files that may not be read.
fn closed(names: &[String]) -> Option<(&'static str, String)> {
    let names = listed(names)?;
    Some((generated::STALE, format!("not known whether gpulock wrote what may not be read: {names}")))
}

/// The first of several names, and how many more there are.
fn listed(names: &[String]) -> Option<String> {
    const MOST: usize = 3;
    let shown = names.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(MOST);
    (!names.is_empty()).then(|| if more > 0 { format!("{shown} and {more} more") } else { shown })
}

/// A note on a matrix that was made long ago: what came out since is not in it.
fn age(matrix: &Matrix, most: u64) -> Option<Diagnostic> {
    const DAY: u64 = 24 * 60 * 60;
    let taken = matrix.snapshot_taken()?;
    let days = SystemTime::now().duration_since(taken).ok()?.as_secs() / DAY;
    let on = jiff::Timestamp::try_from(taken).ok()?.strftime("%Y-%m-%d").to_string();
    let message = format!("the compatibility matrix is {days} days old: releases and drivers since {on} are not in it");
    let seen = Evidence::observed("snapshot of the matrix", format!("taken on {on}"));
    let note = Diagnostic::note(OLD, message, seen);
    (days > most).then(|| note.fix("use a newer gpulock, or `gpulock matrix update DIR` and `--matrix DIR`"))
}
