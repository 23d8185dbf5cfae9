//! Installed Python packages: takes a site-packages folder, gives its distributions (the core metadata and "Recording
//! installed projects" specifications; egg-info as setuptools writes it).

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::{Library, Root, Trouble, TroubleKind, Unresolved, parallel, walk};
use crate::python::{PackageName, Requirement};
use crate::version::Pep440;

/// What describes a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DistributionKind {
    /// A file in `conda-meta`.
    Conda,
    /// A `.egg-info` folder or file: installed by setuptools, or by a Linux distribution.
    EggInfo,
    /// A `.dist-info` folder: installed from a wheel.
    DistInfo,
}

/// One installed package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution {
    /// What describes it.
    pub kind: DistributionKind,
    /// Normalised name.
    pub name: PackageName,
    /// Version as written.
    pub version: String,
    /// Build string, for conda: `cuda128_py311h...`. Else the label of the build in the version that the package's own
    /// `version.py` states and its metadata leaves out: `cu128`.
    pub build: Option<String>,
    /// What it requires, as written: `Requires-Dist` (PEP 508), for conda `depends`.
    pub requires: Vec<String>,
    /// The folder that its files are named from: site-packages, for conda the prefix.
    pub site: PathBuf,
    /// The folder or file that describes it.
    pub info: PathBuf,
    /// Who installed it: `pip`, `uv`, `conda`.
    pub installer: Option<String>,
    /// Where it came from, when not from an index (`direct_url.json`, PEP 610), for conda its channel.
    pub url: Option<String>,
    /// The libraries, and what may be programs, among its recorded files, in the order of the record.
    pub files: Vec<RecordedFile>,
}

/// A file that a package recorded when it was installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedFile {
    /// Where it was put, inside the root.
    pub path: PathBuf,
    /// SHA-256; absent where the record has none.
    pub sha256: Option<[u8; 32]>,
    /// Size in bytes; absent where the record has none.
    pub size: Option<u64>,
}

impl Distribution {
    /// The version, where it is one of Python's.
    pub fn pep440(&self) -> Option<Pep440> {
        self.version.parse().ok()
    }

    /// What it requires, as far as it names versions of packages.
    pub fn requirements(&self) -> impl Iterator<Item = Requirement> {
        self.requires.iter().filter_map(|text| text.parse().ok())
    }

    /// Whether it requires a package in whatever way it is installed: not by one of its extras alone.
    pub fn requires_outright(&self, name: &str) -> bool {
        let requires = |text: &String| {
            text.parse::<Requirement>().is_ok_and(|required| required.package.as_str() == name)
                && !text.contains("extra")
        };
        self.requires.iter().any(requires)
    }
}

/// Larger ones are refused, in bytes; nothing real comes near.
const METADATA_LIMIT: u64 = 16 << 20;
const RECORD_LIMIT: u64 = 64 << 20;
/// Libraries and what may be programs in one record; the largest wheels have some thousands.
const MOST_FILES: usize = 200_000;

/// Reads all packages of the folders, on `threads` threads, sorted by name within each folder.
pub(super) fn read(root: &Root, sites: &[PathBuf], threads: usize) -> (Vec<Distribution>, Vec<Trouble>) {
    let mut infos = Vec::new();
    for site in sites {
        for name in root.list(site) {
            let bytes = name.as_bytes();
            let kind = match () {
                // What pip left behind when it was interrupted.
                () if bytes.starts_with(b"~") => continue,
                () if bytes.ends_with(b".dist-info") => DistributionKind::DistInfo,
                () if bytes.ends_with(b".egg-info") => DistributionKind::EggInfo,
                () => continue,
            };
            infos.push((site, name, kind));
        }
    }
    let read = parallel::map(threads, &infos, |(site, name, kind)| one(root, site, name, *kind));
    let mut packages = Vec::new();
    let mut troubles = Vec::new();
    for (package, trouble) in read {
        packages.extend(package);
        troubles.extend(trouble);
    }
    (packages, troubles)
}

