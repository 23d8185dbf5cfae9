//! Conda environments: takes a prefix, gives its packages from `conda-meta/*.json` (conda's PrefixRecord).

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Distribution, DistributionKind, RecordedFile, Root, Trouble, TroubleKind, parallel, walk};

/// Larger ones are refused, in bytes.
const LIMIT: u64 = 32 << 20;

#[derive(Deserialize)]
struct PrefixRecord<'a> {
    name: String,
    version: String,
    build: Option<String>,
    channel: Option<String>,
    #[serde(default)]
    depends: Vec<String>,
    #[serde(borrow, default)]
    files: Vec<Cow<'a, str>>,
    #[serde(borrow, default)]
    paths_data: PathsData<'a>,
}

#[derive(Deserialize, Default)]
struct PathsData<'a> {
    #[serde(borrow, default)]
    paths: Vec<PathData<'a>>,
}

#[derive(Deserialize)]
struct PathData<'a> {
    #[serde(borrow, rename = "_path")]
    path: Cow<'a, str>,
    sha256: Option<Cow<'a, str>>,
    /// Of the file as installed, where the prefix was written into it.
    sha256_in_prefix: Option<Cow<'a, str>>,
    size_in_bytes: Option<u64>,
}

/// Reads the packages of a prefix, sorted by the names of their files.
pub(super) fn read(root: &Root, prefix: &Path, threads: usize) -> (Vec<Distribution>, Vec<Trouble>) {
    let folder = prefix.join("conda-meta");
    let names = root.list(&folder).into_iter().filter(|name| name.as_bytes().ends_with(b".json"));
    let files: Vec<PathBuf> = names.map(|name| folder.join(name)).collect();
    let mut packages = Vec::new();
    let mut troubles = Vec::new();
    let read = parallel::map(threads, &files, |file| {
        let bytes = root.read(file, LIMIT).map_err(|error| format!("it cannot be read: {error}"))?;
        package(&bytes, prefix, file)
    });
    for (file, read) in files.iter().zip(read) {
        match read {
            Ok(package) => packages.push(package),
            Err(why) => troubles.push(Trouble::new(TroubleKind::Package, file.clone(), why)),
        }
    }
    (packages, troubles)
}

fn package(bytes: &[u8], prefix: &Path, file: &Path) -> Result<Distribution, String> {
    let record: PrefixRecord<'_> =
        serde_json::from_slice(bytes).map_err(|error| format!("it does not describe a package of conda: {error}"))?;
    // Conda's names may begin with an underscore (`_libgcc_mutex`), which no Python package may.
    let name = record.name.trim_matches('_').parse().map_err(|_| format!("`{}` is not a package name", record.name))?;
    let wanted = |path: &str| walk::judge(path.rsplit('/').next().unwrap_or(path).as_bytes()).is_some();
    let inside = |path: &str| !Path::new(path).components().any(|part| matches!(part, std::path::Component::ParentDir));
    let mut files: Vec<RecordedFile> = Vec::new();
    for path in record.paths_data.paths.iter().filter(|path| wanted(&path.path) && inside(&path.path)) {
        let prefixed = path.sha256_in_prefix.is_some();
        let sha256 = path.sha256_in_prefix.as_ref().or(path.sha256.as_ref()).and_then(|text| digest(text));
        // The size is of the file in the package, which a prefix of another length changes in text files only.
        let size = path.size_in_bytes.filter(|_| !prefixed);
        files.push(RecordedFile { path: prefix.join(&*path.path), sha256, size });
    }
    if record.paths_data.paths.is_empty() {
        let paths = record.files.iter().filter(|path| wanted(path) && inside(path));
        files.extend(paths.map(|path| RecordedFile { path: prefix.join(&**path), sha256: None, size: None }));
    }
    Ok(Distribution {
        kind: DistributionKind::Conda,
        name,
        version: record.version,
        build: record.build,
        requires: record.depends,
        site: prefix.to_owned(),
        info: file.to_owned(),
        installer: Some("conda".into()),
        url: record.channel,
        files,
    })
}

/// 64 hexadecimal digits.
fn digest(text: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    let bytes = text.as_bytes();
    if bytes.len() != 64 {
        return None;
    }
    for (byte, pair) in digest.iter_mut().zip(bytes.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(digest)
}
