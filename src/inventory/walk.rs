//! All files below some folders that may be ELF: takes the folders, gives candidates by name, on all cores.
//!
//! Only names are looked at here, and what kind of thing they are, which a folder's listing mostly says without another
//! look at the disk.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::root::FileKind;
use super::{Role, Root, Trouble, TroubleKind, parallel};

/// Folders that hold no library of the subject: version control.
const SKIPPED: [&str; 1] = [".git"];
/// What the kernel makes; endless, for `/proc/self/root` is all of the machine once more.
const KERNEL: [&str; 2] = ["/proc", "/sys"];
/// Of a root filesystem besides: devices, and the root filesystems of containers.
const SKIPPED_IN_ROOT: [&str; 4] = ["/dev", "/var/lib/docker", "/var/lib/containerd", "/var/lib/containers"];

/// Whether a path lies in a file system of the kernel.
pub(super) fn is_kernels(path: &Path) -> bool {
    KERNEL.iter().any(|kernels| path.starts_with(kernels))
}

/// Where to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Start {
    /// A folder inside the root, without links.
    pub(super) folder: PathBuf,
    /// Whether it is one of installed packages, or lies in one.
    pub(super) packages: bool,
}

/// A file that may be ELF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) place: PathBuf,
    pub(super) role: Role,
    /// Whether its name alone says that it must be a library.
    pub(super) certain: bool,
    /// Whether it is a link.
    pub(super) link: bool,
}

/// What a walk finds; all in the order of paths.
#[derive(Debug, Default)]
pub(super) struct Walked {
    pub(super) candidates: Vec<Candidate>,
    /// Folders with a `pyvenv.cfg` or named `conda-meta`, `site-packages` or `dist-packages`.
    pub(super) marks: Vec<PathBuf>,
    pub(super) troubles: Vec<Trouble>,
}

/// What a file's name says: its role, and whether it is sure to be a library.
pub(super) fn judge(name: &[u8]) -> Option<(Role, bool)> {
    match name.windows(3).rposition(|part| part == b".so") {
        Some(0) | None => {}
        Some(at) => {
            let rest = &name[at + 3..];
            let number = |part: &[u8]| {
                part.first().is_some_and(u8::is_ascii_digit) && part.iter().all(u8::is_ascii_alphanumeric)
            };
            let certain = rest.is_empty() || rest[0] == b'.' && rest[1..].split(|byte| *byte == b'.').all(number);
            // `libx.so.bak` may be one; `notes.sources` is none.
            return (certain || rest[0] == b'.').then_some((Role::Library, certain));
        }
    }
    if name.is_empty() {
        return None;
    }
    // A program has no extension, or a version for one: `ptxas`, `protoc-3.13.0.0`.
    let extension = name.iter().rposition(|byte| *byte == b'.').map(|at| &name[at + 1..]);
    let program = extension.is_none_or(|extension| !extension.is_empty() && extension.iter().all(u8::is_ascii_digit));
    program.then_some((Role::Program, false))
}

/// Walks `starts`; `whole` is the root filesystem itself, in which other environments belong to the subject too.
pub(super) fn walk(root: &Root, starts: &[Start], whole: bool, threads: usize) -> Walked {
    let tree = Tree { root, starts, whole };
    let mut found = Walked::default();
    // Folders that were begun with or that a link led to, without links: each is read once.
    let mut seen = HashSet::new();
    let mut folders: Vec<Start> = starts.iter().filter(|start| seen.insert(start.folder.clone())).cloned().collect();
    let mut depth = TOP;
    while !folders.is_empty() {
        let parts = parallel::map(threads, &folders, |folder| tree.read(folder, depth));
        folders.clear();
        for mut part in parts {
            folders.append(&mut part.folders);
            folders.extend(part.linked.into_iter().filter_map(|(folder, real)| seen.insert(real).then_some(folder)));
            found.candidates.append(&mut part.found.candidates);
            found.marks.append(&mut part.found.marks);
            found.troubles.append(&mut part.found.troubles);
        }
        depth = usize::MAX;
    }
    found.candidates.sort_by(|a, b| a.place.cmp(&b.place));
    found.candidates.dedup_by(|a, b| a.place == b.place);
    found.marks.sort();
    found.marks.dedup();
    found.troubles.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// What says that a folder is a virtual environment.
const ENVIRONMENT: &str = "pyvenv.cfg";
/// Folders this far down are shared among the threads: each of `lib/python3.11/site-packages`.
const TOP: usize = 4;

struct Tree<'a> {
    root: &'a Root,
    starts: &'a [Start],
    whole: bool,
}

