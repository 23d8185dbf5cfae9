//! Every torch build that an index has: its Pythons, its glibc, what its METADATA pins; and its companions.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Audit, texts};
use crate::diag::Failure;
use crate::matrix::schema::{TorchBuildRow, TorchReleaseRow};
use crate::matrix::{Matrix, TorchBuild};
use crate::python::{PackageName, Platform, PythonVersion, Requirement, Wheel};
use crate::refresh::line::{self, Line};
use crate::refresh::pairs::{self, Companion};
use crate::refresh::pins::{self, Pins, Toolkits};
use crate::refresh::{keep, torch};
use crate::registry::{Client, MetadataText};
use crate::version::{Glibc, Pep440, Specifiers};

type Texts = HashMap<Box<str>, Result<MetadataText, Failure>>;

pub(super) fn compare(
    matrix: &Matrix,
    client: &Client,
    default: &str,
    until: &str,
    audit: &mut Audit,
) -> Result<(), Failure> {
    let toolkits = pins::toolkits(&lines(matrix, "cuda-toolkit"));
    let Ok(package) = "torch".parse::<PackageName>() else { return Ok(()) };
    // All at once: an index that is out of reach takes its time to say so.
    let asked = &matrix.index()?.indexes;
    client.each(asked, |row| row.name.clone(), |row| drop(client.list(&row.name, &package)));
    for row in asked {
        let facts = matrix.torch()?;
        let all = Platform::ALL.into_iter().flat_map(|platform| facts.builds(platform));
        let builds: Vec<TorchBuild> = all.filter(|build| build.row().index == row.name).collect();
        if builds.is_empty() {
            continue;
        }
        let page = match client.list(&row.name, &package) {
            Ok(page) => page,
            Err(failure) if row.name != default => {
                audit.unchecked.push(format!("{} builds of index {}: {failure}", builds.len(), row.name));
                continue;
            }
            Err(failure) => return Err(failure),
        };
        let version = |build: &TorchBuild| build.version(default);
        let wheels: Vec<Vec<&Arc<Wheel>>> =
            builds.iter().map(|build| wheels_of(&page, &version(build), build.row().platform)).collect();
        let spokesmen: Vec<Arc<Wheel>> =
            wheels.iter().filter_map(|wheels| torch::spokesman(wheels.iter().copied())).cloned().collect();
        let texts = texts(client, &spokesmen);
        for (build, wheels) in builds.iter().zip(&wheels) {
            compare_build(build, wheels, &texts, &toolkits, audit)?;
        }
    }
    snapshot_requires(matrix, client, default, until, audit)?;
    companions(matrix, client, default, until, audit)
}

fn lines(matrix: &Matrix, package: &str) -> Vec<Line> {
    let text = matrix.files().text(&format!("snapshot/{package}.jsonl")).unwrap_or("");
    line::read(text).unwrap_or_default()
}

fn wheels_of<'p>(page: &'p [Arc<Wheel>], version: &Pep440, platform: Platform) -> Vec<&'p Arc<Wheel>> {
    let of = |wheel: &&Arc<Wheel>| wheel.name.version == *version && wheel.name.tags.linux(platform.machine());
    page.iter().filter(of).collect()
}

fn file_of(release: &TorchReleaseRow) -> String {
    torch::path(&release.version)
}

