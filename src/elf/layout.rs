//! Takes the ELF header, gives the file's layout: [`Layout`] holds segments and sections, as far as they are there.

use goblin::container::{Container, Ctx, Endian};
use goblin::elf::Elf;
use goblin::elf::header::{self, Header};
use goblin::elf::program_header::{self, PF_X, PT_LOAD, ProgramHeader};
use goblin::elf::section_header::{SHN_XINDEX, SHT_NOBITS, SectionHeader};

use super::read::{Problem, Source, Unreadable};

pub(super) const CTX: Ctx = Ctx { container: Container::Big, le: Endian::Little };
const HEADER: usize = header::header64::SIZEOF_EHDR;
const PROGRAM_HEADER: u64 = program_header::program_header64::SIZEOF_PHDR as u64;
pub(super) const SECTION_HEADER: u64 = 64;
/// Real files have about ten, and every look for an address goes through them.
const MOST_SEGMENTS: u64 = 1024;

/// Where things are in a file.
pub(super) struct Layout {
    /// `e_machine`.
    pub machine: u16,
    /// `e_type`.
    pub kind: u16,
    /// Segments, in order.
    pub segments: Vec<ProgramHeader>,
    /// Sections that are of interest, in the order of their places; no two overlap.
    pub sections: Vec<Section>,
    /// Whether there are section headers at all: without them nobody says where GPU code is.
    pub has_sections: bool,
    /// What is wrong with it, where the loader does not care.
    pub damaged: Vec<Unreadable>,
}

/// A section that has bytes in the file.
pub(super) struct Section {
    pub name: &'static str,
    pub offset: u64,
    pub size: u64,
}

/// The sections that are of interest.
const SECTIONS: [&str; 9] = [
    ".nv_fatbin",
    "__nv_relfatbin",
    ".nvFatBinSegment",
    ".cask_resource",
    ".rodata",
    ".lrodata",
    ".data",
    ".ldata",
    ".note.cuda.fwd_compatibility",
];

impl Layout {
    pub fn read(source: &Source<'_>) -> Result<Self, Unreadable> {
        let header = header(source)?;
        let mut damaged = Vec::new();
        let segments = segments(source, &header, header.e_phnum.into(), MOST_SEGMENTS)?;
        for segment in segments.iter().filter(|segment| segment.p_type == PT_LOAD) {
            if segment.p_offset.checked_add(segment.p_filesz).is_none_or(|end| end > source.len) {
                let what = format!("a segment of {} bytes lies beyond the file's {}", segment.p_filesz, source.len);
                damaged.push(Unreadable { problem: Problem::CutShort, offset: segment.p_offset, what });
            }
        }
        let mut sections = sections(source, &header).unwrap_or_else(|problem| {
            damaged.push(problem);
            Vec::new()
        });
        damaged.extend(separate(&mut sections));
        Ok(Self {
            machine: header.e_machine,
            kind: header.e_type,
            segments,
            has_sections: header.e_shoff != 0,
            sections,
            damaged,
        })
    }

    /// Where in the file the byte at `address` is, and how many of its segment follow.
    pub fn place(&self, address: u64) -> Option<(u64, u64)> {
        self.segments.iter().filter(|segment| segment.p_type == PT_LOAD).find_map(|segment| {
            let inside = address.checked_sub(segment.p_vaddr).filter(|inside| *inside < segment.p_filesz)?;
            Some((segment.p_offset.checked_add(inside)?, segment.p_filesz - inside))
        })
    }

    /// The address that the byte at `offset` of the file gets, before relocation.
    pub fn address(&self, offset: u64) -> Option<u64> {
        self.segments.iter().filter(|segment| segment.p_type == PT_LOAD).find_map(|segment| {
            let inside = offset.checked_sub(segment.p_offset).filter(|inside| *inside < segment.p_filesz)?;
            segment.p_vaddr.checked_add(inside)
        })
    }

    /// Address and size of each segment with code.
    pub fn code(&self) -> impl Iterator<Item = (u64, u64)> {
        let code = self.segments.iter().filter(|segment| segment.p_type == PT_LOAD && segment.p_flags & PF_X != 0);
        code.map(|segment| (segment.p_vaddr, segment.p_filesz))
    }

    /// Whether an address belongs to code.
    pub fn is_code(&self, address: u64) -> bool {
        self.code().any(|(start, size)| address.checked_sub(start).is_some_and(|inside| inside < size))
    }

    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }
}

