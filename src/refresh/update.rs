//! Bringing the matrix up to date.

use std::collections::{BTreeMap, BTreeSet};

use super::closure::{self, Node};
use super::line::{self, Line};
use super::snapshot::{self, Package, Refreshed};
use super::{cudnn, pairs, pins, torch};
use crate::diag::{Diagnostic, Evidence, Failure};
use crate::matrix::Matrix;
use crate::matrix::edit::{Block, insert_row, set_list, set_string};
use crate::matrix::schema::{SnapshotFile, TorchReleaseRow};
use crate::python::PackageName;
use crate::registry::Client;
use crate::version::{Cuda, CudaRelease, Pep440};

/// When an update is made.
#[derive(Debug, Clone)]
pub struct Moment {
    /// What was uploaded later is left out: `2026-11-29T00:00:00Z`.
    pub until: String,
    /// The day that new facts were read: `2026-11-29`.
    pub today: String,
}

/// Something new in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Path below the matrix directory.
    pub file: String,
    /// What is new.
    pub what: String,
}

/// An updated matrix.
#[derive(Debug, Default)]
pub struct Update {
    /// Changed files with their whole text, by path below the matrix directory.
    pub files: BTreeMap<String, String>,
    /// What changed; a file that only confirms its old content on a later day is not among them.
    pub changes: Vec<Change>,
}

/// Refreshes the snapshot from `index`, and adds the torch and cuDNN releases that the matrix has not seen.
///
/// # Errors
/// When the index cannot be asked, a wheel cannot be read, or the matrix does not have its form.
pub fn update(matrix: &Matrix, client: &Client, index: &str, moment: &Moment) -> Result<Update, Failure> {
    let files = matrix.files();
    let list: SnapshotFile = files.read("snapshot/INDEX.toml")?;
    let refreshed = packages(matrix, client, index, &list, moment)?;
    let mut update = Update::default();
    for (name, package) in &refreshed {
        let path = format!("snapshot/{name}.jsonl");
        let old = files.text(&path).unwrap_or("");
        let text = line::write(&package.lines);
        if text != old {
            update.changes.extend(differences(&path, &line::read(old).unwrap_or_default(), &package.lines));
            update.files.insert(path, text);
        }
    }
    let names: Vec<&PackageName> =
        refreshed.iter().filter(|(_, p)| !p.lines.is_empty()).map(|(name, _)| name).collect();
    let text = index_text(matrix, &list, &names, moment)?;
    if files.text("snapshot/INDEX.toml") != Some(&text) {
        update.files.insert("snapshot/INDEX.toml".into(), text);
    }
    torch_releases(matrix, client, index, &refreshed, moment, &mut update)?;
    let lines = refreshed.iter().map(|(name, package)| (name, package.lines.as_slice()));
    let read = |path: &str| files.text(path).map(str::to_owned);
    let (texts, changes) = cudnn::add(&cudnn::offered(lines), &matrix.cudnn()?, read, &moment.today);
    update.files.extend(texts);
    update.changes.extend(changes);
    Ok(update)
}

