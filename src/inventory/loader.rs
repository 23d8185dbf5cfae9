//! The dynamic loader of a root: takes its files, gives where ld.so looks for libraries (ld.so(8), ldconfig(8)).

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::host::Fact;
use super::ldcache::Cache;
use super::{Root, Trouble, TroubleKind, Unresolved, shown};
use crate::diag::Evidence;
use crate::python::Platform;
use crate::version::Glibc;

/// Whose loader a root has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoaderKind {
    /// The GNU C library's.
    Glibc,
    /// musl's, which runs no CUDA library.
    Musl,
    /// None is there: what the system would provide is unknown, not missing.
    Absent,
}

/// Where the loader of a root looks.
#[derive(Debug)]
pub struct Loader {
    /// Whose loader it is.
    pub kind: LoaderKind,
    /// The loader's file, inside the root, without links.
    pub path: Option<PathBuf>,
    /// What it loads programs of.
    pub platform: Option<Platform>,
    /// The C library's version, and where it says so.
    pub glibc: Option<Fact<Glibc>>,
    /// `/etc/ld.so.cache`; absent where there is none or it cannot be read, and then ld.so goes without.
    pub cache: Option<Cache>,
    /// The folders of `/etc/ld.so.conf`, which ldconfig puts into the cache; ld.so itself never reads them.
    pub configured: Vec<PathBuf>,
    /// The folders that are looked into last, in order, as the loader's own file lists them.
    pub defaults: Vec<PathBuf>,
    /// What `$LIB` stands for: `lib/x86_64-linux-gnu`, `lib64`.
    pub lib: String,
    /// What `/etc/ld.so.preload` lists.
    pub preload: Vec<PathBuf>,
}

/// Where the psABI of a platform has the loader of the GNU C library, and where musl puts its own.
const LOADERS: [(Platform, &str, &str); 2] = [
    (Platform::LinuxX86_64, "/lib64/ld-linux-x86-64.so.2", "/lib/ld-musl-x86_64.so.1"),
    (Platform::LinuxAarch64, "/lib/ld-linux-aarch64.so.1", "/lib/ld-musl-aarch64.so.1"),
];
/// What upstream glibc is built with on these platforms, for a loader that does not say.
const DEFAULTS: [&str; 2] = ["/lib64", "/usr/lib64"];
/// What musl looks into without a file of its own (ldso/dynlink.c).
const MUSL: [&str; 3] = ["/lib", "/usr/local/lib", "/usr/lib"];
/// Where a system says what further folders there are.
const CONFIGURATION: &str = "/etc/ld.so.conf";
/// Larger ones are refused, in bytes.
const LIMIT: u64 = 64 << 20;
const TEXT_LIMIT: u64 = 1 << 20;
/// More files than any configuration includes, and more folders than any lists.
const INCLUDES: usize = 1000;
const FOLDERS: usize = 4096;

