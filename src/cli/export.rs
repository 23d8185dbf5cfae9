//! `gpulock export FORMAT`: the lock becomes a file of another tool.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::input::{self, Place};
use super::shaping::Given;
use super::source::Source;
use super::{Answer, Globals, dockerfile, output, shaping, write};
use crate::diag::{Diagnostic, Evidence, Failure};
use crate::file;
use crate::lock::{Lock, Target};
use crate::manifest::Manifest;
use crate::matrix::Matrix;
use crate::python::Catalog;
use crate::render::{self, Beside, Format, Opt, Options, Template};

/// Flags of `gpulock export`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// What to write
    #[arg(id = "export-format", value_name = "FORMAT", value_parser = formats())]
    format: Format,
    #[command(flatten)]
    place: Place,
    /// The target, where the lock has several
    #[arg(long, env = "GPULOCK_TARGET")]
    target: Option<String>,
    /// For `uv`: the pyproject.toml to edit [default: pyproject.toml beside the lock; `-o` writes elsewhere]
    #[arg(long, value_name = "FILE", env = "GPULOCK_PYPROJECT")]
    pyproject: Option<PathBuf>,
    /// For `pylock`: a folder with wheels whose address is not known
    #[arg(long, value_name = "DIR", env = "GPULOCK_WHEELS")]
    wheels: Option<String>,
    /// Where an image is run: its name in its registry
    #[arg(long, value_name = "NAME", env = "GPULOCK_IMAGE")]
    image: Option<String>,
    /// For jobs: how many GPUs one gets
    #[arg(long, value_name = "COUNT", env = "GPULOCK_GPUS")]
    gpus: Option<NonZeroU32>,
    /// For `slurm`: features that its nodes have, as the site calls them
    #[arg(long, value_name = "FEATURES", env = "GPULOCK_CONSTRAINT")]
    constraint: Option<String>,
    /// For `devcontainer`: the Dockerfile, as seen from the file that is written [default: at the root of the project]
    #[arg(long, value_name = "FILE", env = "GPULOCK_DOCKERFILE", conflicts_with = "image")]
    dockerfile: Option<String>,
    /// For `github` and `gitlab`: the folder of the project in its repository [default: as git has it]
    #[arg(long, value_name = "DIR", env = "GPULOCK_FOLDER")]
    folder: Option<String>,
    /// Template to use instead of the embedded one, where a template makes the file
    #[arg(long, value_name = "FILE", env = "GPULOCK_EXPORT_TEMPLATE")]
    template: Option<PathBuf>,
    /// Print the embedded template, for one of your own
    #[arg(long, conflicts_with_all = ["template", "target", "image", "gpus", "constraint", "dockerfile", "folder"], env = "GPULOCK_PRINT_TEMPLATE")]
    print_template: bool,
    /// For jobs: what runs, instead of what the image runs by itself
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// The formats by name: a mistyped one is answered with the list and the one that was meant.
fn formats() -> impl TypedValueParser<Value = Format> {
    let values = Format::all().map(|format| PossibleValue::new(format.name()).help(format.about()));
    PossibleValuesParser::new(values).try_map(|name| name.parse::<Format>())
}

/// Runs it.
///
/// # Errors
/// No lock, a damaged or an edited one, an unknown target, artefacts that are pending.
pub fn run(args: &Args, globals: &Globals) -> Result<Answer, Failure> {
    if args.print_template {
        output::write(globals, embedded(args.format)?.text)?;
        return Ok(Answer::Yes);
    }
    shaping::effective(&args.given(), args.format)?;
    let path = input::lock_path(&args.place);
    let lock = input::read_whole_lock(&path)?;
    let target = args.target.as_deref();
    let mut beside = Beside { wheel_folder: args.wheels.as_deref(), ..Beside::default() };
    match args.format {
        Format::Requirements | Format::Constraints => {}
        Format::Pylock => beside.addresses = addresses(&lock, render::choose(&lock, target)?, globals)?,
        Format::Uv => return uv(args, globals, &lock, &path),
        Format::File(_) => return file(args, globals, &lock, &path),
    }
    output::made(globals, &render::render(args.format, &lock, target, &beside)?)?;
    Ok(Answer::Yes)
}

impl Args {
    /// What is given besides the lock, each for some formats alone.
    fn given(&self) -> Vec<Given> {
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let made: fn(Format) -> bool = |format| matches!(format, Format::File(_));
        let given = |flag, variable, value, takes: fn(Format) -> bool| Given {
            flag,
            variable: Some(variable),
            value,
            takes: Box::new(takes),
        };
        let shapes = |flag, variable, opt, value| Given {
            flag,
            variable,
            value,
            takes: Box::new(move |format| format.takes().contains(&opt)),
        };
        let gpus = self.gpus.map(|gpus| gpus.to_string());
        vec![
            given("--pyproject", "GPULOCK_PYPROJECT", path(&self.pyproject), |format| format == Format::Uv),
            given("--wheels", "GPULOCK_WHEELS", self.wheels.clone(), |format| format == Format::Pylock),
            given("--template", "GPULOCK_EXPORT_TEMPLATE", path(&self.template), made),
            shapes("--image", Some("GPULOCK_IMAGE"), Opt::Image, self.image.clone()),
            shapes("--gpus", Some("GPULOCK_GPUS"), Opt::Gpus, gpus),
            shapes("--constraint", Some("GPULOCK_CONSTRAINT"), Opt::Constraint, self.constraint.clone()),
            shapes("--dockerfile", Some("GPULOCK_DOCKERFILE"), Opt::Dockerfile, self.dockerfile.clone()),
            shapes("--folder", Some("GPULOCK_FOLDER"), Opt::Folder, self.folder.clone()),
            shapes("-- COMMAND", None, Opt::Command, self.command.first().cloned()),
        ]
    }