/// The packages of the snapshot as they are now, with those that new releases need besides.
fn packages(
    matrix: &Matrix,
    client: &Client,
    index: &str,
    list: &SnapshotFile,
    moment: &Moment,
) -> Result<BTreeMap<PackageName, Refreshed>, Failure> {
    let groups = matrix.package()?;
    let mut refreshed: BTreeMap<PackageName, Refreshed> = BTreeMap::new();
    let mut wanted: BTreeSet<PackageName> = list.packages.gpu.iter().chain(&list.packages.other).cloned().collect();
    while !wanted.is_empty() {
        let new = |name: PackageName| {
            let text = matrix.files().text(&format!("snapshot/{name}.jsonl")).unwrap_or("");
            Package { gpu: groups.is_gpu(&name), old: line::read(text).unwrap_or_default(), name }
        };
        let packages: Vec<Package> = std::mem::take(&mut wanted).into_iter().map(new).collect();
        refreshed.extend(snapshot::refresh(client, index, &packages, &moment.until)?);
        let node = |(name, package): (&PackageName, _)| {
            let package: &'_ Refreshed = package;
            (name.clone(), package.lines.as_slice(), groups.is_gpu(name))
        };
        let nodes: Vec<_> = refreshed.iter().map(node).collect();
        let nodes = nodes.iter().map(|(name, lines, gpu)| (name.clone(), Node { lines, gpu: *gpu })).collect();
        wanted = closure::needed(&nodes).into_iter().filter(|name| !refreshed.contains_key(name)).collect();
    }
    if let Some(name) = list.packages.gpu.iter().find(|name| refreshed.get(name).is_none_or(|p| p.lines.is_empty())) {
        // An index that is empty or broken must not empty the snapshot.
        let evidence =
            Evidence::observed(format!("index `{index}`"), format!("no wheel of {name} for Linux with hash and size"));
        let message = format!("{name} of the snapshot is not on the index any more");
        let error = Diagnostic::error("package-gone", message, evidence);
        return Err(Failure::unanswerable(error.fix("take it out of snapshot/INDEX.toml, if that is meant")));
    }
    Ok(refreshed)
}

/// The list of packages, as it is generated.
fn index_text(matrix: &Matrix, old: &SnapshotFile, names: &[&PackageName], moment: &Moment) -> Result<String, Failure> {
    let groups = matrix.package()?;
    let mut text = Block::top()
        .string("retrieved", moment.until.get(..10).unwrap_or(&moment.today))
        .string("source", &old.source)
        .string("exclude-newer", &moment.until)
        .text()
        .to_owned();
    text += "\n[packages]\n";
    for (key, gpu) in [("gpu", true), ("other", false)] {
        text += &format!("{key} = [\n");
        for name in names.iter().filter(|name| groups.is_gpu(name) == gpu) {
            text += &format!("  \"{name}\",\n");
        }
        text += "]\n";
    }
    Ok(text)
}

/// What is new in the lines of a package, in a few words.
fn differences(path: &str, old: &[Line], new: &[Line]) -> Vec<Change> {
    let change = |what: String| Change { file: path.to_owned(), what };
    let only = |these: &[Line], those: &[Line]| -> Vec<String> {
        let versions: BTreeSet<&str> = those.iter().map(|line| line.version.as_str()).collect();
        these.iter().filter(|line| !versions.contains(line.version.as_str())).map(|l| l.version.clone()).collect()
    };
    let mut changes = Vec::new();
    for (verb, versions) in [("added", only(new, old)), ("removed", only(old, new))] {
        match versions.len() {
            0 => {}
            1..=6 => changes.push(change(format!("{verb}: {}", versions.join(", ")))),
            count => {
                changes.push(change(format!("{verb}: {count} releases, {} to {}", versions[0], versions[count - 1])))
            }
        }
    }
    let changed = |line: &&Line| old.iter().any(|known| known.version == line.version && known != *line);
    let changed: Vec<&str> = new.iter().filter(changed).map(|line| line.version.as_str()).collect();
    if !changed.is_empty() {
        changes.push(change(format!("changed: {}", changed.join(", "))));
    }
    changes
}

/// Adds unseen torch releases, and new companions to seen ones.
fn torch_releases(
    matrix: &Matrix,
    client: &Client,
    index: &str,
    refreshed: &BTreeMap<PackageName, Refreshed>,
    moment: &Moment,
    update: &mut Update,
) -> Result<(), Failure> {
    let of = |name: &str| name.parse().ok().and_then(|name: PackageName| refreshed.get(&name));
    let lines = |name: &str| of(name).map_or(&[][..], |package| &package.lines);
    let Some(torch) = of("torch") else { return Ok(()) };
    let sources = torch::Sources {
        client,
        index,
        lines: &torch.lines,
        kept: &torch.kept,
        vision: &pairs::companions(lines("torchvision")),
        audio: &pairs::companions(lines("torchaudio")),
        packages: matrix.package()?,
        toolkits: &pins::toolkits(lines("cuda-toolkit")),
        today: &moment.today,
    };
    let known = matrix.torch()?.releases();
    for version in torch.kept.keys() {
        match known.iter().find(|row| row.version == *version) {
            Some(row) => new_pairs(matrix, row, &sources, update),
            None => {
                let Some(found) = torch::read(version, &sources)? else { continue };
                let path = torch::path(version);
                let old = update.files.get(&path).map(String::as_str).or_else(|| matrix.files().text(&path));
                let (text, change) = torch::write(&found, old, &sources);
                update.files.insert(path, text);
                update.changes.push(change);
                for (cuda, release) in &found.cudas {
                    new_cuda(matrix, *cuda, release.as_ref(), moment, update)?;
                }
            }
        }
    }
    Ok(())
}

