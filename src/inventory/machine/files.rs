//! The files that a machine is described by: takes paths inside a root, gives what lies there, and remembers what was
//! given, so that exactly that can be captured.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::reading::Reading;
use crate::inventory::{FileKind, Look, Root, Unresolved, shown};

/// Texts of the kernel and of drivers are smaller, in bytes.
const LARGEST: u64 = 1 << 20;
/// A folder with more names is none of those that are looked into.
const MOST_NAMES: usize = 100_000;
/// Where a captured tree says what could not be read when it was made: a path and the reason on each line.
pub(super) const UNREAD: &str = "/gpulock/unread";

/// What was given of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Given {
    /// What was read of a regular file; only the lines that were asked for.
    File(Vec<u8>),
    /// That there is a file of which nothing was read, with its permission bits.
    Named(FileKind, u32),
    /// What a link names.
    Link(PathBuf),
    /// Why it could not be read.
    Unread(String),
}

/// The files of a machine.
pub struct Files<'r> {
    root: &'r Root,
    /// What a captured tree says could not be read when it was made, and why.
    unread: BTreeMap<String, String>,
    given: RefCell<BTreeMap<PathBuf, Given>>,
}

impl<'r> Files<'r> {
    /// Those of a root.
    pub fn of(root: &'r Root) -> Self {
        let unread = root.read(Path::new(UNREAD), LARGEST).unwrap_or_default();
        let lines = String::from_utf8_lossy(&unread).into_owned();
        let unread = lines.lines().filter_map(|line| line.split_once('\t'));
        let unread = unread.map(|(path, why)| (path.to_owned(), why.to_owned())).collect();
        Self { root, unread, given: RefCell::default() }
    }

    /// The root itself.
    pub fn root(&self) -> &'r Root {
        self.root
    }

    /// The text of a file, without what ends it.
    pub fn text(&self, path: &str) -> Reading<String> {
        self.lines(path, |_| true)
    }

    /// The text of a file, which is not remembered.
    pub fn peek(&self, path: &str) -> Reading<String> {
        self.read(path, |_| true, false)
    }

    /// The lines of a file that are asked for, which are not remembered.
    pub fn peek_lines(&self, path: &str, wanted: impl Fn(&str) -> bool) -> Reading<String> {
        self.read(path, wanted, false)
    }

    /// The lines of a file that are asked for; the others are as if they were not there.
    pub fn lines(&self, path: &str, wanted: impl Fn(&str) -> bool) -> Reading<String> {
        self.read(path, wanted, true)
    }

    fn read(&self, path: &str, wanted: impl Fn(&str) -> bool, remembered: bool) -> Reading<String> {
        match self.root.read(Path::new(path), LARGEST) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                let lines: Vec<&str> = text.lines().filter(|line| wanted(line)).collect();
                let text = lines.join("\n");
                if remembered {
                    self.note(path, Given::File(format!("{text}\n").into_bytes()));
                }
                let text = text.trim_end_matches(['\0', '\n', ' ']).to_owned();
                let fact = lines.join("; ");
                Reading::of(text, path, fact.trim_end_matches(['\0', ' ']))
            }
            Err(error) => self.failed(path, error),
        }
    }

    /// The names in a folder, sorted. Only what is looked at further is remembered.
    pub fn names(&self, path: &str) -> Reading<Vec<String>> {
        let folder = match self.root.resolve(Path::new(path)) {
            Ok(folder) => folder,
            Err(error) => return self.failed(path, error),
        };
        match self.root.entries(&folder) {
            Ok(entries) => {
                let names = entries.into_iter().take(MOST_NAMES);
                let mut names: Vec<String> = names.map(|(name, _)| shown(Path::new(&name))).collect();
                names.sort();
                self.note(path, Given::Named(FileKind::Folder, 0o755));
                let fact = format!("{} entries", names.len());
                Reading::of(names, path, &fact)
            }
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => Reading::Absent(path.to_owned()),
            Err(error) => self.failed(path, error.into()),
        }
    }

    /// What a path leads to, without opening it.
    pub fn look(&self, path: &str) -> Option<Look> {
        let look = self.root.look(&self.root.resolve(Path::new(path)).ok()?).ok()?;
        self.note(path, Given::Named(look.kind, look.mode));
        Some(look)
    }

    /// What the link at a path names, and nothing else of it.
    pub fn link(&self, path: &str) -> Option<PathBuf> {
        let path = Path::new(path);
        let folder = self.root.resolve(path.parent()?).ok()?;
        let target = self.root.read_link(&folder.join(path.file_name()?)).ok()?;
        self.note(path, Given::Link(target.clone()));
        Some(target)
    }

    /// The file without links that a path leads to, of which nothing is read.
    pub fn resolve(&self, path: &str) -> Option<PathBuf> {
        let path = Path::new(path);
        let file = self.root.resolve(path).ok()?;
        let look = self.root.look(&file).ok().filter(|look| look.kind == FileKind::File)?;
        if path.components().any(|part| part == Component::ParentDir) {
            // It leads there only over folders that are there.
            path.ancestors().for_each(|step| self.note_step(step));
        } else if file != path {
            self.note(path, Given::Link(file.clone()));
        }
        self.note(&file, Given::Named(look.kind, look.mode));
        Some(file)
    }

    /// Remembers a step of a way that goes back (`..`), in the folder in which it is.
    fn note_step(&self, step: &Path) {
        let (Some(folder), Some(name)) = (step.parent(), step.file_name()) else { return };
        let (Ok(folder), Ok(leads_to)) = (self.root.resolve(folder), self.root.resolve(step)) else { return };
        let Ok(look) = self.root.look(&leads_to) else { return };
        if folder.join(name) != leads_to {
            self.note(folder.join(name), Given::Link(leads_to.clone()));
        }
        self.note(leads_to, Given::Named(look.kind, look.mode));
    }

    /// Remembers what came from elsewhere under a path of its own.
    pub fn keep(&self, path: &str, text: &str) {
        self.note(path, Given::File(text.as_bytes().to_vec()));
    }

    /// Remembers a link that was followed.
    pub fn keep_link(&self, path: &str, target: &Path) {
        self.note(path, Given::Link(target.to_owned()));
    }

    /// Remembers that a path could not be read.
    pub fn unread(&self, path: &str, why: &str) {
        self.note(path, Given::Unread(why.to_owned()));
    }

    /// All that was given so far.
    pub(super) fn given(&self) -> BTreeMap<PathBuf, Given> {
        self.given.borrow().clone()
    }

    fn note(&self, path: impl AsRef<Path>, what: Given) {
        let mut given = self.given.borrow_mut();
        let there = given.entry(path.as_ref().to_owned()).or_insert_with(|| what.clone());
        // What was read says more than that it is there.
        if matches!(there, Given::Named(..)) {
            *there = what;
        }
    }

    fn failed<T>(&self, path: &str, error: Unresolved) -> Reading<T> {
        match (error, self.unread.get(path)) {
            (Unresolved::Missing, Some(why)) => {
                self.unread(path, why);
                Reading::unread(path, why)
            }
            (Unresolved::Missing, None) => Reading::Absent(path.to_owned()),
            (error, _) => {
                let why = match &error {
                    Unresolved::Io(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                        "permission denied".to_owned()
                    }
                    other => other.to_string(),
                };
                self.unread(path, &why);
                Reading::unread(path, &why)
            }
        }
    }
}
