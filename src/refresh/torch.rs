//! torch releases that the matrix has not seen: takes their lines of the snapshot and their wheels, gives their tables.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::keep::{Class, Kept};
use super::line::Line;
use super::pairs::{self, Companion};
use super::pins::{self, Pins, Toolkits};
use super::probe::{self, Probe};
use super::update::Change;
use crate::diag::{Diagnostic, Evidence, Failure};
use crate::matrix::edit::{Block, insert_row};
use crate::matrix::schema::PackageFile;
use crate::matrix::schema::TorchFile;
use crate::python::{Platform, PythonVersion, Wheel};
use crate::registry::Client;
use crate::version::{Cuda, CudaRelease, Glibc, Pep440};

/// What the tables of a release are made from.
pub(super) struct Sources<'a> {
    pub(super) client: &'a Client,
    /// The name of the index.
    pub(super) index: &'a str,
    pub(super) lines: &'a [Line],
    pub(super) kept: &'a BTreeMap<Pep440, Vec<Kept>>,
    pub(super) vision: &'a [Companion],
    pub(super) audio: &'a [Companion],
    pub(super) packages: &'a PackageFile,
    pub(super) toolkits: &'a Toolkits,
    pub(super) today: &'a str,
}

/// One build of a release.
struct Build {
    platform: Platform,
    file: String,
    python: Vec<PythonVersion>,
    glibc: Option<String>,
    pins: Pins,
    probe: Probe,
}

/// A release to write.
pub(super) struct Found {
    version: Pep440,
    block: Block,
    builds: Vec<String>,
    /// CUDA that its builds are made with, and the exact release where known.
    pub(super) cudas: Vec<(Cuda, Option<CudaRelease>)>,
}

/// Reads one release.
///
/// # Errors
/// When a wheel cannot be read, or contradicts itself.
pub(super) fn read(version: &Pep440, sources: &Sources<'_>) -> Result<Option<Found>, Failure> {
    let (Some(kept), Some(line)) =
        (sources.kept.get(version), sources.lines.iter().find(|line| line.version == version.to_string()))
    else {
        return Ok(None);
    };
    let mut builds = Vec::new();
    for (platform, class) in [(Platform::LinuxX86_64, Class::X86), (Platform::LinuxAarch64, Class::Arm)] {
        let wheels: Vec<&Kept> = kept.iter().filter(|kept| kept.class == class && !kept.listed.wheel.yanked).collect();
        builds.extend(build(platform, &wheels, line, sources)?);
    }
    let Some(first) = builds.first() else { return Ok(None) };
    let uploaded = kept.iter().filter_map(|kept| kept.listed.uploaded.as_deref()).min();
    let entry = line.wheels.iter().find(|entry| entry.file == first.file);
    let vision = pairs::of(version, "torchvision", sources.vision, sources.packages);
    let audio = pairs::of(version, "torchaudio", sources.audio, sources.packages);
    let mut pairs = Vec::new();
    for (name, list) in [("torchvision", &vision), ("torchaudio", &audio)] {
        if !list.is_empty() {
            pairs.push(format!("{name} {}", texts(list).join(", ")));
        }
    }
    let mut source = format!("PyPI wheel {}: dist-info/METADATA", first.file);
    if !pairs.is_empty() {
        source += &format!("; pairs: METADATA (Requires-Dist: torch) of the PyPI wheels of {}", pairs.join(", "));
    }
    let mut block = Block::row("release", 2)
        .string("version", &version.to_string())
        .optional("released", uploaded.and_then(|time| time.get(..10)))
        .optional("requires-python", entry.and_then(|entry| entry.python.as_deref()))
        .list("torchvision", &texts(&vision))
        .list("torchaudio", &texts(&audio))
        .string("source", &source)
        .string("retrieved", sources.today);
    for build in &builds {
        block = block.and(&build.block(sources));
    }
    Ok(Some(Found {
        version: version.clone(),
        block,
        builds: builds.iter().map(|build| format!("{} for {}", build.variant(), build.platform)).collect(),
        cudas: builds.iter().filter_map(|build| Some((build.probe.cuda?, build.pins.toolkit.clone()))).collect(),
    }))
}

/// The wheel that stands for all of a platform: of the newest build, the first by name.
pub(super) fn spokesman<'w>(wheels: impl Iterator<Item = &'w Arc<Wheel>>) -> Option<&'w Arc<Wheel>> {
    wheels.min_by_key(|wheel| (Reverse(wheel.name.build), wheel.name.file.clone()))
}