fn compare_build(
    build: &TorchBuild,
    wheels: &[&Arc<Wheel>],
    texts: &Texts,
    toolkits: &Toolkits,
    audit: &mut Audit,
) -> Result<(), Failure> {
    let (release, row) = (build.release(), build.row());
    let file = file_of(release);
    let about = format!("torch {}, {} for {} of {}", release.version, row.variant, row.platform, row.index);
    let Some(spokesman) = torch::spokesman(wheels.iter().copied()) else {
        audit.compare("builds", &file, &about, Some("there".into()), None);
        return Ok(());
    };
    audit.compare("builds", &file, &about, Some("there".into()), Some("there".into()));
    let (python, glibc) = torch::tags(wheels.iter().copied(), row.platform);
    tags(&file, &about, row, &python, glibc.as_ref(), audit);
    let Some(text) = texts.get(&spokesman.name.file) else { return Ok(()) };
    let text = text.as_ref().map_err(Clone::clone)?;
    let oldest = python.first().copied().unwrap_or(PythonVersion { major: 3, minor: 12, free_threaded: false });
    let pins = pins::read(&text.requires, oldest, row.platform, toolkits);
    compare_pins(&file, &about, row, &pins, audit);
    if let (Some(known), Some(told)) = (&release.requires_python, &text.python) {
        let same = clauses(known) == clauses(told);
        let told = if same { known.clone() } else { told.clone() };
        audit.compare("Requires-Python", &file, &format!("{about}: requires-python"), Some(known.clone()), Some(told));
    }
    Ok(())
}

/// The clauses of a specifier, in any order.
fn clauses(text: &str) -> Vec<String> {
    let mut clauses: Vec<String> = text.split(',').map(|clause| clause.trim().to_owned()).collect();
    clauses.sort();
    clauses
}

fn tags(
    file: &str,
    about: &str,
    row: &TorchBuildRow,
    python: &[PythonVersion],
    glibc: Option<&Glibc>,
    audit: &mut Audit,
) {
    if let Some(known) = row.pythons() {
        let text = |list: &[PythonVersion]| list.iter().map(|python| python.tag()).collect::<Vec<_>>().join(" ");
        let mut known = known;
        known.sort();
        let (matrix, index) = (Some(text(&known)), Some(text(python)));
        audit.compare("Python tags", file, &format!("{about}: python"), matrix, index);
    }
    if let (Some(known), Some(tag)) = (&row.glibc, glibc) {
        // The tags before manylinux2014 (2.17) were not checked when torch was uploaded with them: it needs more.
        let index = if tag.numbers() < [2, 17, 0, 0] && known > tag { known } else { tag };
        audit.compare("glibc tags", file, &format!("{about}: glibc"), Some(known.to_string()), Some(index.to_string()));
    }
}

fn compare_pins(file: &str, about: &str, row: &TorchBuildRow, pins: &Pins, audit: &mut Audit) {
    fn text<T: ToString>(value: Option<&T>) -> Option<String> {
        value.map(ToString::to_string)
    }
    let mut compare = |key: &'static str, matrix: Option<String>, index: Option<String>| {
        audit.compare("pins", file, &format!("{about}: {key}"), matrix, index);
    };
    // What the wheel does not pin is a fact from elsewhere, such as libraries inside the wheel.
    if pins.cuda.is_some() || row.cuda.is_none() {
        compare("cuda", text(row.cuda.as_ref()), text(pins.cuda.as_ref()));
    }
    if row.toolkit.is_some() && pins.toolkit.is_some() {
        compare("toolkit", row.toolkit.clone(), text(pins.toolkit.as_ref()));
    }
    if pins.cudnn.is_some() {
        compare("cudnn", text(row.cudnn.as_ref()), text(pins.cudnn.as_ref()));
    }
    if pins.nccl.is_some() {
        compare("nccl", text(row.nccl.as_ref()), text(pins.nccl.as_ref()));
    }
    if row.cuda.is_some() || row.triton.is_some() {
        compare("triton", row.triton.clone(), pins.triton.clone());
    }
    if let Some(known) = &row.requires {
        let normal = |text: &String| {
            let parsed: Option<Requirement> = text.parse().ok();
            parsed.map_or_else(|| text.clone(), |r| format!("{}{}", r.package, r.specifiers))
        };
        let cuda = |text: &String| text.starts_with("nvidia-") || text.starts_with("cuda-");
        let list = |all: &[String]| {
            let mut all: Vec<String> = all.iter().map(normal).filter(cuda).collect();
            all.sort();
            Some(all.join(" "))
        };
        compare("requires", list(known), list(&pins.packages));
    }
}

