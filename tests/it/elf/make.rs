//! Makes ELF files: a shared library with what a test needs, through the writing side of crate `object`.

use gpulock::elf::Object;
use object::Endianness;
use object::elf;
use object::write::StringId;
use object::write::elf::{FileHeader, ProgramHeader, SectionHeader, Sym, Verdef, Vernaux, Verneed, Writer};

/// A symbol to define or, without a section, to ask for.
#[derive(Clone)]
pub struct Symbol {
    pub name: &'static str,
    pub defined: bool,
    pub weak: bool,
    /// Version number; `HIDDEN` may be added.
    pub version: u16,
    /// Where it is, if not at the start of the data.
    pub address: Option<u64>,
    pub size: u64,
}

pub const HIDDEN: u16 = 0x8000;

impl Symbol {
    pub fn defined(name: &'static str, version: u16) -> Self {
        Self { name, defined: true, weak: false, version, address: None, size: 4 }
    }

    pub fn asked(name: &'static str, version: u16) -> Self {
        Self { defined: false, ..Self::defined(name, version) }
    }
}

/// The hash table that leads to symbols.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Table {
    Gnu,
    SysV,
}

/// What is to be in a file.
#[derive(Clone)]
pub struct Library {
    pub machine: u16,
    pub soname: Option<&'static str>,
    pub needed: Vec<&'static str>,
    pub runpath: Option<&'static str>,
    pub rpath: Option<&'static str>,
    pub flags_1: u64,
    /// Versions that are defined, from number 1, which is the base.
    pub defines: Vec<&'static str>,
    /// Library, version, number.
    pub needs: Vec<(&'static str, &'static str, u16)>,
    pub symbols: Vec<Symbol>,
    /// 64 bytes to which symbols point.
    pub data: [u8; 64],
    /// Sections with data, all in one readable segment.
    pub sections: Vec<(&'static str, Vec<u8>)>,
    /// Flags of PT_GNU_STACK.
    pub stack: Option<u32>,
    pub table: Table,
    pub section_headers: bool,
    pub executable: bool,
}

impl Default for Library {
    fn default() -> Self {
        Self {
            machine: elf::EM_X86_64,
            soname: Some("libx.so.1"),
            needed: Vec::new(),
            runpath: None,
            rpath: None,
            flags_1: 0,
            defines: Vec::new(),
            needs: Vec::new(),
            symbols: Vec::new(),
            data: [0; 64],
            sections: Vec::new(),
            stack: Some(elf::PF_R | elf::PF_W),
            table: Table::Gnu,
            section_headers: true,
            executable: false,
        }
    }
}

impl Library {
    /// The file: one segment from its first byte to its last, so that addresses are places.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = Writer::new(Endianness::Little, true, &mut out);
        // Undefined symbols come first, defined ones in the order of their buckets.
        let mut symbols = self.symbols.clone();
        let defined = symbols.iter().filter(|symbol| symbol.defined).count() as u32;
        let buckets = defined.max(1);
        let gnu = |symbol: &Symbol| elf::gnu_hash(symbol.name.as_bytes());
        symbols.sort_by_key(|symbol| (symbol.defined, if symbol.defined { gnu(symbol) % buckets } else { 0 }));

