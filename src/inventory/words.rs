//! Words in files: takes libraries and Python files, gives the words in them that begin in a certain way. A variable
//! that a program reads stands in it as such a word.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use memchr::memmem::Finder;

use super::file::OpenFile;
use super::root::FileKind;
use super::{Root, parallel};
use crate::elf::{self, ReadAt, Unreadable};

/// Read at a time.
const CHUNK: usize = 1 << 20;
/// Longer words are none. A chunk begins so much before the last one's end.
const LONGEST: usize = 256;
/// Python files are smaller, in bytes.
const LARGEST_TEXT: u64 = 64 << 20;
/// A folder with more files is not one of packages alone.
const MOST_ENTRIES: usize = 1_000_000;

/// What to look for.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// How words begin: `NCCL_`.
    pub beginnings: BTreeSet<String>,
    /// Whole words that a library may hold: `SYMMETRIC_SIZE`, for a library that puts `NVSHMEM_` before it.
    pub whole: BTreeSet<String>,
}

/// How words stand in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// An ELF file: among its constants, ended by a NUL. What stands before it says nothing: linkers let a text be the
    /// end of another (`NCCL_BLOCKING_WAIT` of `TORCH_NCCL_BLOCKING_WAIT`), and put texts right behind other constants.
    Library,
    /// Source text: with nothing of a word before or after it.
    Source,
}

/// A file to look into.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Searched {
    /// Inside the root.
    pub path: PathBuf,
    /// How words stand in it.
    pub form: Form,
}

/// Where a word was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// The first file that has it.
    pub path: PathBuf,
    /// Whether it stands by itself in some file, not as the end of a longer word.
    pub apart: bool,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Words {
    /// Each word with where it is.
    pub found: BTreeMap<String, Mention>,
    /// Files that could not be searched, and why.
    pub unread: BTreeMap<PathBuf, String>,
}

/// Looks into all `files`, with all cores.
pub fn search(root: &Root, files: &[Searched], wanted: &Wanted) -> Words {
    let finders = Finders::of(wanted);
    let results = parallel::map(parallel::threads(None), files, |file| words_of(root, file, &finders));
    let mut all = Words::default();
    for (file, result) in files.iter().zip(results) {
        match result {
            Ok(words) => {
                let mention = |(word, apart)| (word, Mention { path: file.path.clone(), apart });
                all.merge(words.into_iter().map(mention));
            }
            Err(why) => drop(all.unread.insert(file.path.clone(), why)),
        }
    }
    all
}

impl Words {
    /// Adds what was found elsewhere; the outcome does not depend on the order.
    pub fn merge(&mut self, found: impl IntoIterator<Item = (String, Mention)>) {
        for (word, mention) in found {
            let kept = self.found.entry(word).or_insert_with(|| mention.clone());
            kept.apart |= mention.apart;
            if mention.path < kept.path {
                kept.path = mention.path;
            }
        }
    }
}

/// The Python files below a folder, sorted; links to folders are not followed.
///
/// # Errors
/// Why not all of them are known, as the end of a sentence.
pub fn python_files(root: &Root, folder: &Path) -> Result<Vec<PathBuf>, String> {
    let Ok(folder) = root.resolve(folder) else { return Ok(Vec::new()) };
    let mut files = Vec::new();
    let mut folders = vec![folder];
    let mut count = 0;
    while let Some(folder) = folders.pop() {
        let entries = root.entries(&folder).map_err(|error| error.to_string())?;
        count += entries.len();
        if count > MOST_ENTRIES {
            return Err(format!("it has more than {MOST_ENTRIES} files"));
        }
        for (name, kind) in entries {
            let path = folder.join(name);
            let python = path.extension().is_some_and(|extension| extension == "py" || extension == "pth");
            match kind {
                FileKind::Folder => folders.push(path),
                // Some installers make links of files.
                FileKind::File | FileKind::Link if python && (kind == FileKind::File || root.is_file(&path)) => {
                    files.push(path);
                }
                _ => {}
            }
        }
    }
    files.sort();
    Ok(files)
}

struct Finders {
    beginnings: Vec<Finder<'static>>,
    whole: Vec<Finder<'static>>,
}

impl Finders {
    fn of(wanted: &Wanted) -> Self {
        let finders = |texts: &BTreeSet<String>| texts.iter().map(|text| Finder::new(text).into_owned()).collect();
        Self { beginnings: finders(&wanted.beginnings), whole: finders(&wanted.whole) }
    }

