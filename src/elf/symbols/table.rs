//! Reads the symbol table of a file: how many symbols there are, what the loader takes each for, and the hashes of their
//! names.

use goblin::elf::section_header::SHN_ABS;
use goblin::elf::sym::{
    STB_GLOBAL, STB_GNU_UNIQUE, STB_WEAK, STT_COMMON, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, STT_OBJECT, STT_TLS,
    STV_DEFAULT, STV_PROTECTED,
};

use super::{Entry, RECORD, SymbolKind, Symbols, hash_name};
use crate::elf::dynamic::{Dynamic, Strings};
use crate::elf::read::{Source, Unreadable, u16_at, u32_at, u64_at};
use crate::elf::versions::Versions;

/// Symbols that are read at a time.
const BATCH: usize = 2048;
/// Bytes of names that are read at a time, and what a name may reach beyond.
const NAMES: usize = 256 << 10;
const BEYOND: usize = 16 << 10;
/// The largest libraries that are known have a twentieth of that.
const MOST_SYMBOLS: u64 = 4 << 20;
/// Versions of one name: glibc has seven of some. With more, each lookup of that name would take as long as the table is.
const MOST_NAMESAKES: usize = 256;
/// Relocations that are read to count symbols, in bytes; the largest tables that are known have a twentieth.
const MOST_RELOCATIONS: u64 = 1 << 30;
/// Names of a table may overlap, but not so that they are more than this together.
const MOST_NAMES: usize = 1 << 30;

impl Symbols {
    pub(in crate::elf) fn read(
        source: &Source<'_>,
        dynamic: &Dynamic,
        versions: Versions,
        damaged: &mut Vec<Unreadable>,
    ) -> Self {
        let Some((table, rest)) = dynamic.symbols else { return Self { versions, ..Self::default() } };
        let versioned = dynamic.versions.is_some();
        let mut symbols = Self { versions, versioned, table, strings: dynamic.strings, ..Self::default() };
        if let Err(problem) = symbols.read_table(source, dynamic, rest) {
            // Half of them would look like missing symbols.
            (symbols.imports, symbols.definitions) = (Vec::new(), Vec::new());
            damaged.push(problem);
        }
        symbols
    }

    fn read_table(&mut self, source: &Source<'_>, dynamic: &Dynamic, rest: u64) -> Result<(), Unreadable> {
        let Count { all, first } = count(source, dynamic)?;
        let rest = rest.min(source.len.saturating_sub(self.table));
        let beyond = all > rest / RECORD as u64;
        if beyond || all > MOST_SYMBOLS {
            let limit = if beyond { "its segment has no room for them" } else { "no library has that many" };
            return Err(Unreadable::damaged(self.table, format!("{all} symbols: {limit}")));
        }
        let (mut records, mut numbers) = (vec![0; BATCH * RECORD], vec![0; BATCH * 2]);
        // Where the names of imports and definitions are, until they are hashes.
        let (mut imported, mut defined) = (Vec::new(), Vec::new());
        let mut at = 0;
        while at < all {
            let count = (all - at).min(BATCH as u64) as usize;
            let records = &mut records[..count * RECORD];
            source.fill(self.table + at * RECORD as u64, records, "the symbol table")?;
            let numbers = &mut numbers[..count * 2];
            match dynamic.versions {
                Some((offset, _)) => source.fill(offset.saturating_add(at * 2), numbers, "the version table")?,
                None => numbers.fill(0),
            }
            for (i, record) in records.chunks_exact(RECORD).enumerate() {
                let symbol = at + i as u64;
                let Some(what) = Seen::of(record, symbol >= first) else { continue };
                let entry = Entry {
                    name: 0,
                    symbol: symbol as u32,
                    version: u16_at(numbers, i * 2),
                    kind: kind(record[4] & 0xf),
                    weak: record[4] >> 4 == STB_WEAK,
                };
                let (entries, names) = match what {
                    Seen::Import => (&mut self.imports, &mut imported),
                    Seen::Definition => (&mut self.definitions, &mut defined),
                };
                entries.push(entry);
                names.push(u32_at(record, 0));
            }
            at += count as u64;
        }
        // Of the names, each part of the string table is read once for both.
        let mut names = imported;
        names.append(&mut defined);
        let hashes = hash_names(source, self.strings, &names)?;
        let (imports, definitions) = hashes.split_at(self.imports.len());
        self.imports.iter_mut().zip(imports).for_each(|(entry, hash)| entry.name = *hash);
        self.definitions.iter_mut().zip(definitions).for_each(|(entry, hash)| entry.name = *hash);
        self.definitions.sort_unstable_by_key(|entry| (entry.name, entry.symbol));
        let mut namesakes = self.definitions.chunk_by(|a, b| a.name == b.name);
        if let Some(many) = namesakes.find(|same| same.len() > MOST_NAMESAKES) {
            let what = format!("{} definitions of one name: no library has that many", many.len());
            return Err(Unreadable::damaged(self.table, what));
        }
        self.imports.shrink_to_fit();
        self.definitions.shrink_to_fit();
        Ok(())
    }
}