    fn options(&self, globals: &Globals, lock_path: &Path) -> Result<Options, Failure> {
        let takes = |opt| self.format.takes().contains(&opt);
        let seen = || shaping::dockerfile_seen_from(globals.output.as_deref());
        let folder = || shaping::folder_in_repository(lock_path);
        Ok(Options {
            image: self.image.clone(),
            gpus: self.gpus,
            command: self.command.clone(),
            constraint: self.constraint.clone(),
            dockerfile: self
                .dockerfile
                .clone()
                .or_else(|| seen().filter(|_| takes(Opt::Dockerfile) && self.image.is_none())),
            folder: match &self.folder {
                Some(given) => shaping::folder(given)?,
                None => folder().filter(|_| takes(Opt::Folder)),
            },
        })
    }
}

/// The template of a format.
fn embedded(format: Format) -> Result<Template<'static>, Failure> {
    if let Format::File(format) = format {
        return Ok(format.template());
    }
    let seen = Evidence::observed("command line", "--print-template");
    let problem = Diagnostic::error("usage", format!("no template makes {format}"), seen);
    let made: Vec<&str> = render::FILES.iter().map(|format| format.name).collect();
    Err(Failure::unanswerable(problem.fix(format!("formats that one makes: {}", made.join(", ")))))
}

/// Writes what a template makes.
fn file(args: &Args, globals: &Globals, lock: &Lock, lock_path: &Path) -> Result<Answer, Failure> {
    let text = args.template.as_ref().map(|path| file::text(path)).transpose()?;
    let name = args.template.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    let lock_name = input::lock_name(lock_path);
    let beside = Beside {
        options: args.options(globals, lock_path)?,
        template: text.as_deref().map(|text| Template { name: &name, text }),
        lock_name: &lock_name,
        ..Beside::default()
    };
    let mut target = render::choose(lock, args.target.as_deref())?.clone();
    if args.format.is_on_image() && target.image.is_none() {
        dockerfile::usual_image(&mut target, globals)?;
    }
    output::made(globals, &render::render_for(args.format, lock, &target, &beside)?)?;
    Ok(Answer::Yes)
}

/// Edits a pyproject.toml in place, or writes the edited text where `-o` says.
fn uv(args: &Args, globals: &Globals, lock: &Lock, lock_path: &Path) -> Result<Answer, Failure> {
    let folder = lock_path.parent().map_or_else(PathBuf::new, PathBuf::from);
    let file = args.pyproject.clone().unwrap_or_else(|| folder.join("pyproject.toml"));
    let old = file::text_if_there(&file)?.unwrap_or_default();
    let whole = std::env::current_dir().unwrap_or_default().join(&folder);
    let project = whole.file_name().map_or_else(|| "project".into(), |name| name.to_string_lossy().into_owned());
    let beside = Beside { pyproject: &old, project: &project, ..Beside::default() };
    let text = render::render(Format::Uv, lock, args.target.as_deref(), &beside)?;
    // In place, whether `-o` names it too or not.
    let elsewhere = globals.output.as_ref().is_some_and(|output| !write::is_same(output, &file));
    if elsewhere {
        output::made(globals, &text)?;
    } else if globals.output.is_some() {
        write::atomically(&file, &text)?;
    } else if text == old {
        let same = format!("{} is up to date\n", file.display());
        output::written(globals, &[], &same)?;
    } else {
        write::atomically(&file, &text)?;
        output::written(globals, &[file.display().to_string()], "")?;
    }
    Ok(Answer::Yes)
}

/// Where the wheels of a target are, as their indexes say now or said when they were last asked.
fn addresses(lock: &Lock, target: &Target, globals: &Globals) -> Result<BTreeMap<String, String>, Failure> {
    let matrix: Matrix = globals.matrix()?;
    let manifest = Manifest {
        indexes: lock
            .indexes
            .iter()
            .map(|(name, url)| crate::manifest::Index { name: name.clone(), url: url.clone(), packages: Vec::new() })
            .collect(),
        ..Manifest::default()
    };
    let source = Source::new(&matrix, &manifest, globals, false)?;
    let mut addresses = BTreeMap::new();
    for (name, package) in &target.packages {
        let (Some((file, _)), Some(index)) = (lock.wheel(package), lock.index_of(package)) else { continue };
        let release = source.release(index, name, &package.version)?;
        let wheels = release.as_deref().map_or(&[][..], |release| &release.wheels);
        let url = wheels.iter().find(|wheel| *wheel.name.file == *file).and_then(|wheel| wheel.url.clone());
        addresses.extend(url.map(|url| (file.to_owned(), url.into())));
    }
    Ok(addresses)
}