fn one(root: &Root, site: &Path, folder: &OsStr, kind: DistributionKind) -> (Option<Distribution>, Option<Trouble>) {
    let info = site.join(folder);
    let mut trouble = None;
    let mut get = |path: PathBuf, limit: u64| match root.read(&path, limit) {
        Ok(bytes) => Some(bytes),
        Err(Unresolved::Missing) => None,
        Err(other) => {
            trouble = Some(Trouble::new(TroubleKind::Package, path, format!("it cannot be read: {other}")));
            None
        }
    };
    let metadata = match kind {
        DistributionKind::EggInfo if !root.is_folder(&info) => get(info.clone(), METADATA_LIMIT),
        DistributionKind::EggInfo => get(info.join("PKG-INFO"), METADATA_LIMIT),
        _ => get(info.join("METADATA"), METADATA_LIMIT),
    };
    let headers = metadata.as_deref().map(headers).unwrap_or_default();
    // Where METADATA is lost, the folder's name still says what it was: `torch-2.8.0.dist-info`.
    let folder = folder.to_string_lossy();
    let stem = folder.trim_end_matches(".dist-info").trim_end_matches(".egg-info");
    let (stem_name, stem_version) = stem.split_once('-').unwrap_or((stem, ""));
    let header = |wanted: &str| headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    let name = header("name").unwrap_or(stem_name).parse::<PackageName>().or_else(|_| stem_name.parse());
    let Ok(name) = name else { return (None, trouble) };
    let version = header("version").unwrap_or(stem_version).to_owned();
    let requires = headers.iter().filter(|(name, _)| name == "requires-dist").map(|(_, value)| value.clone()).collect();
    let (mut files, mut installer, mut url) = (Vec::new(), None, None);
    if kind == DistributionKind::DistInfo {
        let record = info.join("RECORD");
        match get(record.clone(), RECORD_LIMIT).map(|bytes| libraries(&bytes, site)) {
            Some(Ok(found)) => files = found,
            Some(Err(why)) => trouble = Some(Trouble::new(TroubleKind::Package, record, why)),
            None => {}
        }
        // Small and optional; that they cannot be read changes nothing.
        let small = |name: &str| root.read(&info.join(name), 1 << 20).ok();
        installer = small("INSTALLER").map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned());
        url = small("direct_url.json").and_then(|bytes| direct_url(&bytes));
    } else if let Ok(bytes) = root.read(&info.join("installed-files.txt"), RECORD_LIMIT) {
        let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| is_wanted(line));
        files.extend(lines.take(MOST_FILES).map(|line| RecordedFile {
            path: joined(&info, line),
            sha256: None,
            size: None,
        }));
    }
    if metadata.is_none() && files.is_empty() {
        // An empty folder, left by an uninstallation.
        return (None, trouble);
    }
    let version_file = site.join(name.as_str().replace('-', "_")).join("version.py");
    let build = root.read(&version_file, 1 << 16).ok().and_then(|bytes| build_label(&bytes));
    let site = site.to_owned();
    (Some(Distribution { kind, name, version, build, requires, site, info, installer, url, files }), trouble)
}

/// The local label in `__version__ = '2.8.0+cu128'`.
fn build_label(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let value = text.lines().find_map(|line| line.strip_prefix("__version__")?.trim_start().strip_prefix('='))?;
    let (_, label) = value.trim().trim_matches(['\'', '"']).split_once('+')?;
    Some(label.to_owned())
}

/// The headers of METADATA, their names in lower case, up to the first empty line (RFC 822, continued lines joined).
fn headers(bytes: &[u8]) -> Vec<(String, String)> {
    let mut headers: Vec<(String, String)> = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            break;
        }
        let text = String::from_utf8_lossy(line);
        if text.starts_with([' ', '\t']) {
            if let Some((_, value)) = headers.last_mut() {
                value.push(' ');
                value.push_str(text.trim());
            }
        } else if let Some((name, value)) = text.split_once(':') {
            headers.push((name.trim().to_lowercase(), value.trim().to_owned()));
        }
    }
    headers
}

/// The URL in `direct_url.json`, without a login in it.
fn direct_url(bytes: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct DirectUrl {
        url: String,
    }
    let text = serde_json::from_slice::<DirectUrl>(bytes).ok()?.url;
    match text.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
            Some(format!("{scheme}://{host}{path}"))
        }
        None => Some(text),
    }
}

/// Whether a recorded path may name an ELF file.
fn is_wanted(path: &[u8]) -> bool {
    let name = path.iter().rposition(|byte| *byte == b'/').map_or(path, |at| &path[at + 1..]);
    walk::judge(name).is_some()
}

