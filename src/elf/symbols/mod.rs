//! The symbols of a file as the dynamic loader sees them: what it asks for, and what it can be asked for.
//!
//! Names are kept as 64-bit hashes, since those of one environment are 40 MB of text; they are read again from the file
//! for the few that a message needs. Rules: glibc `elf/dl-lookup.c`.

mod table;

use std::hash::{BuildHasher, Hasher};
use std::ops::Range;

use super::dynamic::Strings;
use super::object::VersionNeed;
use super::read::{ReadAt, Source, Unreadable, u32_at, u64_at};
use super::versions::{Number, Versions};

/// Bytes of one symbol.
pub(super) const RECORD: usize = 24;
/// The bit of a version number that says "only for those who ask for this version".
const HIDDEN: u16 = 0x8000;

/// What a symbol is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolKind {
    /// A function, also an indirect one.
    Function,
    /// Data.
    Object,
    /// Data of a thread.
    ThreadLocal,
    /// Not said, as is usual for what is asked for.
    Unknown,
}

/// A symbol that a file asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Import<'a> {
    /// Its number in the symbol table, for [`Symbols::name`].
    pub symbol: u32,
    /// Hash of its name; the same name has the same hash in every file.
    pub name: u64,
    /// The version that it must have, and the library that was to have it when this file was linked.
    pub version: Option<&'a VersionNeed>,
    /// Whether the loader goes on without it.
    pub weak: bool,
    /// What it is to be.
    pub kind: SymbolKind,
}

/// A symbol that a file can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Definition<'a> {
    /// Its number in the symbol table, for [`Symbols::name`].
    pub symbol: u32,
    /// Hash of its name.
    pub name: u64,
    /// Its version.
    pub version: Option<&'a str>,
    /// Whether only those find it who ask for its version.
    pub hidden: bool,
    /// Whether it is weak.
    pub weak: bool,
    /// What it is.
    pub kind: SymbolKind,
}

/// What the loader finds when it looks into one file for a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// It is there.
    Yes,
    /// The name is there, with another version only.
    OtherVersion,
    /// The name is not there.
    No,
}

/// The dynamic symbols of a file.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    /// In the order of the table.
    imports: Vec<Entry>,
    /// Sorted by hash.
    definitions: Vec<Entry>,
    versions: Versions,
    /// Whether symbols have version numbers at all.
    versioned: bool,
    /// Where table and names are in the file.
    table: u64,
    strings: Strings,
}

/// 16 bytes a symbol.
#[derive(Debug, Clone, Copy)]
struct Entry {
    name: u64,
    symbol: u32,
    /// Version number with its hidden bit.
    version: u16,
    kind: SymbolKind,
    weak: bool,
}

/// Hash of a symbol's name, as [`Import::name`] and [`Definition::name`] have it.
pub fn hash_name(name: &[u8]) -> u64 {
    let mut hasher = foldhash::quality::FixedState::with_seed(0).build_hasher();
    hasher.write(name);
    hasher.finish()
}

impl Symbols {
    /// What the file asks for, in the order of its symbol table.
    pub fn imports(&self) -> impl ExactSizeIterator<Item = Import<'_>> {
        self.imports.iter().map(|entry| Import {
            symbol: entry.symbol,
            name: entry.name,
            version: match self.versions.of(entry.version) {
                Number::Need(need) => self.versions.needs.get(need as usize),
                _ => None,
            },
            weak: entry.weak,
            kind: entry.kind,
        })
    }

    /// What the file can be asked for, in the order of the hashes.
    pub fn definitions(&self) -> impl ExactSizeIterator<Item = Definition<'_>> {
        self.definitions.iter().map(|entry| self.definition(entry))
    }

    fn definition(&self, entry: &Entry) -> Definition<'_> {
        Definition {
            symbol: entry.symbol,
            name: entry.name,
            version: self.version(entry),
            hidden: entry.version & HIDDEN != 0,
            weak: entry.weak,
            kind: entry.kind,
        }
    }

    fn version(&self, entry: &Entry) -> Option<&str> {
        match self.versions.of(entry.version) {
            Number::Definition(at) => self.versions.definitions.get(at as usize).map(String::as_str),
            Number::Need(at) => self.versions.needs.get(at as usize).map(|need| need.name.as_str()),
            Number::Nothing => None,
        }
    }

    /// All definitions of a name, one for each version.
    pub fn find(&self, name: &str) -> impl ExactSizeIterator<Item = Definition<'_>> {
        self.named(hash_name(name.as_bytes())).iter().map(|entry| self.definition(entry))
    }

    fn named(&self, name: u64) -> &[Entry] {
        let start = self.definitions.partition_point(|entry| entry.name < name);
        let count = self.definitions[start..].iter().take_while(|entry| entry.name == name).count();
        &self.definitions[start..start + count]
    }

    /// What glibc's loader finds in this file for `import` of any file.
    pub fn lookup(&self, import: &Import<'_>) -> Found {
        let named = self.named(import.name);
        if named.is_empty() {
            return Found::No;
        }
        let found = match import.version {
            // A library without versions serves everyone.
            _ if !self.versioned => true,
            // The version itself, or a visible symbol without one.
            Some(version) => named.iter().any(|entry| match self.version(entry) {
                Some(own) => own == version.name,
                None => entry.version & HIDDEN == 0,
            }),
            // Without a version: the first version of all, or the only visible one.
            None => {
                let later: Vec<_> = named.iter().filter(|entry| entry.version & !HIDDEN >= 3).collect();
                later.len() < named.len() || later.iter().filter(|entry| entry.version & HIDDEN == 0).count() == 1
            }
        };
        if found { Found::Yes } else { Found::OtherVersion }
    }

    /// The name of the symbol with that number, read from the same file again.
    ///
    /// # Errors
    /// When the file is no longer what it was.
    pub fn name(&self, file: &dyn ReadAt, symbol: u32) -> Result<String, Unreadable> {
        let source = Source::new(file);
        let record = self.record(&source, symbol)?;
        self.strings.text(&source, u32_at(&record, 0).into())
    }

    /// Where table and names are in the file: what [`name`](Self::name) reads.
    pub fn places(&self) -> [Range<u64>; 2] {
        let symbols = self.imports.iter().chain(&self.definitions).map(|entry| u64::from(entry.symbol) + 1);
        let end = self.table.saturating_add(symbols.max().unwrap_or(0).saturating_mul(RECORD as u64));
        [self.table..end, self.strings.offset..self.strings.end]
    }

    /// Value and size of the symbol with that number.
    pub(super) fn value(&self, source: &Source<'_>, symbol: u32) -> Result<(u64, u64), Unreadable> {
        let record = self.record(source, symbol)?;
        Ok((u64_at(&record, 8), u64_at(&record, 16)))
    }

    fn record(&self, source: &Source<'_>, symbol: u32) -> Result<[u8; RECORD], Unreadable> {
        let mut record = [0; RECORD];
        let at = self.table.saturating_add(u64::from(symbol) * RECORD as u64);
        source.fill(at, &mut record, "a symbol")?;
        Ok(record)
    }
}
