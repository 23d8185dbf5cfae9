//! Takes an ELF file, gives where in it the texts of its program are: [`constants`]. Names of variables, formats and
//! messages stand there, each ended by a NUL, and GPU code does not.

use std::ops::Range;

use super::layout::{Layout, Section};
use super::read::{ReadAt, Source, Unreadable};

/// The sections that hold texts.
const SECTIONS: [&str; 3] = [".rodata", ".lrodata", ".data"];
/// More bytes of constants than any library has; a file without content may claim terabytes.
const MOST: u64 = 4 << 30;

/// The bytes of a file that hold its program's texts; all of the file where it has no section headers.
///
/// # Errors
/// When it is not a 64-bit little-endian ELF file, or its tables lie outside it.
pub fn constants(file: &dyn ReadAt) -> Result<Vec<Range<u64>>, Unreadable> {
    let source = Source::new(file);
    let layout = Layout::read(&source)?;
    if let Some(damage) = layout.damaged.into_iter().next() {
        return Err(damage);
    }
    let texts = layout.sections.iter().filter(|section| SECTIONS.contains(&section.name));
    let part = |section: &Section| {
        let end = section.offset.saturating_add(section.size).min(source.len);
        section.offset.min(end)..end
    };
    let parts = match layout.has_sections {
        true => texts.map(part).collect(),
        false => std::iter::once(0..source.len).collect::<Vec<_>>(),
    };
    let size: u64 = parts.iter().map(|part| part.end - part.start).sum();
    if size > MOST {
        return Err(Unreadable::damaged(0, format!("{size} bytes of constants: no library has that many")));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::write::{Object, StandardSection};
    use object::{Architecture, BinaryFormat, Endianness};

    #[test]
    fn texts_are_found_and_code_is_not() {
        let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
        let texts = object.section_id(StandardSection::ReadOnlyData);
        object.append_section_data(texts, b"\0NCCL_DEBUG\0", 1);
        let code = object.section_id(StandardSection::Text);
        object.append_section_data(code, b"NCCL_CODE\0", 1);
        let gpu = object.add_section(Vec::new(), b".nv_fatbin".to_vec(), object::SectionKind::ReadOnlyData);
        object.append_section_data(gpu, b"NCCL_GPU\0", 1);
        let file = object.write().unwrap();
        let of = |range: &Range<u64>| file[range.start as usize..range.end as usize].to_vec();
        let all: Vec<u8> = constants(&file.as_slice()).unwrap().iter().flat_map(of).collect();
        assert_eq!(all, b"\0NCCL_DEBUG\0");
    }

    #[test]
    fn damaged_files_are_named_as_such() {
        assert!(constants(&&b""[..]).is_err());
        assert!(
            constants(&&b"version https://git-lfs.github.com/spec/v1 and more text, more than a header"[..]).is_err()
        );
        let object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
        let mut file = object.write().unwrap();
        assert!(constants(&file.as_slice()).is_ok());
        // The section headers, said to begin at the end.
        let end = (file.len() as u64).to_le_bytes();
        file[0x28..0x30].copy_from_slice(&end);
        assert!(constants(&file.as_slice()).is_err());
        file[0x28..0x30].fill(0);
        assert!(constants(&file.as_slice()).unwrap().iter().eq([&(0..file.len() as u64)]));
    }
}
