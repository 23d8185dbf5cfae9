//! Takes segments and sections of notes, gives the build id and the note of a cuda-compat driver library.

use data_encoding::HEXLOWER;
use goblin::elf::note::NT_GNU_BUILD_ID;
use goblin::elf::program_header::{PT_NOTE, ProgramHeader};

use super::layout::Layout;
use super::read::{Source, Unreadable, u32_at};

/// Notes are a few hundred bytes.
const MOST_BYTES: u64 = 64 << 10;
const FORWARD_COMPAT: &str = ".note.cuda.fwd_compatibility";

/// The build id, in hexadecimal.
pub(super) fn build_id(source: &Source<'_>, segments: &[ProgramHeader]) -> Result<Option<String>, Unreadable> {
    for segment in segments.iter().filter(|segment| segment.p_type == PT_NOTE).take(16) {
        let bytes = source.bytes(segment.p_offset, segment.p_filesz.min(MOST_BYTES), "the notes")?;
        let align = if segment.p_align == 8 { 8 } else { 4 };
        let found = notes(&bytes, align).find(|note| note.kind == NT_GNU_BUILD_ID && note.owner == b"GNU\0");
        if let Some(note) = found {
            return Ok(Some(HEXLOWER.encode(note.content)));
        }
    }
    Ok(None)
}

/// The content of the note by which a driver library of a cuda-compat package says beside which drivers it runs.
pub(super) fn forward_compat(source: &Source<'_>, layout: &Layout) -> Result<Option<Vec<u8>>, Unreadable> {
    let Some(section) = layout.section(FORWARD_COMPAT) else { return Ok(None) };
    let bytes = source.bytes(section.offset, section.size.min(MOST_BYTES), FORWARD_COMPAT)?;
    Ok(notes(&bytes, 4).next().map(|note| note.content.to_vec()))
}

pub(super) struct Note<'b> {
    pub kind: u32,
    owner: &'b [u8],
    pub content: &'b [u8],
}

/// The notes in `bytes`, up to the first that does not fit.
pub(super) fn notes(bytes: &[u8], align: usize) -> impl Iterator<Item = Note<'_>> {
    const HEADER: usize = 12;
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let header = rest.get(..HEADER)?;
        let [owner, content] = [0, 4].map(|at| u32_at(header, at) as usize);
        let content_at = HEADER.checked_add(owner)?.checked_next_multiple_of(align)?;
        let note = Note {
            kind: u32_at(header, 8),
            owner: rest.get(HEADER..HEADER + owner)?,
            content: rest.get(content_at..content_at.checked_add(content)?)?,
        };
        rest = rest.get((content_at + content).checked_next_multiple_of(align)?..).unwrap_or_default();
        Some(note)
    })
}