/// The files of RECORD that may be ELF.
///
/// # Errors
/// Why it is no RECORD.
fn libraries(bytes: &[u8], site: &Path) -> Result<Vec<RecordedFile>, String> {
    let file = |path: &[u8], hash: &[u8], size: &[u8]| {
        let hash = hash.strip_prefix(b"sha256=").map(|hash| hash.trim_ascii_end());
        let end = hash.map_or(0, |hash| hash.iter().rposition(|byte| *byte != b'=').map_or(0, |at| at + 1));
        let sha256 =
            hash.and_then(|hash| URL_SAFE_NO_PAD.decode(&hash[..end]).ok()).and_then(|hash| hash.try_into().ok());
        let size = std::str::from_utf8(size).ok().and_then(|size| size.trim().parse().ok());
        RecordedFile { path: joined(site, path), sha256, size }
    };
    let mut files = Vec::new();
    let mut add = |file: RecordedFile| {
        files.push(file);
        let few = files.len() <= MOST_FILES;
        few.then_some(()).ok_or_else(|| format!("it has more than {MOST_FILES} libraries and programs"))
    };
    if bytes.contains(&b'"') {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
        let mut row = csv::ByteRecord::new();
        while reader.read_byte_record(&mut row).map_err(|error| format!("it is not CSV: {error}"))? {
            let field = |at: usize| row.get(at).unwrap_or_default();
            if is_wanted(field(0)) {
                add(file(field(0), field(1), field(2)))?;
            }
        }
        return Ok(files);
    }
    // Without quotes each line is a row, and most of the thousands are of no interest.
    for line in bytes.split(|byte| *byte == b'\n') {
        let mut fields = line.split(|byte| *byte == b',');
        let mut field = || fields.next().unwrap_or_default();
        let path = field();
        if is_wanted(path) {
            add(file(path, field(), field()))?;
        }
    }
    Ok(files)
}

/// `site` with the relative `path` below it, `..` taken off: `site` has no links.
pub fn joined(site: &Path, path: &[u8]) -> PathBuf {
    let mut joined = site.to_owned();
    for part in Path::new(OsStr::from_bytes(path)).components() {
        match part {
            Component::RootDir => joined = PathBuf::from("/"),
            Component::ParentDir => {
                joined.pop();
            }
            Component::Normal(name) => joined.push(name),
            Component::CurDir | Component::Prefix(_) => {}
        }
    }
    joined
}

/// Fills in which package each library is from. Where several record it, the one that records its size wins, and then
/// the one that Python itself would ask.
pub(super) fn assign(libraries: &mut [Library], packages: &[Distribution]) {
    let mut owners: HashMap<&Path, Vec<(usize, Option<u64>)>> = HashMap::new();
    for (at, package) in packages.iter().enumerate() {
        for file in &package.files {
            owners.entry(&file.path).or_default().push((at, file.size));
        }
    }
    for library in libraries {
        let places = std::iter::once(&library.place).chain([&library.path]).chain(&library.others);
        let recorded = places.filter_map(|place| owners.get(place.as_path())).flatten();
        let best = recorded.max_by_key(|(at, size)| (*size == Some(library.size), packages[*at].kind));
        library.package = best.map(|(at, _)| *at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows() {
        const HASH: &str = "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU";
        let plain = format!("x/__init__.py,{HASH},1\r\nx/a.so,{HASH},5\r\n../../../bin/tool,{HASH}=,7\nx/b.so.1,,\n");
        let quoted = format!("{plain}\"x/c,\nd.so\",md5=1,x\n");
        let found = libraries(plain.as_bytes(), Path::new("/v/lib/python3.11/site-packages")).unwrap();
        let paths = |found: &[RecordedFile]| found.iter().map(|file| file.path.clone()).collect::<Vec<_>>();
        let expected =
            ["/v/lib/python3.11/site-packages/x/a.so", "/v/bin/tool", "/v/lib/python3.11/site-packages/x/b.so.1"];
        assert_eq!(paths(&found), expected.map(PathBuf::from));
        assert_eq!(found[0].sha256.unwrap()[..2], [0xe3, 0xb0]);
        assert_eq!((found[1].size, found[1].sha256, found[2].sha256), (Some(7), found[0].sha256, None));
        let more = libraries(quoted.as_bytes(), Path::new("/v/lib/python3.11/site-packages")).unwrap();
        assert_eq!(more[..3], found);
        assert_eq!(
            (more[3].path.as_path(), more[3].size),
            (Path::new("/v/lib/python3.11/site-packages/x/c,\nd.so"), None)
        );
    }

    #[test]
    fn logins_are_left_out() {
        let url = |text: &str| direct_url(format!("{{\"url\": \"{text}\", \"x\": 1}}").as_bytes()).unwrap();
        assert_eq!(url("https://me:secret@host/a@b/x.whl"), "https://host/a@b/x.whl");
        assert_eq!(url("file:///home/me/x"), "file:///home/me/x");
        assert_eq!(direct_url(b"{"), None);
    }
}