        writer.reserve_file_header();
        let segments = 2 + u32::from(self.stack.is_some());
        writer.reserve_program_headers(segments);
        let soname = self.soname.map(|text| writer.add_dynamic_string(text.as_bytes()));
        let texts = |writer: &mut Writer<'_>, texts: &[&'static str]| -> Vec<StringId> {
            texts.iter().map(|text| writer.add_dynamic_string(text.as_bytes())).collect()
        };
        let needed = texts(&mut writer, &self.needed);
        let runpath = self.runpath.map(|text| writer.add_dynamic_string(text.as_bytes()));
        let rpath = self.rpath.map(|text| writer.add_dynamic_string(text.as_bytes()));
        let defines = texts(&mut writer, &self.defines);
        let mut needs = Vec::new();
        for (library, version, number) in &self.needs {
            let ids = (writer.add_dynamic_string(library.as_bytes()), writer.add_dynamic_string(version.as_bytes()));
            needs.push((ids, *version, *number));
        }
        let names: Vec<StringId> =
            symbols.iter().map(|symbol| writer.add_dynamic_string(symbol.name.as_bytes())).collect();
        writer.reserve_null_dynamic_symbol_index();
        for _ in &symbols {
            writer.reserve_dynamic_symbol_index();
        }
        let dynsym = writer.reserve_dynsym() as u64;
        writer.require_dynstr();
        let dynstr = writer.reserve_dynstr() as u64;
        let strsz = writer.dynstr_len() as u64;
        let first = symbols.len() as u32 - defined;
        let hash = match self.table {
            Table::Gnu => writer.reserve_gnu_hash(1, buckets, defined) as u64,
            Table::SysV => writer.reserve_hash(buckets, symbols.len() as u32 + 1) as u64,
        };
        let versioned = !self.defines.is_empty() || !self.needs.is_empty();
        let versym = if versioned { writer.reserve_gnu_versym() as u64 } else { 0 };
        let verdef = writer.reserve_gnu_verdef(self.defines.len(), self.defines.len()) as u64;
        let verneed = writer.reserve_gnu_verneed(needs.len(), needs.len()) as u64;
        let data = writer.reserve(self.data.len(), 64) as u64;
        let mut places = Vec::new();
        for (_, bytes) in &self.sections {
            places.push(writer.reserve(bytes.len(), 64) as u64);
        }

        let mut dynamics: Vec<(i64, Value)> = Vec::new();
        dynamics.extend(needed.iter().map(|id| (elf::DT_NEEDED, Value::Text(*id))));
        let texts = [(elf::DT_SONAME, soname), (elf::DT_RPATH, rpath), (elf::DT_RUNPATH, runpath)];
        dynamics.extend(texts.into_iter().filter_map(|(tag, id)| Some((tag, Value::Text(id?)))));
        let numbers = [
            (elf::DT_SYMTAB, dynsym),
            (elf::DT_STRTAB, dynstr),
            (elf::DT_STRSZ, strsz),
            (elf::DT_SYMENT, 24),
            (elf::DT_GNU_HASH, if self.table == Table::Gnu { hash } else { 0 }),
            (elf::DT_HASH, if self.table == Table::SysV { hash } else { 0 }),
            (elf::DT_VERSYM, versym),
            (elf::DT_VERDEF, if defines.is_empty() { 0 } else { verdef }),
            (elf::DT_VERDEFNUM, defines.len() as u64),
            (elf::DT_VERNEED, if needs.is_empty() { 0 } else { verneed }),
            (elf::DT_VERNEEDNUM, needs.len() as u64),
            (elf::DT_FLAGS_1, self.flags_1),
        ];
        dynamics.extend(numbers.into_iter().filter(|(_, value)| *value != 0).map(|(tag, n)| (tag, Value::Number(n))));
        dynamics.push((elf::DT_NULL, Value::Number(0)));
        let dynamic = writer.reserve_dynamic(dynamics.len()) as u64;

        let mut headers = Vec::new();
        if self.section_headers {
            writer.reserve_null_section_index();
            for (name, _) in &self.sections {
                writer.reserve_section_index();
                headers.push(writer.add_section_name(name.as_bytes()));
            }
            writer.reserve_shstrtab_section_index();
            writer.reserve_shstrtab();
            writer.reserve_section_headers();
        }
        let size = writer.reserved_len() as u64;