    /// Adds the words of `bytes` that begin in `range`.
    fn find(&self, bytes: &[u8], range: Range<usize>, form: Form, words: &mut BTreeMap<String, bool>) {
        for finder in self.beginnings.iter().chain(self.whole.iter().filter(|_| form == Form::Library)) {
            for at in finder.find_iter(bytes).filter(|at| range.contains(at)) {
                // No further than a word may go: a megabyte of `NCCL_NCCL_` has a beginning every five bytes.
                let rest = &bytes[at..bytes.len().min(at + LONGEST + 2)];
                let length = rest.iter().position(|byte| !is_word(*byte)).unwrap_or(rest.len());
                let after = rest.get(length);
                let apart = at == 0 || !is_word(bytes[at - 1]);
                let is_one = match form {
                    Form::Library => after == Some(&0),
                    // A word that something is appended to, unlike the `NCCL_*` of a comment.
                    Form::Source if rest[length - 1] == b'_' => {
                        apart && after.is_some_and(|byte| b"\"'{%".contains(byte))
                    }
                    Form::Source => apart,
                };
                if is_one && length <= LONGEST {
                    *words.entry(String::from_utf8_lossy(&rest[..length]).into_owned()).or_default() |= apart;
                }
            }
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The words of a file, and whether each stands by itself somewhere.
fn words_of(root: &Root, file: &Searched, finders: &Finders) -> Result<BTreeMap<String, bool>, String> {
    let mut words = BTreeMap::new();
    match file.form {
        Form::Source => {
            let text = root.read(&file.path, LARGEST_TEXT).map_err(|why| why.to_string())?;
            finders.find(&text, 0..text.len(), file.form, &mut words);
        }
        Form::Library => {
            let opened = root.open(&file.path).map_err(|why| why.to_string())?;
            for range in elf::constants(&opened).map_err(|why: Unreadable| why.to_string())? {
                search_range(&opened, range, finders, &mut words).map_err(|error| error.to_string())?;
            }
        }
    }
    Ok(words)
}

/// Searches a range in chunks that overlap, so that each word is whole in one of them.
fn search_range(
    file: &OpenFile,
    range: Range<u64>,
    finders: &Finders,
    words: &mut BTreeMap<String, bool>,
) -> std::io::Result<()> {
    let mut buffer = vec![0; CHUNK.min((range.end - range.start) as usize)];
    let mut at = range.start;
    while at < range.end {
        let most = buffer.len().min((range.end - at) as usize);
        let mut count = 0;
        while count < most {
            match file.read_at(at + count as u64, &mut buffer[count..most])? {
                0 => break,
                more => count += more,
            }
        }
        let last = count < buffer.len() || at + count as u64 == range.end;
        let until = if last { count } else { count - LONGEST - 1 };
        // The first byte of a further chunk is there to show what stands before a word.
        let from = usize::from(at > range.start);
        finders.find(&buffer[..count], from..until, Form::Library, words);
        if last {
            break;
        }
        at += until as u64 - 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(bytes: &[u8], form: Form) -> Vec<String> {
        let wanted = Wanted { beginnings: ["NCCL_".to_owned()].into(), whole: ["HEAP_KIND".to_owned()].into() };
        let mut words = BTreeMap::new();
        Finders::of(&wanted).find(bytes, 0..bytes.len(), form, &mut words);
        words.into_keys().collect()
    }

    #[test]
    fn a_library_ends_its_words_with_nul() {
        let text = b"\0NCCL_A\0sixteen_in_a_rowNCCL_B\0see NCCL_C for more\0NCCL_D=1\0HEAP_KIND\0HEAP_KINDS\0NCCL_E";
        assert_eq!(words(text, Form::Library), ["HEAP_KIND", "HEAP_KINDS", "NCCL_A", "NCCL_B"]);
    }

    #[test]
    fn source_has_its_words_apart() {
        let text = b"NCCL_A # MY_NCCL_B, NCCL_C. NCCL_* 'NCCL_D_' f\"NCCL_E_{x}\" HEAP_KIND NCCL_F";
        assert_eq!(words(text, Form::Source), ["NCCL_A", "NCCL_C", "NCCL_D_", "NCCL_E_", "NCCL_F"]);
    }

    #[test]
    fn a_megabyte_in_one_word() {
        let begin = std::time::Instant::now();
        let text = "NCCL_".repeat(200_000);
        assert!(words(text.as_bytes(), Form::Source).is_empty());
        assert!(words(text.as_bytes(), Form::Library).is_empty());
        assert!(begin.elapsed().as_secs() < 10, "{:?}", begin.elapsed());
    }

    #[test]
    fn no_word_is_lost_between_chunks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("constants");
        let (mut bytes, mut expected) = (vec![b'x'; 2 * CHUNK + 3], Vec::new());
        // Around both ends of the first chunk and of what is read twice, one at each distance.
        for (i, at) in [CHUNK - LONGEST - 30, CHUNK - 40, 2 * CHUNK - 2 * LONGEST - 40].into_iter().enumerate() {
            for step in 0..4 {
                let word = format!("NCCL_{i}_{step}_{}", "Y".repeat(step));
                let at = at + 20 * step;
                bytes[at..at + word.len()].copy_from_slice(word.as_bytes());
                bytes[at + word.len()] = 0;
                expected.push(word);
            }
        }
        std::fs::write(&path, &bytes).unwrap();
        let file = OpenFile::open(&path).unwrap();
        let wanted = Wanted { beginnings: ["NCCL_".to_owned()].into(), whole: BTreeSet::new() };
        let mut words = BTreeMap::new();
        search_range(&file, 0..bytes.len() as u64, &Finders::of(&wanted), &mut words).unwrap();
        assert_eq!(words.into_keys().collect::<Vec<_>>(), expected);
    }
}