/// The Pythons that wheels are for, and the glibc that they need.
pub(super) fn tags<'w>(
    wheels: impl Iterator<Item = &'w Arc<Wheel>>,
    platform: Platform,
) -> (Vec<PythonVersion>, Option<Glibc>) {
    let (mut python, mut glibc) = (Vec::new(), None);
    for wheel in wheels {
        python.extend(wheel.name.tags.interpreters());
        glibc = glibc.max(wheel.name.tags.glibc(platform.machine()));
    }
    python.sort();
    python.dedup();
    (python, glibc)
}

fn build(platform: Platform, wheels: &[&Kept], line: &Line, sources: &Sources<'_>) -> Result<Option<Build>, Failure> {
    let Some(wheel) = spokesman(wheels.iter().map(|kept| &kept.listed.wheel)) else { return Ok(None) };
    let file = wheel.name.file.to_string();
    let (python, glibc) = tags(wheels.iter().map(|kept| &kept.listed.wheel), platform);
    let entry = line.wheels.iter().find(|entry| entry.file == file);
    let requires = entry.map_or(&[][..], |entry| line.requires_of(entry));
    let oldest = python.first().copied().unwrap_or(PythonVersion { major: 3, minor: 12, free_threaded: false });
    let pins = pins::read(requires, oldest, platform, sources.toolkits);
    let probe = probe::probe(sources.client, wheel)?;
    if let (Some(built), Some(pinned)) = (probe.cuda, pins.cuda)
        && built != pinned
    {
        let evidence = Evidence::observed(&file, format!("torch/version.py says CUDA {built}"));
        let message = format!("{file} was built with CUDA {built}, but requires the packages of CUDA {pinned}");
        let error = Diagnostic::error("wheel-contradicts", message, evidence);
        let pinned = Evidence::observed(format!("{file}: dist-info/METADATA"), pins.packages.join(", "));
        return Err(Failure::unanswerable(error.and(pinned).fix("write its tables by hand")));
    }
    Ok(Some(Build { platform, file, python, glibc: glibc.map(|glibc| glibc.to_string()), pins, probe }))
}

impl Build {
    fn variant(&self) -> String {
        self.probe.cuda.map_or_else(|| "cpu".into(), |cuda| format!("cu{}{}", cuda.major, cuda.minor))
    }

    fn block(&self, sources: &Sources<'_>) -> Block {
        let tags: Vec<String> = self.python.iter().map(|python| python.tag()).collect();
        let mut read = String::from("dist-info/METADATA, torch/version.py");
        if self.probe.cxx11_abi.is_some() {
            read += ", symbols of torch/lib/libc10.so";
        }
        if self.probe.code.is_some() {
            read += ", CUDA_ARCH_FLAGS in torch/lib/libtorch_python.so";
        }
        let mut block = Block::row("release.build", 1)
            .string("variant", &self.variant())
            .string("index", sources.index)
            .string("platform", &self.platform.to_string())
            .optional("cuda", self.probe.cuda)
            .optional("toolkit", self.pins.toolkit.as_ref().filter(|_| self.probe.cuda.is_some()))
            .list("python", &tags)
            .optional("glibc", self.glibc.as_ref())
            .optional("cudnn", self.pins.cudnn.as_ref())
            .optional("nccl", self.pins.nccl.as_ref())
            .optional("triton", self.pins.triton.as_ref());
        if let Some(code) = &self.probe.code {
            block = block.list("code", code);
        }
        block
            .flag("cxx11-abi", self.probe.cxx11_abi)
            .string("basis", "read")
            .string("source", &format!("PyPI wheel {}: {read}", self.file))
            .string("retrieved", sources.today)
    }
}

/// The file of a release.
pub(super) fn path(version: &Pep440) -> String {
    format!("torch/{}.toml", minor(version))
}

fn minor(version: &Pep440) -> String {
    version.release().iter().take(2).map(ToString::to_string).collect::<Vec<_>>().join(".")
}

/// The row of a release in the text of its file.
pub(super) fn position(text: &str, version: &Pep440) -> Option<usize> {
    let file: TorchFile = crate::matrix::edit::parse(text)?;
    file.releases.iter().position(|row| row.version == *version)
}

/// Puts a release into the text of its file, or into a new one.
pub(super) fn write(found: &Found, old: Option<&str>, sources: &Sources<'_>) -> (String, Change) {
    let minor = minor(&found.version);
    let top = Block::top()
        .string("torch", &minor)
        .string("source", &format!("torch {minor}: PyPI wheels"))
        .string("retrieved", sources.today);
    let later = |known: &str| known.parse::<Pep440>().is_ok_and(|known| known > found.version);
    let text = insert_row(old.unwrap_or(top.text()), "release", "version", later, &found.block);
    let what = format!("torch {}: {}", found.version, found.builds.join(", "));
    (text, Change { file: path(&found.version), what })
}

fn texts<T: ToString>(list: &[T]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}