        let e_type = if self.executable { elf::ET_EXEC } else { elf::ET_DYN };
        let header = FileHeader { os_abi: 0, abi_version: 0, e_type, e_machine: self.machine, e_entry: 0, e_flags: 0 };
        writer.write_file_header(&header).unwrap();
        writer.write_align_program_headers();
        let mut segment = |p_type: u32, p_flags: u32, at: u64, size: u64| {
            let header = ProgramHeader {
                p_type,
                p_flags,
                p_offset: at,
                p_vaddr: at,
                p_paddr: at,
                p_filesz: size,
                p_memsz: size,
                p_align: 64,
            };
            writer.write_program_header(&header);
        };
        segment(elf::PT_LOAD, elf::PF_R | elf::PF_X, 0, size);
        segment(elf::PT_DYNAMIC, elf::PF_R, dynamic, dynamics.len() as u64 * 16);
        if let Some(flags) = self.stack {
            segment(elf::PT_GNU_STACK, flags, 0, 0);
        }
        writer.write_null_dynamic_symbol();
        for (symbol, name) in symbols.iter().zip(&names) {
            let binding = if symbol.weak { elf::STB_WEAK } else { elf::STB_GLOBAL };
            writer.write_dynamic_symbol(&Sym {
                name: Some(*name),
                section: None,
                st_info: (binding << 4) | elf::STT_OBJECT,
                st_other: 0,
                st_shndx: if symbol.defined { 1 } else { 0 },
                st_value: if symbol.defined { symbol.address.unwrap_or(data) } else { 0 },
                st_size: symbol.size,
            });
        }
        writer.write_dynstr();
        let hashes: Vec<u32> = symbols.iter().filter(|symbol| symbol.defined).map(gnu).collect();
        match self.table {
            Table::Gnu => writer.write_gnu_hash(first + 1, 6, 1, buckets, defined, |i| hashes[i as usize]),
            Table::SysV => writer.write_hash(buckets, symbols.len() as u32 + 1, |i| {
                let symbol = symbols.get((i as usize).wrapping_sub(1));
                symbol.filter(|symbol| symbol.defined).map(|symbol| elf::hash(symbol.name.as_bytes()))
            }),
        }
        if versioned {
            writer.write_null_gnu_versym();
            symbols.iter().for_each(|symbol| writer.write_gnu_versym(symbol.version));
        }
        if !defines.is_empty() {
            writer.write_align_gnu_verdef();
        }
        for (i, name) in defines.iter().enumerate() {
            let flags = if i == 0 { elf::VER_FLG_BASE } else { 0 };
            writer.write_gnu_verdef(&Verdef { version: 1, flags, index: i as u16 + 1, aux_count: 1, name: *name });
        }
        if !needs.is_empty() {
            writer.write_align_gnu_verneed();
        }
        for ((library, version), _, number) in &needs {
            writer.write_gnu_verneed(&Verneed { version: 1, aux_count: 1, file: *library });
            writer.write_gnu_vernaux(&Vernaux { flags: 0, index: *number, name: *version });
        }
        writer.pad_until(data as usize);
        writer.write(&self.data);
        for ((_, bytes), place) in self.sections.iter().zip(&places) {
            writer.pad_until(*place as usize);
            writer.write(bytes);
        }
        writer.write_align_dynamic();
        for (tag, value) in &dynamics {
            match value {
                Value::Text(id) => writer.write_dynamic_string(*tag, *id).unwrap(),
                Value::Number(number) => writer.write_dynamic(*tag, *number).unwrap(),
            }
        }
        if self.section_headers {
            writer.write_shstrtab();
            writer.write_null_section_header();
            for ((name, place), (_, bytes)) in headers.iter().zip(&places).zip(&self.sections) {
                writer.write_section_header(&SectionHeader {
                    name: Some(*name),
                    sh_type: elf::SHT_PROGBITS,
                    sh_flags: u64::from(elf::SHF_ALLOC),
                    sh_addr: *place,
                    sh_offset: *place,
                    sh_size: bytes.len() as u64,
                    sh_link: 0,
                    sh_info: 0,
                    sh_addralign: 64,
                    sh_entsize: 0,
                });
            }
            writer.write_shstrtab_section_header();
        }
        out
    }

    /// What is read of it.
    pub fn read(&self) -> Object {
        Object::read(&self.bytes().as_slice()).unwrap()
    }
}

enum Value {
    Text(StringId),
    Number(u64),
}

/// Puts numbers in place of those in a file.
pub fn patch(bytes: &mut [u8], at: usize, new: &[u8]) {
    bytes[at..at + new.len()].copy_from_slice(new);
}
