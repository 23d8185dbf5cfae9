//! A library of the subject or of its root, and what its file says.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::file::{self, OpenFile};
use super::root::{FileKind, Look};
use super::walk::Candidate;
use super::{Root, Trouble, TroubleKind, Unresolved, parallel, shown};
use crate::elf::{Object, ReadAt, Unreadable};

/// What a file is for, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Named as a shared library: `libx.so.9`, `_C.cpython-311-x86_64-linux-gnu.so`.
    Library,
    /// A program: `ptxas`, the interpreter.
    Program,
}

/// One ELF file, or one that is named as if it were; each inode once.
#[derive(Debug)]
pub struct Library {
    /// The file itself: a path inside the root, without links.
    pub path: PathBuf,
    /// Where the subject, or whoever asked first, has it; links may lead from here to `path`. The loader takes
    /// `$ORIGIN` from the place that it loads a file from.
    pub place: PathBuf,
    /// Further places in the subject: links, hard links.
    pub others: Vec<PathBuf>,
    /// As reports name it: relative to its site-packages folder or to the subject, else `place`.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    /// Device and inode: the loader takes two names of one inode for one library.
    pub inode: (u64, u64),
    /// What it is for.
    pub role: Role,
    /// What the file says.
    pub object: Result<Object, Unreadable>,
    /// The package that installed it: an index into [`Inventory::packages`](super::Inventory::packages).
    pub package: Option<usize>,
}

/// What the GNU linker takes for a library, though it is text that names others; only a compiler meets it.
const LINKER_SCRIPTS: [&[u8]; 3] = [b"INPUT", b"GROUP", b"OUTPUT_FORMAT"];

/// Reads the candidates, on `threads` threads, each inode once; what turns out to be no ELF file is left out, unless its
/// name promises one. Names and packages are filled in later.
pub(super) fn read(root: &Root, candidates: &[Candidate], threads: usize) -> (Vec<Library>, Vec<Trouble>) {
    let looked = parallel::map(threads, candidates, |candidate| look(root, candidate));
    let mut troubles = Vec::new();
    let mut files: Vec<Found> = Vec::new();
    let mut by_inode: HashMap<(u64, u64), usize> = HashMap::new();
    for (candidate, looked) in candidates.iter().zip(looked) {
        match looked {
            Seen::None => {}
            Seen::Trouble(why) => troubles.push(Trouble::new(TroubleKind::Library, candidate.place.clone(), why)),
            Seen::File(path, look) => {
                let at = *by_inode.entry(look.inode).or_insert(files.len());
                match files.get_mut(at) {
                    None => files.push(Found { candidate, path, look, others: Vec::new() }),
                    Some(found) => {
                        // The file itself comes before links to it.
                        let mut other = candidate;
                        if found.candidate.link && !candidate.link || !found.candidate.certain && candidate.certain {
                            std::mem::swap(&mut found.candidate, &mut other);
                        }
                        found.others.push(other.place.clone());
                    }
                }
            }
        }
    }
    let size = |found: &Found<'_>| found.look.size;
    let libraries = parallel::largest_first(threads, &files, size, |found| found.read(root));
    let mut libraries: Vec<Library> = libraries.into_iter().flatten().collect();
    libraries.sort_by(|a, b| a.place.cmp(&b.place));
    (libraries, troubles)
}

/// Reads a file that was asked for by `place`.
pub(super) fn read_on_demand(root: &Root, place: &Path, path: PathBuf, look: Look) -> Library {
    let object = root.open_resolved(&path).map_err(file::unopened).and_then(|file| Object::read(&file));
    Library {
        name: shown(place),
        place: place.to_owned(),
        others: Vec::new(),
        size: look.size,
        inode: look.inode,
        role: Role::Library,
        object,
        package: None,
        path,
    }
}

/// A candidate at first sight.
enum Seen {
    /// Nothing to read: a link that leads nowhere, a file that is no program.
    None,
    Trouble(String),
    File(PathBuf, Look),
}

fn look(root: &Root, candidate: &Candidate) -> Seen {
    let path = if candidate.link {
        match root.resolve(&candidate.place) {
            Ok(path) => path,
            Err(Unresolved::Missing) => return Seen::None,
            Err(other) => return Seen::Trouble(other.to_string()),
        }
    } else {
        candidate.place.clone()
    };
    match root.look(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Seen::None,
        Err(error) => Seen::Trouble(error.to_string()),
        Ok(look) if look.kind != FileKind::File => match candidate.certain && look.kind != FileKind::Folder {
            true => Seen::Trouble("it leads to what is not a regular file".into()),
            false => Seen::None,
        },
        Ok(look) if candidate.role == Role::Program && look.mode & 0o111 == 0 => Seen::None,
        Ok(look) => Seen::File(path, look),
    }
}

struct Found<'a> {
    candidate: &'a Candidate,
    path: PathBuf,
    look: Look,
    others: Vec<PathBuf>,
}

impl Found<'_> {
    fn read(&self, root: &Root) -> Option<Library> {
        let object = match root.open_resolved(&self.path).map_err(file::unopened) {
            Ok(file) if !begins_as_elf(&file) && (!self.candidate.certain || is_linker_script(&file)) => return None,
            Ok(file) => Object::read(&file),
            // Whether it is one nobody knows, unless its name says so.
            Err(_) if !self.candidate.certain => return None,
            Err(unreadable) => Err(unreadable),
        };
        Some(Library {
            path: self.path.clone(),
            place: self.candidate.place.clone(),
            others: self.others.clone(),
            name: String::new(),
            size: self.look.size,
            inode: self.look.inode,
            role: self.candidate.role,
            object,
            package: None,
        })
    }
}

fn begins_as_elf(file: &OpenFile) -> bool {
    let mut magic = [0; 4];
    matches!(file.read_at(0, &mut magic), Ok(4)) && &magic == b"\x7fELF"
}

fn is_linker_script(file: &OpenFile) -> bool {
    let mut start = [0; 4096];
    let count = file.read_at(0, &mut start).unwrap_or(0);
    let text = start[..count].trim_ascii_start();
    // A comment may stand before what says so.
    let has = |part: &&[u8]| memchr::memmem::find(text, part).is_some();
    let begins = |begin: &&[u8]| text.starts_with(begin);
    LINKER_SCRIPTS.iter().any(begins) || text.starts_with(b"/*") && LINKER_SCRIPTS.iter().any(has)
}

/// Shares the libraries once they are complete.
pub(super) fn share(libraries: Vec<Library>) -> Vec<Arc<Library>> {
    libraries.into_iter().map(Arc::new).collect()
}