enum Seen {
    Import,
    Definition,
}

impl Seen {
    /// What the loader takes a symbol for, if anything.
    fn of(record: &[u8], hashed: bool) -> Option<Self> {
        let (binding, kind, visibility) = (record[4] >> 4, record[4] & 0xf, record[5] & 3);
        if !matches!(binding, STB_GLOBAL | STB_WEAK | STB_GNU_UNIQUE) || u32_at(record, 0) == 0 {
            return None;
        }
        let (section, value) = (u16_at(record, 6), u64_at(record, 8));
        if section == 0 {
            // What is hidden is sought in the file itself, and not found there it is zero.
            return matches!(visibility, STV_DEFAULT | STV_PROTECTED).then_some(Self::Import);
        }
        let there = value != 0 || u32::from(section) == SHN_ABS || kind == STT_TLS;
        let known = matches!(kind, STT_NOTYPE | STT_OBJECT | STT_FUNC | STT_COMMON | STT_TLS | STT_GNU_IFUNC);
        (hashed && there && known && matches!(visibility, STV_DEFAULT | STV_PROTECTED)).then_some(Self::Definition)
    }
}

fn kind(number: u8) -> SymbolKind {
    match number {
        STT_FUNC | STT_GNU_IFUNC => SymbolKind::Function,
        STT_OBJECT | STT_COMMON => SymbolKind::Object,
        STT_TLS => SymbolKind::ThreadLocal,
        _ => SymbolKind::Unknown,
    }
}

/// How many symbols there are, and the first one that the hash table leads to.
struct Count {
    all: u64,
    first: u64,
}

/// Counts by the hash table, as nothing in the dynamic segment says it.
fn count(source: &Source<'_>, dynamic: &Dynamic) -> Result<Count, Unreadable> {
    let Some((offset, rest)) = dynamic.gnu_hash else {
        return match dynamic.hash {
            Some((offset, _)) => {
                let mut header = [0; 8];
                source.fill(offset, &mut header, "the hash table (DT_HASH)")?;
                Ok(Count { all: u32_at(&header, 4).into(), first: 0 })
            }
            None => Ok(Count { all: named_by_relocations(source, dynamic)?, first: u64::MAX }),
        };
    };
    let mut header = [0; 16];
    source.fill(offset, &mut header, "the hash table (DT_GNU_HASH)")?;
    let [buckets, first, words] = [0, 4, 8].map(|at| u64::from(u32_at(&header, at)));
    let buckets_at = offset.saturating_add(16 + words * 8);
    if 16 + words * 8 + buckets * 4 > rest || buckets > MOST_SYMBOLS {
        let limit = if buckets > MOST_SYMBOLS { "more than any library has" } else { "larger than its segment" };
        let what = format!("a hash table of {words} words and {buckets} buckets, {limit}");
        return Err(Unreadable::damaged(offset, what));
    }
    let mut last = 0;
    let mut chunk = [0; 8192];
    let mut done = 0;
    while done < buckets * 4 {
        let size = (buckets * 4 - done).min(chunk.len() as u64) as usize;
        source.fill(buckets_at + done, &mut chunk[..size], "the buckets of the hash table")?;
        last = chunk[..size].chunks_exact(4).map(|bucket| u32_at(bucket, 0)).fold(last, u32::max);
        done += size as u64;
    }
    let mut last = u64::from(last);
    if last < first {
        // The table is empty, and then the first symbol is not said either.
        return Ok(Count { all: named_by_relocations(source, dynamic)?, first: u64::MAX });
    }
    // The chain of the last bucket ends with an odd hash.
    let chain_at = buckets_at + buckets * 4;
    let end = offset.saturating_add(rest).min(source.len);
    loop {
        let at = chain_at.saturating_add((last - first) * 4);
        let size = end.saturating_sub(at).min(256) as usize / 4 * 4;
        if size == 0 || last - first > MOST_SYMBOLS {
            return Err(Unreadable::damaged(at, "the last chain of the hash table has no end"));
        }
        source.fill(at, &mut chunk[..size], "the chains of the hash table")?;
        match chunk[..size].chunks_exact(4).position(|hash| hash[0] & 1 != 0) {
            Some(odd) => return Ok(Count { all: last + odd as u64 + 1, first }),
            None => last += size as u64 / 4,
        }
    }
}

