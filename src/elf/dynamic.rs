//! Takes the dynamic segment, gives what it says: [`Dynamic`] holds texts and the places of the loader's tables.

use goblin::elf::dynamic::{
    DF_1_NODEFLIB, DT_FLAGS_1, DT_GNU_HASH, DT_HASH, DT_JMPREL, DT_NEEDED, DT_NULL, DT_PLTRELSZ, DT_RELA, DT_RELASZ,
    DT_RPATH, DT_RUNPATH, DT_SONAME, DT_STRSZ, DT_STRTAB, DT_SYMENT, DT_SYMTAB, DT_VERDEF, DT_VERDEFNUM, DT_VERNEED,
    DT_VERNEEDNUM, DT_VERSYM,
};
use goblin::elf::program_header::PT_DYNAMIC;

use super::layout::Layout;
use super::read::{Source, Unreadable, u64_at};

const ENTRY: usize = 16;
/// Real files have about 40 entries, plus one for each needed library.
const MOST_ENTRIES: u64 = 4096;
/// Folders of a run path; every needed library is sought in each of them.
const MOST_FOLDERS: usize = 1024;

/// A string table: where in the file it is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Strings {
    pub offset: u64,
    pub end: u64,
}

impl Strings {
    pub fn text(&self, source: &Source<'_>, at: u64) -> Result<String, Unreadable> {
        let offset = self.offset.checked_add(at).filter(|offset| *offset < self.end).ok_or_else(|| {
            Unreadable::damaged(self.offset, format!("a name at {at} of a string table of {} bytes", self.len()))
        })?;
        Ok(String::from_utf8_lossy(&source.text(offset, self.end, "a name in the string table")?).into_owned())
    }

    pub fn len(&self) -> u64 {
        self.end - self.offset
    }
}

/// What the dynamic segment says.
#[derive(Default)]
pub(super) struct Dynamic {
    pub soname: Option<String>,
    pub needed: Vec<String>,
    pub rpath: Vec<String>,
    pub runpath: Vec<String>,
    pub no_default_search: bool,
    pub strings: Strings,
    /// Places in the file, each with what follows it in its segment.
    pub symbols: Option<(u64, u64)>,
    pub gnu_hash: Option<(u64, u64)>,
    pub hash: Option<(u64, u64)>,
    pub versions: Option<(u64, u64)>,
    pub version_needs: Option<(u64, u64)>,
    pub version_definitions: Option<(u64, u64)>,
    /// Relocations that name symbols: place and size of each table.
    pub relocations: Vec<(u64, u64)>,
}

impl Dynamic {
    pub fn read(source: &Source<'_>, layout: &Layout) -> Result<Self, Unreadable> {
        let Some(segment) = layout.segments.iter().find(|segment| segment.p_type == PT_DYNAMIC) else {
            return Ok(Self::default());
        };
        // The loader goes by the address; a file without loadable segments has only the place.
        let offset = layout.place(segment.p_vaddr).map_or(segment.p_offset, |(offset, _)| offset);
        let count = (segment.p_filesz / ENTRY as u64).min(MOST_ENTRIES);
        let bytes = source.bytes(offset, count * ENTRY as u64, "the dynamic segment")?;
        let entries: Vec<(u64, u64)> = bytes
            .chunks_exact(ENTRY)
            .map(|entry| (u64_at(entry, 0), u64_at(entry, 8)))
            .take_while(|(tag, _)| *tag != DT_NULL)
            .collect();
        if entries.len() as u64 == MOST_ENTRIES {
            return Err(Unreadable::damaged(offset, format!("a dynamic segment of {MOST_ENTRIES} entries or more")));
        }
        // As in the loader, the last of several wins.
        let value = |wanted: u64| entries.iter().rev().find(|(tag, _)| *tag == wanted).map(|(_, value)| *value);
        let place = |tag: u64, what: &str| -> Result<Option<(u64, u64)>, Unreadable> {
            let Some(address) = value(tag) else { return Ok(None) };
            layout.place(address).map(Some).ok_or_else(|| {
                Unreadable::damaged(offset, format!("{what} is at address {address:#x}, which is in no segment"))
            })
        };
        let strings = match place(DT_STRTAB, "the string table (DT_STRTAB)")? {
            Some((offset, rest)) => {
                let end = offset.saturating_add(value(DT_STRSZ).unwrap_or(rest).min(rest)).min(source.len);
                Strings { offset: offset.min(end), end }
            }
            None => Strings::default(),
        };
        if let Some(size) = value(DT_SYMENT).filter(|size| *size != super::symbols::RECORD as u64) {
            return Err(Unreadable::damaged(offset, format!("symbols of {size} bytes each (DT_SYMENT), not 24")));
        }
        let texts = |wanted: u64| -> Result<Vec<String>, Unreadable> {
            let values = entries.iter().filter(|(tag, _)| *tag == wanted);
            values.map(|(_, at)| strings.text(source, *at)).collect()
        };
        let folders = |tag: u64| -> Result<Vec<String>, Unreadable> {
            let Some(at) = value(tag) else { return Ok(Vec::new()) };
            let text = strings.text(source, at)?;
            let folders: Vec<String> = text.split(':').map(str::to_owned).take(MOST_FOLDERS + 1).collect();
            if folders.len() > MOST_FOLDERS {
                return Err(Unreadable::damaged(offset, format!("a run path of more than {MOST_FOLDERS} folders")));
            }
            Ok(folders)
        };
        let table = |tag: u64, size: u64| {
            let (offset, rest) = layout.place(value(tag)?)?;
            Some((offset, value(size)?.min(rest)))
        };
        Ok(Self {
            soname: value(DT_SONAME).map(|at| strings.text(source, at)).transpose()?,
            needed: texts(DT_NEEDED)?,
            rpath: folders(DT_RPATH)?,
            runpath: folders(DT_RUNPATH)?,
            no_default_search: value(DT_FLAGS_1).is_some_and(|flags| flags & DF_1_NODEFLIB != 0),
            strings,
            symbols: place(DT_SYMTAB, "the symbol table (DT_SYMTAB)")?,
            gnu_hash: place(DT_GNU_HASH, "the hash table (DT_GNU_HASH)")?,
            hash: place(DT_HASH, "the hash table (DT_HASH)")?,
            versions: place(DT_VERSYM, "the version table (DT_VERSYM)")?,
            version_needs: place(DT_VERNEED, "the needed versions (DT_VERNEED)")?
                .filter(|_| value(DT_VERNEEDNUM) != Some(0)),
            version_definitions: place(DT_VERDEF, "the defined versions (DT_VERDEF)")?
                .filter(|_| value(DT_VERDEFNUM) != Some(0)),
            relocations: [table(DT_RELA, DT_RELASZ), table(DT_JMPREL, DT_PLTRELSZ)].into_iter().flatten().collect(),
        })
    }
}