/// The ELF header of a file of the kind that is read.
pub(super) fn header(source: &Source<'_>) -> Result<Header, Unreadable> {
    let mut bytes = [0; HEADER];
    let count = source.some(0, &mut bytes)?;
    if count < 4 || bytes[..4] != *header::ELFMAG {
        let what = if source.len == 0 { "the file is empty" } else { "not an ELF file" };
        return Err(Unreadable { problem: Problem::NotElf, offset: 0, what: what.into() });
    }
    let (class, order) = (bytes[header::EI_CLASS], bytes[header::EI_DATA]);
    let unsupported = |what: String| Unreadable { problem: Problem::Unsupported, offset: 4, what };
    if count > header::EI_DATA && (class, order) != (header::ELFCLASS64, header::ELFDATA2LSB) {
        let bits = match class {
            header::ELFCLASS32 => "32-bit".into(),
            header::ELFCLASS64 => "64-bit".into(),
            other => format!("class {other}"),
        };
        let order = match order {
            header::ELFDATA2LSB => "little-endian".into(),
            header::ELFDATA2MSB => "big-endian".into(),
            other => format!("byte order {other}"),
        };
        return Err(unsupported(format!("a {bits} {order} ELF file; 64-bit little-endian ones are read")));
    }
    if count < HEADER {
        return Err(Unreadable::damaged(0, format!("the file's {count} bytes end inside the ELF header")));
    }
    Elf::parse_header(&bytes).map_err(|error| Unreadable::damaged(0, error.to_string()))
}

/// `count` program headers, of which there are `most` in such a file.
pub(super) fn segments(
    source: &Source<'_>,
    header: &Header,
    count: u64,
    most: u64,
) -> Result<Vec<ProgramHeader>, Unreadable> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if u64::from(header.e_phentsize) != PROGRAM_HEADER {
        let what = format!("program headers of {} bytes each, not {PROGRAM_HEADER}", header.e_phentsize);
        return Err(Unreadable::damaged(54, what));
    }
    if count > most {
        return Err(Unreadable::damaged(56, format!("{count} program headers: no such file has that many")));
    }
    let bytes = source.bytes(header.e_phoff, count * PROGRAM_HEADER, "the program header table")?;
    ProgramHeader::parse(&bytes, 0, count as usize, CTX)
        .map_err(|error| Unreadable::damaged(header.e_phoff, error.to_string()))
}

fn sections(source: &Source<'_>, header: &Header) -> Result<Vec<Section>, Unreadable> {
    let at = header.e_shoff;
    if at == 0 {
        return Ok(Vec::new());
    }
    if u64::from(header.e_shentsize) != SECTION_HEADER {
        let what = format!("section headers of {} bytes each, not {SECTION_HEADER}", header.e_shentsize);
        return Err(Unreadable::damaged(58, what));
    }
    let parse = |bytes: &[u8]| {
        SectionHeader::parse_from(bytes, 0, bytes.len() / SECTION_HEADER as usize, CTX)
            .map_err(|error| Unreadable::damaged(at, error.to_string()))
    };
    let mut count = u64::from(header.e_shnum);
    let mut names = u64::from(header.e_shstrndx);
    // With 65,280 sections or more the numbers are in the first section header.
    if count == 0 || names == u64::from(SHN_XINDEX) {
        let first = parse(&source.bytes(at, SECTION_HEADER, "the first section header")?)?;
        count = if count == 0 { first[0].sh_size } else { count };
        names = if names == u64::from(SHN_XINDEX) { first[0].sh_link.into() } else { names };
    }
    let size = count.saturating_mul(SECTION_HEADER);
    let headers = parse(&source.bytes(at, size, "the section header table")?)?;
    let Some(table) = headers.get(names as usize).filter(|_| names != 0) else { return Ok(Vec::new()) };
    let text = source.bytes(table.sh_offset, table.sh_size, "the section names")?;
    let mut sections = Vec::new();
    for section in headers.iter().filter(|section| section.sh_type != SHT_NOBITS && section.sh_size > 0) {
        let rest = text.get(section.sh_name..).unwrap_or_default();
        let name =
            SECTIONS.iter().find(|name| rest.strip_prefix(name.as_bytes()).is_some_and(|r| r.first() == Some(&0)));
        if let Some(name) = name {
            sections.push(Section { name, offset: section.sh_offset, size: section.sh_size });
        }
    }
    Ok(sections)
}

/// Puts sections in the order of their places and takes out those that begin inside another, or a million of them that
/// are all of the file would each be read; gives the first damage of that kind.
fn separate(sections: &mut Vec<Section>) -> Option<Unreadable> {
    sections.sort_by_key(|section| section.offset);
    let (mut end, mut damage) = (0, None);
    sections.retain(|section| {
        let apart = section.offset >= end;
        if apart {
            end = section.offset.saturating_add(section.size);
        } else if damage.is_none() {
            let what = format!("section {} begins inside another, which ends at {end}", section.name);
            damage = Some(Unreadable::damaged(section.offset, what));
        }
        apart
    });
    damage
}