impl Loader {
    /// The folders below `glibc-hwcaps` that ld.so prefers on a processor that is new enough, the newest first.
    pub fn hwcaps(&self) -> &'static [&'static str] {
        match self.platform {
            Some(Platform::LinuxX86_64) => &["x86-64-v4", "x86-64-v3", "x86-64-v2"],
            _ => &[],
        }
    }

    /// Reads the loader of a root, and what could not be read of it.
    pub(super) fn read(root: &Root) -> (Self, Vec<Trouble>) {
        let mut troubles = Vec::new();
        let found = LOADERS.iter().find_map(|(platform, glibc, musl)| {
            let glibc = root.resolve(Path::new(glibc)).map(|path| (LoaderKind::Glibc, *platform, path));
            glibc.or_else(|_| root.resolve(Path::new(musl)).map(|path| (LoaderKind::Musl, *platform, path))).ok()
        });
        let Some((kind, platform, path)) = found else {
            let none = Self {
                kind: LoaderKind::Absent,
                path: None,
                platform: None,
                glibc: None,
                cache: None,
                configured: Vec::new(),
                defaults: Vec::new(),
                lib: String::new(),
                preload: Vec::new(),
            };
            return (none, troubles);
        };
        let mut get = |path: &str, limit: u64| match root.read(Path::new(path), limit) {
            Ok(bytes) => Some(bytes),
            Err(Unresolved::Missing) => None,
            Err(other) => {
                troubles.push(Trouble::new(TroubleKind::Loader, path.into(), format!("it cannot be read: {other}")));
                None
            }
        };
        const CACHE: &str = "/etc/ld.so.cache";
        let cache = get(CACHE, LIMIT).map(|bytes| Cache::parse(&bytes));
        let preload = get("/etc/ld.so.preload", TEXT_LIMIT).unwrap_or_default();
        let cache = match cache {
            Some(Ok(cache)) => Some(cache),
            Some(Err(why)) => {
                troubles.push(Trouble::new(TroubleKind::Loader, CACHE.into(), why));
                None
            }
            None => None,
        };
        let own = root.read(&path, LIMIT).map(|bytes| system_folders(&bytes)).unwrap_or_default();
        let defaults: Vec<PathBuf> = match kind {
            LoaderKind::Musl => MUSL.map(PathBuf::from).to_vec(),
            _ if own.is_empty() => DEFAULTS.map(PathBuf::from).to_vec(),
            _ => own,
        };
        let lib = shown(defaults[0].strip_prefix("/").unwrap_or(&defaults[0])).trim_start_matches("usr/").to_owned();
        let configured = configured(root);
        let preload = preload
            .split(|byte| byte.is_ascii_whitespace() || *byte == b':')
            .filter(|name| !name.is_empty())
            .map(|name| Path::new(OsStr::from_bytes(name)).to_owned())
            .collect();
        let glibc = if kind == LoaderKind::Glibc { glibc(root, &defaults) } else { None };
        let path = Some(path);
        (Self { kind, path, platform: Some(platform), glibc, cache, configured, defaults, lib, preload }, troubles)
    }
}

/// The version of the C library that is found first in these folders.
pub(super) fn glibc(root: &Root, folders: impl IntoIterator<Item = impl AsRef<Path>>) -> Option<Fact<Glibc>> {
    folders.into_iter().find_map(|folder| {
        let path = folder.as_ref().join("libc.so.6");
        let value = release(&root.read(&path, LIMIT).ok()?)?;
        let seen = Evidence::observed(shown(&path), format!("release version {value}"));
        Some(Fact { value, seen })
    })
}

/// The C library names itself in its text: `GNU C Library (...) stable release version 2.36.`
fn release(libc: &[u8]) -> Option<Glibc> {
    const OWN: &[u8] = b"GNU C Library";
    const BEFORE: &[u8] = b"release version ";
    let own = memchr::memmem::find(libc, OWN)?;
    let after = own + memchr::memmem::find(&libc[own..], BEFORE)? + BEFORE.len();
    let version = libc[after..].iter().copied().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').collect();
    String::from_utf8(version).ok()?.trim_end_matches('.').parse().ok()
}

/// The list of folders that is built into ld.so: `/lib64/`, `/usr/lib64/`, each with its closing zero (elf/dl-load.c,
/// `system_dirs`). Every distribution chooses its own.
fn system_folders(loader: &[u8]) -> Vec<PathBuf> {
    let is_folder = |text: &[u8]| {
        let printable = text.iter().all(|byte| byte.is_ascii_graphic());
        text.len() > 4
            && text[0] == b'/'
            && text.ends_with(b"/")
            && printable
            && text.windows(4).any(|part| part == b"/lib")
    };
    let mut run: Vec<PathBuf> = Vec::new();
    for text in loader.split(|byte| *byte == 0) {
        if is_folder(text) {
            run.push(Path::new(OsStr::from_bytes(&text[..text.len() - 1])).to_owned());
        } else if !run.is_empty() {
            break;
        }
    }
    run
}