impl Tree<'_> {
    /// Reads a folder and those below it down to `depth`, at which folders are left for later.
    fn read(&self, start: &Start, depth: usize) -> Part {
        let mut part = Part::default();
        // Folders that are still to be read, and how far down their entries are.
        let mut rest = vec![(start.clone(), 1)];
        while let Some((at, level)) = rest.pop() {
            let entries = match self.root.entries(&at.folder) {
                Ok(entries) => entries,
                Err(error) => {
                    let why = format!("it cannot be listed: {error}");
                    part.found.troubles.push(Trouble::new(TroubleKind::Folder, at.folder, why));
                    continue;
                }
            };
            if entries.iter().any(|(name, kind)| name == ENVIRONMENT && *kind != FileKind::Folder) {
                if !self.whole && !self.is_start(&at.folder) {
                    // Another environment, which is no part of this one.
                    continue;
                }
                part.found.marks.push(at.folder.clone());
            }
            for (name, kind) in entries {
                let place = at.folder.join(&name);
                if kind != FileKind::Folder {
                    self.file(&mut part, at.packages, place, kind);
                    continue;
                }
                let folder = self.folder(&mut part, at.packages, place, name.as_bytes());
                // Other starts have their own turn.
                match folder.filter(|folder| !self.is_start(&folder.folder)) {
                    Some(folder) if level == depth => part.folders.push(folder),
                    Some(folder) => rest.push((folder, level + 1)),
                    None => {}
                }
            }
        }
        part
    }

    fn is_start(&self, folder: &Path) -> bool {
        self.starts.iter().any(|start| start.folder == folder)
    }

    /// A folder within another, marked if its name says so; `None` if it is skipped.
    fn folder(&self, part: &mut Part, within: bool, folder: PathBuf, name: &[u8]) -> Option<Start> {
        let skipped = SKIPPED.iter().any(|skipped| skipped.as_bytes() == name)
            || is_kernels(&folder)
            || self.whole && SKIPPED_IN_ROOT.iter().any(|skipped| Path::new(skipped) == folder);
        if skipped {
            return None;
        }
        let packages = matches!(name, b"site-packages" | b"dist-packages");
        if packages || name == b"conda-meta" {
            part.found.marks.push(folder.clone());
        }
        Some(Start { folder, packages: within || packages })
    }

    fn file(&self, part: &mut Part, within: bool, place: PathBuf, kind: FileKind) {
        let Some(name) = place.file_name().map(OsStr::as_bytes) else { return };
        let judged = judge(name).filter(|(role, _)| *role == Role::Library || within);
        let link = kind == FileKind::Link;
        if judged.is_none() && !(link && within && !self.whole) {
            return;
        }
        if link && !self.whole {
            // In a root filesystem, what a link leads to is reached without it.
            let real = self.root.resolve(&place).ok().filter(|real| self.root.is_folder(real));
            if let Some(real) = real {
                let folder = self.folder(part, within, place.clone(), name);
                // What lies below a start is reached without the link; what holds one is around the subject, not in it.
                let around = |start: &Start| real.starts_with(&start.folder) || start.folder.starts_with(&real);
                let reached = self.starts.iter().any(around) || is_kernels(&real);
                part.linked.extend(folder.filter(|_| !reached).map(|folder| (folder, real)));
                return;
            }
        }
        let Some((role, certain)) = judged else { return };
        if link || kind == FileKind::File {
            part.found.candidates.push(Candidate { place, role, certain, link });
        } else if certain {
            let why = format!("it is {}, not a file", kind.words());
            part.found.troubles.push(Trouble::new(TroubleKind::Library, place, why));
        }
    }
}

/// What one thread found.
#[derive(Default)]
struct Part {
    found: Walked,
    /// Folders that are still to be read.
    folders: Vec<Start>,
    /// Folders that links lead to, by the link's path, each with its path without links.
    linked: Vec<(Start, PathBuf)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (name, judged) in [
            ("libc10.so", Some((Role::Library, true))),
            ("libcudnn.so.9", Some((Role::Library, true))),
            ("_C.cpython-311-x86_64-linux-gnu.so", Some((Role::Library, true))),
            ("libx.so.24.0git", Some((Role::Library, true))),
            ("libx.so.bak", Some((Role::Library, false))),
            ("libx.so.", Some((Role::Library, false))),
            ("notes.sources", None),
            (".so", None),
            ("ptxas", Some((Role::Program, false))),
            ("protoc-3.13.0.0", Some((Role::Program, false))),
            ("module.py", None),
            ("", None),
        ] {
            assert_eq!(judge(name.as_bytes()), judged, "{name}");
        }
    }
}