/// The wheels that speak for their class are asked what the snapshot says that they require.
fn snapshot_requires(
    matrix: &Matrix,
    client: &Client,
    default: &str,
    until: &str,
    audit: &mut Audit,
) -> Result<(), Failure> {
    for name in ["torch", "torchvision", "torchaudio"] {
        let Ok(package) = name.parse::<PackageName>() else { continue };
        let path = format!("snapshot/{name}.jsonl");
        let lines = lines(matrix, name);
        let kept = keep::kept(&package, true, client.listed(default, &package)?, until);
        let mut asked = Vec::new();
        for wheels in kept.values() {
            for platform in Platform::ALL {
                let of = wheels.iter().map(|kept| &kept.listed.wheel);
                asked.extend(torch::spokesman(of.filter(|w| w.name.tags.linux(platform.machine()))).cloned());
            }
        }
        let texts = texts(client, &asked);
        for wheel in &asked {
            let entry = lines.iter().flat_map(|l| l.wheels.iter().map(move |e| (l, e)));
            let Some((line, entry)) = entry.into_iter().find(|(_, entry)| *entry.file == *wheel.name.file) else {
                continue;
            };
            let Some(text) = texts.get(&wheel.name.file) else { continue };
            let text = text.as_ref().map_err(Clone::clone)?;
            let (known, told) = (line.requires_of(entry), &text.requires);
            let only = |these: &[String], those: &[String]| {
                let only: Vec<&str> = these.iter().filter(|t| !those.contains(t)).map(String::as_str).collect();
                Some(only.join(" | "))
            };
            audit.compare("requirements", &path, &wheel.name.file, only(known, told), only(told, known));
        }
    }
    Ok(())
}

/// Companions by the METADATA of one wheel of each of their releases.
fn companions(matrix: &Matrix, client: &Client, default: &str, until: &str, audit: &mut Audit) -> Result<(), Failure> {
    let packages = matrix.package()?;
    for name in ["torchvision", "torchaudio"] {
        let Ok(package) = name.parse::<PackageName>() else { continue };
        let kept = keep::kept(&package, true, client.listed(default, &package)?, until);
        let alive = kept.values().filter_map(|wheels| {
            let wheels = wheels.iter().map(|kept| &kept.listed.wheel);
            torch::spokesman(wheels.filter(|wheel| !wheel.yanked)).cloned()
        });
        let asked: Vec<Arc<Wheel>> = alive.collect();
        let texts = texts(client, &asked);
        let mut known: Vec<Companion> = Vec::new();
        for wheel in asked.iter().rev() {
            let Some(text) = texts.get(&wheel.name.file) else { continue };
            let text = text.as_ref().map_err(Clone::clone)?;
            let requires = text.requires.iter().filter_map(|text| text.parse::<Requirement>().ok());
            let torch = requires.into_iter().find(|requirement| requirement.package.as_str() == "torch");
            let torch: Option<Specifiers> = torch.map(|r| r.specifiers).filter(|specifiers| !specifiers.is_empty());
            known.push(Companion { version: wheel.name.version.clone(), torch });
        }
        for release in matrix.torch()?.releases() {
            let listed = if name == "torchvision" { &release.torchvision } else { &release.torchaudio };
            let Some(listed) = listed else { continue };
            // One that does not say which torch it is for is listed by other sources.
            let silent = |v: &&Pep440| known.iter().any(|c| c.version == **v && c.torch.is_none());
            let mut spoken: Vec<&Pep440> = listed.iter().filter(|version| !silent(version)).collect();
            spoken.sort_by(|a, b| b.cmp(a));
            let text = |list: Vec<String>| Some(if list.is_empty() { "none".into() } else { list.join(" ") });
            let matrix = text(spoken.iter().map(ToString::to_string).collect());
            let index =
                text(pairs::of(&release.version, name, &known, packages).iter().map(ToString::to_string).collect());
            let what = format!("torch {}: {name}", release.version);
            audit.compare("trio pairs", &file_of(release), &what, matrix, index);
        }
    }
    Ok(())
}