/// The folders that ldconfig puts into the cache of a root, whether or not there is a loader in it.
pub(super) fn configured(root: &Root) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    configuration(root, Path::new(CONFIGURATION), &mut folders, &mut HashSet::new());
    folders
}

/// The folders that a file of ld.so.conf's form lists, with the files that it includes.
fn configuration(root: &Root, file: &Path, folders: &mut Vec<PathBuf>, seen: &mut HashSet<PathBuf>) {
    let Ok(path) = root.resolve(file) else { return };
    if seen.len() >= INCLUDES || !seen.insert(path.clone()) {
        return;
    }
    let Ok(bytes) = root.read(&path, TEXT_LIMIT) else { return };
    for line in bytes.split(|byte| *byte == b'\n') {
        let line = line.split(|byte| *byte == b'#').next().unwrap_or_default().trim_ascii();
        let (word, rest) = line.split_at(line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len()));
        match word {
            b"" | b"hwcap" => {}
            b"include" => {
                let patterns = rest.split(u8::is_ascii_whitespace).filter(|pattern| !pattern.is_empty());
                for pattern in patterns.map(|pattern| Path::new(OsStr::from_bytes(pattern))) {
                    // Relative to the file that includes.
                    let pattern = file.parent().unwrap_or(Path::new("/")).join(pattern);
                    for included in matching(root, &pattern) {
                        configuration(root, &included, folders, seen);
                    }
                }
            }
            _ => {
                // What follows `=` was the kind of library, until glibc 2.32.
                let folder = line.split(|byte| *byte == b'=').next().unwrap_or_default().trim_ascii_end();
                let folder = PathBuf::from(OsStr::from_bytes(folder));
                if folder.is_absolute() && folders.len() < FOLDERS && !folders.contains(&folder) {
                    folders.push(folder);
                }
            }
        }
    }
}

/// The existing paths that a shell pattern with `*` and `?` stands for, sorted.
fn matching(root: &Root, pattern: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from("/")];
    for part in pattern.components() {
        match part {
            Component::Normal(name) if name.as_bytes().iter().any(|byte| b"*?".contains(byte)) => {
                let list = |folder: &PathBuf| {
                    let names = root.list(folder).into_iter();
                    let fits = names.filter(|other| fits(name.as_bytes(), other.as_bytes()));
                    fits.map(|name| folder.join(name)).collect::<Vec<_>>()
                };
                found = found.iter().flat_map(list).take(INCLUDES).collect();
            }
            Component::Normal(name) => found.iter_mut().for_each(|path| path.push(name)),
            Component::ParentDir => found.iter_mut().for_each(|path| path.push("..")),
            _ => {}
        }
    }
    found
}

/// Whether a shell pattern fits a name; a leading dot is fitted by a dot only.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    if name.first() == Some(&b'.') && pattern.first() != Some(&b'.') {
        return false;
    }
    let (mut p, mut n) = (0, 0);
    // Where the last star was, and how far it reached: the only place to go back to.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(byte) if *byte == b'?' || *byte == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, reached)) => {
                    star = Some((at, reached + 1));
                    (p, n) = (at + 1, reached + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name, yes) in [
            ("*.conf", "libc.conf", true),
            ("*.conf", ".hidden.conf", false),
            ("*.conf", "libc.conf.bak", false),
            ("a*b*c", "aXbYbZc", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*", "", true),
        ] {
            assert_eq!(fits(pattern.as_bytes(), name.as_bytes()), yes, "{pattern} {name}");
        }
    }

    #[test]
    fn folders_of_a_loader() {
        let folders = |text: &[u8]| system_folders(text).iter().map(|f| shown(f)).collect::<Vec<_>>();
        assert_eq!(folders(b"x\0\x01\0/lib64/\0/usr/lib64/\0\0\x09"), ["/lib64", "/usr/lib64"]);
        assert_eq!(folders(b"/var/tmp\0/usr/lib/\0nothing\0/lib/\0"), ["/usr/lib"]);
        assert_eq!(folders(b""), [""; 0]);
    }
}