/// Companions of a known release that came out after its table was written.
fn new_pairs(matrix: &Matrix, row: &TorchReleaseRow, sources: &torch::Sources<'_>, update: &mut Update) {
    let path = torch::path(&row.version);
    let lists = [("torchvision", &row.torchvision, sources.vision), ("torchaudio", &row.torchaudio, sources.audio)];
    for (key, listed, known) in lists {
        let Some(listed) = listed else { continue };
        let found = pairs::of(&row.version, key, known, sources.packages);
        let newest = listed.iter().max();
        let new: Vec<Pep440> =
            found.into_iter().filter(|version| newest.is_none_or(|newest| version > newest)).collect();
        let text = update.files.get(&path).map(String::as_str).or_else(|| matrix.files().text(&path));
        if new.is_empty() {
            continue;
        }
        let all: Vec<&Pep440> = new.iter().chain(listed).collect();
        let at = text.and_then(|text| torch::position(text, &row.version));
        let Some((text, at)) = text.zip(at) else { continue };
        let shown: Vec<String> = new.iter().map(ToString::to_string).collect();
        let shown = shown.join(", ");
        let source = format!("{}; METADATA (Requires-Dist: torch) of the PyPI wheels of {key} {shown}", row.source);
        let edited = set_list(text, "release", at, key, &all);
        if let Some(text) = edited.and_then(|text| set_string(&text, "release", at, "source", &source)) {
            let what = format!("{key} {shown} belongs to torch {}", row.version);
            update.changes.push(Change { file: path.clone(), what });
            update.files.insert(path.clone(), text);
        }
    }
}

/// A CUDA that a new build was made with and that the matrix has not seen. Its drivers are not on the index, and stay
/// unknown.
fn new_cuda(
    matrix: &Matrix,
    cuda: Cuda,
    release: Option<&CudaRelease>,
    moment: &Moment,
    update: &mut Update,
) -> Result<(), Failure> {
    let path = format!("cuda/{cuda}.toml");
    let known = matrix.cuda()?.get(cuda);
    let missing = release.filter(|release| {
        let listed = known.is_some_and(|file| file.releases.iter().any(|row| row.version == **release));
        let shown = format!("version = \"{release}\"");
        !listed && update.files.get(&path).is_none_or(|text| !text.contains(&shown))
    });
    let text = update.files.get(&path).map(String::as_str).or_else(|| matrix.files().text(&path));
    if text.is_some() && missing.is_none() {
        return Ok(());
    }
    let source = "PyPI project cuda-toolkit";
    let top = Block::top().string("cuda", &cuda.to_string()).string("source", source);
    let top = top.string("retrieved", &moment.today);
    let text = text.unwrap_or(top.text()).to_owned();
    let first: Option<CudaRelease> = format!("{cuda}.0").parse().ok();
    let Some(release) = missing.or(first.as_ref()) else { return Ok(()) };
    let row = Block::row("release", 1).string("version", &release.to_string()).string("source", source);
    let row = row.string("retrieved", &moment.today);
    let later = |known: &str| known.parse::<CudaRelease>().is_ok_and(|known| known > *release);
    update.files.insert(path.clone(), insert_row(&text, "release", "version", later, &row));
    update.changes.push(Change { file: path, what: format!("CUDA {release}, its driver unknown") });
    Ok(())
}
