//! The formats of `gpulock export`: four that are made by code, and a table of those that a template makes.

use std::fmt;
use std::str::FromStr;

use super::options::Opt;
use super::quote;
use super::template::Template;
use crate::version::ParseError;

/// What can be rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// pip's requirements file, every package with its hash.
    Requirements,
    /// pip's and uv's constraints file: versions without hashes.
    Constraints,
    /// `pylock.toml` (PEP 751).
    Pylock,
    /// A `pyproject.toml` that `uv lock` takes to the same versions.
    Uv,
    /// What a template makes.
    File(&'static FileFormat),
}

/// A format that a template makes. One more of them is a template and a row of [`FILES`].
#[derive(Debug)]
pub struct FileFormat {
    /// Its name on the command line, and what a template that extends it calls it.
    pub name: &'static str,
    /// What it is, for the list of formats.
    pub about: &'static str,
    /// What a line of comment begins with.
    pub comment: &'static str,
    /// The template.
    pub template: &'static str,
    /// Whether it names hashes, so that no artefact may be pending.
    pub hashes: bool,
    /// The options that shape it.
    pub takes: &'static [Opt],
    /// Whether there is none without `--image`.
    pub needs_image: bool,
    /// Whether it builds upon the image that the lock names.
    pub on_image: bool,
    /// Whether a carriage return at the end of a line becomes part of a value or of a command.
    pub carriage_returns: bool,
    /// Why it cannot hold a variable of `[env]`, by its name and value; `None` when it can.
    pub refuses: fn(&str, &str) -> Option<&'static str>,
}

/// The formats that a template makes.
pub static FILES: &[FileFormat] = &[
    FileFormat {
        name: "conda",
        about: "environment.yml of conda, mamba and micromamba, the wheels by pip with hashes",
        comment: "# ",
        template: include_str!("../../templates/export/conda.yml.j2"),
        hashes: true,
        takes: &[],
        needs_image: false,
        on_image: false,
        carriage_returns: false,
        refuses: quote::conda_refuses,
    },
    FileFormat {
        name: "env",
        about: "variables for `docker run --env-file`, Compose and python-dotenv",
        comment: "# ",
        template: include_str!("../../templates/export/env.j2"),
        hashes: false,
        takes: &[],
        needs_image: false,
        on_image: false,
        carriage_returns: true,
        refuses: quote::dotenv_refuses,
    },
    FileFormat {
        name: "compose",
        about: "service of the Compose specification, with the GPUs",
        comment: "# ",
        template: include_str!("../../templates/export/compose.yaml.j2"),
        hashes: false,
        takes: &[Opt::Image, Opt::Gpus, Opt::Command],
        needs_image: false,
        on_image: false,
        carriage_returns: false,
        refuses: holds_any,
    },
    FileFormat {
        name: "devcontainer",
        about: "devcontainer.json, with the GPUs",
        comment: "// ",
        template: include_str!("../../templates/export/devcontainer.json.j2"),
        hashes: false,
        takes: &[Opt::Image, Opt::Dockerfile],
        needs_image: false,
        on_image: false,
        carriage_returns: false,
        refuses: quote::substituted,
    },
    FileFormat {
        name: "k8s",
        about: "Job of Kubernetes, on nodes with these GPUs and a driver that will do",
        comment: "# ",
        template: include_str!("../../templates/export/k8s.yaml.j2"),
        hashes: false,
        takes: &[Opt::Image, Opt::Gpus, Opt::Command],
        needs_image: true,
        on_image: false,
        carriage_returns: false,
        refuses: quote::k8s_refuses,
    },
    FileFormat {
        name: "guard",
        about: "a Python module that a program imports first, and that raises where torch, driver or GPUs are not the lock's",
        comment: "# ",
        template: include_str!("../../templates/export/guard.py.j2"),
        hashes: false,
        takes: &[],
        needs_image: false,
        on_image: false,
        carriage_returns: false,
        refuses: holds_any,
    },
    FileFormat {
        name: "slurm",
        about: "a job of Slurm, which checks driver and GPUs of its nodes first",
        comment: "# ",
        template: include_str!("../../templates/export/slurm.sh.j2"),
        hashes: false,
        takes: &[Opt::Image, Opt::Gpus, Opt::Constraint, Opt::Command],
        needs_image: false,
        on_image: false,
        carriage_returns: true,
        refuses: quote::bash_refuses,
    },
    FileFormat {
        name: "apptainer",
        about: "a definition file of Apptainer and SingularityCE",
        comment: "# ",
        template: include_str!("../../templates/export/apptainer.def.j2"),
        hashes: true,
        takes: &[],
        needs_image: false,
        on_image: true,
        carriage_returns: true,
        refuses: quote::definition_refuses,
    },
    FileFormat {
        name: "github",
        about: "a workflow of GitHub Actions: check, build, verify",
        comment: "# ",
        template: include_str!("../../templates/export/github.yml.j2"),
        hashes: true,
        takes: &[Opt::Folder],
        needs_image: false,
        on_image: false,
        carriage_returns: false,
        refuses: holds_any,
    },
    FileFormat {
        name: "gitlab",
        about: "jobs of GitLab CI: check, build, verify",
        comment: "# ",
        template: include_str!("../../templates/export/gitlab.yml.j2"),
        hashes: true,
        takes: &[Opt::Folder],
        needs_image: false,
        on_image: false,
        carriage_returns: false,
        refuses: holds_any,
    },
];

/// Every value can be written, or none is.
fn holds_any(_: &str, _: &str) -> Option<&'static str> {
    None
}

impl PartialEq for FileFormat {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for FileFormat {}

impl FileFormat {
    /// Its template.
    pub fn template(&self) -> Template<'static> {
        Template { name: self.name, text: self.template }
    }
}

impl Format {
    /// All formats.
    pub fn all() -> impl Iterator<Item = Self> {
        [Self::Requirements, Self::Constraints, Self::Pylock, Self::Uv].into_iter().chain(FILES.iter().map(Self::File))
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Requirements => "requirements",
            Self::Constraints => "constraints",
            Self::Pylock => "pylock",
            Self::Uv => "uv",
            Self::File(file) => file.name,
        }
    }

    /// Whether it builds upon the image of the target.
    pub fn is_on_image(self) -> bool {
        matches!(self, Self::File(file) if file.on_image)
    }

    /// The options that shape it.
    pub fn takes(self) -> &'static [Opt] {
        match self {
            Self::File(file) => file.takes,
            _ => &[],
        }
    }

    /// What it is, in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Self::Requirements => "pip's requirements file, with hashes",
            Self::Constraints => "pip's and uv's constraints file: versions alone",
            Self::Pylock => "pylock.toml (PEP 751)",
            Self::Uv => "edits pyproject.toml, so that `uv lock` takes the same versions",
            Self::File(file) => file.about,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let found = Self::all().find(|format| format.name() == text);
        found.ok_or_else(|| ParseError { given: text.into(), expected: "the name of a format" })
    }
}