/// How many symbols there must be for the relocations that name them.
fn named_by_relocations(source: &Source<'_>, dynamic: &Dynamic) -> Result<u64, Unreadable> {
    const RELOCATION: usize = 24;
    let mut all = 0;
    let mut chunk = vec![0; RELOCATION * BATCH];
    for (offset, size) in &dynamic.relocations {
        if *size > MOST_RELOCATIONS {
            return Err(Unreadable::damaged(*offset, format!("{size} bytes of relocations: no library has that many")));
        }
        let (mut at, end) = (*offset, offset.saturating_add(*size).min(source.len));
        while end.saturating_sub(at) >= RELOCATION as u64 {
            let size = (end - at).min(chunk.len() as u64) as usize / RELOCATION * RELOCATION;
            source.fill(at, &mut chunk[..size], "the relocations")?;
            // A relocation that names no symbol names number 0.
            let highest = chunk[..size].chunks_exact(RELOCATION).map(|record| u32_at(record, 12)).max();
            all = all.max(u64::from(highest.unwrap_or(0)) + 1);
            at += size as u64;
        }
    }
    Ok(all)
}

/// Hashes of the names at these places of the string table, which is read once from its start to its end.
fn hash_names(source: &Source<'_>, strings: Strings, names: &[u32]) -> Result<Vec<u64>, Unreadable> {
    let parts = strings.len() as usize / NAMES + 1;
    // Sorted by the part of the table that a name begins in: starts[part] is where its names begin in `order`.
    let mut starts = vec![0u32; parts + 1];
    for name in names {
        if u64::from(*name) >= strings.len() {
            let what = format!("a name at {name} of a string table of {} bytes", strings.len());
            return Err(Unreadable::damaged(strings.offset, what));
        }
        starts[*name as usize / NAMES + 1] += 1;
    }
    for part in 0..parts {
        starts[part + 1] += starts[part];
    }
    let mut order = vec![0u32; names.len()];
    let mut free = starts.clone();
    for (i, name) in names.iter().enumerate() {
        let slot = &mut free[*name as usize / NAMES];
        order[*slot as usize] = i as u32;
        *slot += 1;
    }
    let mut hashes = vec![0; names.len()];
    let mut window = vec![0; (strings.len() as usize).min(NAMES + BEYOND)];
    let mut left = MOST_NAMES;
    for part in 0..parts {
        let here = &order[starts[part] as usize..starts[part + 1] as usize];
        if here.is_empty() {
            continue;
        }
        let start = (part * NAMES) as u64;
        let size = (strings.len() - start).min(window.len() as u64) as usize;
        source.fill(strings.offset + start, &mut window[..size], "the string table")?;
        for i in here {
            let at = names[*i as usize];
            let inside = &window[(u64::from(at) - start) as usize..size];
            hashes[*i as usize] = match memchr::memchr(0, inside) {
                Some(end) => {
                    left = left.checked_sub(end).ok_or_else(|| {
                        Unreadable::damaged(strings.offset, "names that overlap to more than a gigabyte")
                    })?;
                    hash_name(&inside[..end])
                }
                None => hash_name(&source.text(strings.offset + u64::from(at), strings.end, "a symbol's name")?),
            };
        }
    }
    Ok(hashes)
}
