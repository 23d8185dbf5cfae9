//! `gpulock dockerfile`: the lock becomes a Dockerfile.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;

use super::input::{self, Place};
use super::{Answer, Globals, output};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::file;
use crate::lock::{Lock, Target, choose_image};
use crate::matrix::Matrix;
use crate::render::{self, dockerfile};

/// Flags of `gpulock dockerfile`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(flatten)]
    place: Place,
    /// The target, where the lock has several
    #[arg(long, env = "GPULOCK_TARGET")]
    target: Option<String>,
    /// Template to use instead of the embedded one
    #[arg(long, value_name = "FILE", env = "GPULOCK_TEMPLATE")]
    template: Option<PathBuf>,
    /// Print the embedded template, for one of your own
    #[arg(long, conflicts_with_all = ["template", "check", "target", "require_digest"], env = "GPULOCK_PRINT_TEMPLATE")]
    print_template: bool,
    /// Write nothing; exit 1 if the file of `-o` [default: Dockerfile] is not the one that would be written
    #[arg(long, env = "GPULOCK_CHECK")]
    check: bool,
    /// Fail when the digest of an image is not in the lock
    #[arg(long, env = "GPULOCK_REQUIRE_DIGEST")]
    require_digest: bool,
}

impl Args {
    /// Whether nothing is written.
    pub fn is_check(&self) -> bool {
        self.check
    }
}

/// Runs it.
///
/// # Errors
/// No lock, a damaged or an edited one, an unknown target, artefacts that are pending, no image, a template that is wrong.
pub fn run(args: &Args, globals: &Globals) -> Result<Answer, Failure> {
    if args.print_template {
        output::write(globals, dockerfile::TEMPLATE)?;
        return Ok(Answer::Yes);
    }
    let path = input::lock_path(&args.place);
    let lock = input::read_whole_lock(&path)?;
    let mut target = render::choose(&lock, args.target.as_deref())?.clone();
    if target.image.is_none() {
        usual_image(&mut target, globals)?;
    }
    let own = args.template.as_ref().map(|file| Ok((file.display().to_string(), file::text(file)?)));
    let own: Option<(String, String)> = own.transpose()?;
    let template =
        own.as_ref().map_or_else(Default::default, |(name, text)| dockerfile::Template { name: name.as_str(), text });
    let text = render(&lock, &target, &path, template)?;
    digests(&target, args, globals)?;
    if args.check {
        let others = || others(&lock, &target, &path, template, globals);
        return check(&text, &target.name, others, args, globals);
    }
    output::made(globals, &text)?;
    Ok(Answer::Yes)
}

/// A target with an image: the one that a Dockerfile is made of where the lock names none, without a word.
///
/// # Errors
/// No image is known for it.
pub fn with_image(target: &Target, matrix: &Matrix) -> Result<Target, Failure> {
    let mut target = target.clone();
    if target.image.is_none() {
        target.image = Some(choose_image(&target, &BTreeMap::new(), matrix)?.0);
    }
    Ok(target)
}

/// An image for a lock that names none: what `[image]` without any key would give.
///
/// # Errors
/// No image is known for it.
pub fn usual_image(target: &mut Target, globals: &Globals) -> Result<(), Failure> {
    let (image, warnings) = choose_image(target, &BTreeMap::new(), &globals.matrix()?)?;
    globals.tell(&warnings);
    if let Some(base) = &image.base {
        let message = format!("the lock names no image for target {}: {} is taken", target.name, base.name);
        let seen = Evidence::observed("gpulock.lock", format!("target {} has no `image`", target.name));
        let note = Diagnostic::note("image-not-locked", message, seen);
        globals.tell([
            &note.fix("to have it in the lock, add [image] with `flavor = \"slim\"` to gpulock.toml and resolve")
        ]);
    }
    target.image = Some(image);
    Ok(())
}

fn render(lock: &Lock, target: &Target, path: &Path, template: dockerfile::Template<'_>) -> Result<String, Failure> {
    dockerfile::render(lock, target, &input::lock_name(path), template)
}

/// Says which images have no digest, or fails for them.
fn digests(target: &Target, args: &Args, globals: &Globals) -> Result<(), Failure> {
    let images = target.image.iter().flat_map(|image| image.references());
    let floating: Vec<&str> = images.filter(|image| image.digest.is_none()).map(|image| &*image.name).collect();
    if floating.is_empty() {
        return Ok(());
    }
    let message = format!("the lock has no digest of {}: what the tag names may change", floating.join(", "));
    let seen = Evidence::observed("gpulock.lock", format!("`image` of target {}", target.name));
    let problem = if args.require_digest { Diagnostic::error } else { Diagnostic::warning };
    let problem = problem("image-without-digest", message, seen);
    match args.require_digest {
        true => Err(Failure::no(
            problem.fix("run `gpulock resolve` where the registry can be reached: the lock has the digests then"),
        )),
        false => {
            globals.tell([&problem]);
            Ok(())
        }
    }
}

/// The Dockerfiles of the other targets, as far as they can be made: the name of each, and its text.
fn others(
    lock: &Lock,
    target: &Target,
    path: &Path,
    template: dockerfile::Template<'_>,
    globals: &Globals,
) -> Result<Vec<(String, String)>, Failure> {
    let matrix = globals.matrix()?;
    let others = lock.targets.iter().filter(|other| other.name != target.name);
    let made = others.filter_map(|other| {
        let other = with_image(other, &matrix).ok()?;
        Some((other.name.clone(), render(lock, &other, path, template).ok()?))
    });
    Ok(made.collect())
}

fn check(
    text: &str,
    target: &str,
    others: impl FnOnce() -> Result<Vec<(String, String)>, Failure>,
    args: &Args,
    globals: &Globals,
) -> Result<Answer, Failure> {
    let path = globals.output.clone().unwrap_or_else(|| PathBuf::from("Dockerfile"));
    let name = path.display().to_string();
    let command = command(args, &path);
    let Some(old) = file::text_if_there(&path)? else {
        let problem = Diagnostic::error(
            "file-missing",
            format!("there is no {name}"),
            Evidence::observed(&*name, "no such file"),
        );
        return Err(Failure::no(problem.fix(format!("write it: `{command}`"))));
    };
    match dockerfile::drift(&name, &old, text, &command) {
        None => {}
        Some(ends) if ends.severity < Severity::Error => globals.tell([&ends]),
        Some(drift) => {
            let is_old = |text: &String| *text == old.replace("\r\n", "\n");
            let other = others()?.into_iter().find(|(_, text)| is_old(text));
            let drift = other.map_or(drift, |(other, _)| dockerfile::of_another(&name, &other, target, &command));
            return Err(Failure::no(drift));
        }
    }
    output::stdout(&format!("{name} is up to date\n"))?;
    Ok(Answer::Yes)
}

/// The command that writes what these flags check.
fn command(args: &Args, path: &Path) -> String {
    let target = args.target.as_ref().map(|target| format!(" --target {}", render::word(target)));
    let template =
        args.template.as_ref().map(|file| format!(" --template {}", render::word(&file.display().to_string())));
    let digest = args.require_digest.then(|| " --require-digest".to_owned());
    let flags: String = [target, template, digest].into_iter().flatten().collect();
    format!("gpulock dockerfile{flags}{} -o {}", args.place.flags(), render::word(&path.display().to_string()))
}
