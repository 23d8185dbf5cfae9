//! cuDNN releases that the matrix has not seen: takes lines of the snapshot, gives `cudnn/*.toml` with their tables.
//! The code that they carry is not read: that would take the whole of a large wheel.

use std::collections::BTreeMap;

use super::line::Line;
use super::pins;
use super::update::Change;
use crate::matrix::edit::{Block, append_to_row, insert_row};
use crate::matrix::schema::CudnnFile;
use crate::python::{PackageName, Platform, WheelName};
use crate::version::{Cudnn, Glibc};

/// cuDNN for one CUDA family, as the index has it.
#[derive(Debug, Clone)]
pub(super) struct Offered {
    pub(super) cuda: u32,
    pub(super) package: PackageName,
    pub(super) platforms: Vec<Platform>,
    pub(super) glibc: Option<Glibc>,
    pub(super) files: Vec<String>,
    pub(super) yanked: bool,
}

/// What the snapshot has of cuDNN, by version and CUDA family.
pub(super) fn offered<'l>(lines: impl Iterator<Item = (&'l PackageName, &'l [Line])>) -> BTreeMap<Cudnn, Vec<Offered>> {
    let mut found: BTreeMap<Cudnn, Vec<Offered>> = BTreeMap::new();
    for (package, lines) in lines {
        let family = pins::family(package.as_str(), "nvidia-cudnn").flatten();
        let Some(cuda) = family.and_then(|family| family.parse().ok()) else { continue };
        for line in lines {
            let Ok(version) = line.version.parse() else { continue };
            found.entry(version).or_default().push(build(package, cuda, line));
        }
    }
    for builds in found.values_mut() {
        builds.sort_by_key(|build| build.cuda);
    }
    found
}

fn build(package: &PackageName, cuda: u32, line: &Line) -> Offered {
    let names: Vec<WheelName> = line.wheels.iter().filter_map(|entry| entry.file.parse().ok()).collect();
    let on = |platform: Platform| names.iter().find(move |name| name.tags.linux(platform.machine()));
    let platforms: Vec<Platform> = Platform::ALL.into_iter().filter(|platform| on(*platform).is_some()).collect();
    Offered {
        cuda,
        package: package.clone(),
        glibc: platforms.iter().filter_map(|p| on(*p)?.tags.glibc(p.machine())).max(),
        files: platforms.iter().filter_map(|platform| Some(on(*platform)?.file.to_string())).collect(),
        platforms,
        yanked: line.wheels.iter().all(|entry| entry.yanked),
    }
}

/// Adds what is missing. `files` gives texts by path and takes the changed ones; `known` is what they say.
pub(super) fn add(
    offered: &BTreeMap<Cudnn, Vec<Offered>>,
    known: &[&CudnnFile],
    read: impl Fn(&str) -> Option<String>,
    today: &str,
) -> (BTreeMap<String, String>, Vec<Change>) {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    let mut changes = Vec::new();
    // Releases older than all that the matrix describes stay out.
    let oldest = known.iter().flat_map(|file| &file.releases).map(|row| &row.version).min();
    for (version, builds) in offered.iter().filter(|(version, _)| oldest.is_none_or(|oldest| *version > oldest)) {
        let minor = format!("{}.{}", version.major(), version.minor());
        let path = format!("cudnn/{minor}.toml");
        let file = known.iter().find(|file| file.cudnn.to_string() == minor);
        let row = file.and_then(|file| file.releases.iter().position(|row| row.version == *version));
        let has = |cuda: u32| {
            let row = row.and_then(|row| file?.releases.get(row));
            row.is_some_and(|row| row.builds.iter().any(|build| build.cuda == cuda))
        };
        let new: Vec<&Offered> = builds.iter().filter(|build| !has(build.cuda)).collect();
        if new.is_empty() {
            continue;
        }
        let text = files.get(&path).cloned().or_else(|| read(&path));
        let blocks = new.iter().fold(Block::top(), |all, build| all.and(&build.block(today)));
        let text = match (text, row) {
            (Some(text), Some(_)) => {
                let at = position(&text, version);
                at.map_or(text.clone(), |at| append_to_row(&text, "release", at, &blocks))
            }
            (text, _) => {
                let text = text.unwrap_or_else(|| top(&minor, today));
                let later = |known: &str| known.parse::<Cudnn>().is_ok_and(|known| known > *version);
                insert_row(&text, "release", "version", later, &release(version, builds, today).and(&blocks))
            }
        };
        files.insert(path.clone(), text);
        let families: Vec<String> = new.iter().map(|build| format!("CUDA {}", build.cuda)).collect();
        changes.push(Change { file: path, what: format!("cuDNN {version} for {}", families.join(" and ")) });
    }
    (files, changes)
}

fn top(minor: &str, today: &str) -> String {
    let source = format!("PyPI projects of cuDNN {minor}");
    Block::top().string("cudnn", minor).string("source", &source).string("retrieved", today).text().to_owned()
}

fn release(version: &Cudnn, builds: &[Offered], today: &str) -> Block {
    let packages: Vec<&str> = builds.iter().map(|build| build.package.as_str()).collect();
    let plural = if packages.len() == 1 { "" } else { "s" };
    Block::row("release", 1)
        .string("version", &version.to_string())
        .flag("yanked", builds.iter().all(|build| build.yanked).then_some(true))
        .string("source", &format!("PyPI project{plural} {}", packages.join(", ")))
        .string("retrieved", today)
}

impl Offered {
    fn block(&self, today: &str) -> Block {
        let wheels: Vec<String> = self.files.iter().map(|file| format!("PyPI wheel {file}")).collect();
        Block::row("release.build", 1)
            .number("cuda", self.cuda)
            .list("platforms", &self.platforms)
            .optional("glibc", self.glibc.as_ref())
            .string("basis", "read")
            .string("source", &wheels.join("; "))
            .string("retrieved", today)
    }
}

/// The row of a release in a text that may have grown since it was read.
fn position(text: &str, version: &Cudnn) -> Option<usize> {
    let file: CudnnFile = crate::matrix::edit::parse(text)?;
    file.releases.iter().position(|row| row.version == *version)
}
