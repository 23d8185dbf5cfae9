//! Takes a core file, gives the process that left it: [`Core`] holds what it had mapped, how it ended, and where.
//!
//! The notes are those of Linux (elf.h, fs/binfmt_elf.c, core(5)). What memory holds is read only as far as the file has
//! it: systems cut cores short, and leave out what is in files anyway.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use goblin::elf::header::{EM_AARCH64, EM_X86_64, ET_CORE, Header};
use goblin::elf::program_header::{PF_X, PT_LOAD, PT_NOTE, ProgramHeader};

use super::layout::{self, SECTION_HEADER};
use super::notes::{self, notes};
use super::read::{Problem, ReadAt, Source, Unreadable, u16_at, u32_at, u64_at};

const NT_PRSTATUS: u32 = 1;
const NT_PRPSINFO: u32 = 3;
const NT_AUXV: u32 = 6;
const NT_FILE: u32 = 0x4649_4c45;
const NT_SIGINFO: u32 = 0x5349_4749;

/// Auxiliary vector: address of the program's headers.
const AT_PHDR: u64 = 3;
/// Auxiliary vector: address of the name that the program was started by, which ends the strings of the stack.
const AT_EXECFN: u64 = 31;

/// Arguments and variables of a process lie in so many bytes at most, as far as they are looked for.
const MOST_STRINGS: u64 = 256 << 10;
/// A page, from which the headers of a mapped file are read.
const PAGE: u64 = 4096;

/// A process that left a core file.
#[derive(Debug, Default)]
pub struct Core {
    /// Its number.
    pub pid: u32,
    /// The name of its program, of 15 bytes at most.
    pub name: String,
    /// The signal that ended it; 0 for a core that was taken of a process that went on.
    pub signal: i32,
    /// The instruction at which the thread that died was, where the processor is one that is known.
    pub instruction: Option<u64>,
    /// The address that it must not use, for the signals that tell one.
    pub fault: Option<u64>,
    /// The files that were mapped, in the order of their lowest addresses.
    pub files: Vec<CoreFile>,
    /// Which of them is the program.
    pub program: Option<usize>,
    /// `NAME=VALUE` of its variables, as far as the stack is in the file.
    pub variables: Vec<Vec<u8>>,
}

/// A file that the process had mapped.
#[derive(Debug, PartialEq, Eq)]
pub struct CoreFile {
    /// Its path, as the process had it.
    pub path: PathBuf,
    /// Its mappings: begin and end.
    pub ranges: Vec<(u64, u64)>,
    /// Whether any of its mappings may be executed, as far as the core says.
    pub executable: bool,
    /// Its beginning as it was mapped, a page at most; empty where the core has not kept that.
    pub start: Vec<u8>,
    /// Build id of what was mapped, in hexadecimal.
    pub build_id: Option<String>,
}

impl CoreFile {
    fn has(&self, address: u64) -> bool {
        self.ranges.iter().any(|(begin, end)| (*begin..*end).contains(&address))
    }
}

impl Core {
    /// Reads a core file.
    ///
    /// # Errors
    /// When it is none, is of 32 bits, or its notes are damaged.
    pub fn read(file: &dyn ReadAt) -> Result<Self, Unreadable> {
        let source = Source::new(file);
        let header = layout::header(&source)?;
        if header.e_type != ET_CORE {
            return Err(Unreadable { problem: Problem::NotElf, offset: 16, what: "an ELF file, but no core".into() });
        }
        let segments = segments(&source, &header)?;
        let memory = Memory { source: &source, segments: &segments };
        let mut core = Self::default();
        let (mut auxiliary, mut is_first) = (HashMap::new(), true);
        for segment in segments.iter().filter(|segment| segment.p_type == PT_NOTE) {
            let bytes = source.bytes(segment.p_offset, segment.p_filesz, "the notes of the core")?;
            for note in notes(&bytes, 4) {
                match note.kind {
                    // That of the thread that died is the first.
                    NT_PRSTATUS if std::mem::take(&mut is_first) => core.status(note.content, header.e_machine),
                    NT_PRPSINFO => core.information(note.content),
                    NT_SIGINFO => core.signal(note.content),
                    NT_AUXV => auxiliary = pairs(note.content),
                    NT_FILE => core.files = files(note.content)?,
                    _ => {}
                }
            }
        }
        for file in &mut core.files {
            file.start = file.ranges.first().and_then(|(begin, _)| memory.bytes(*begin, PAGE)).unwrap_or_default();
            file.build_id = build_id(&file.start);
            // gdb's gcore leaves out mappings that are in files unchanged, code above all.
            let is_elf = layout::header(&Source::new(&&file.start[..])).is_ok();
            let may_execute = |(begin, _): &(u64, u64)| match memory.segment(*begin) {
                Some(segment) => segment.p_flags & PF_X != 0,
                None => is_elf,
            };
            file.executable = file.ranges.iter().any(may_execute);
        }
        let phdr = auxiliary.get(&AT_PHDR);
        core.program = phdr.and_then(|address| core.files.iter().position(|file| file.has(*address)));
        core.variables = auxiliary.get(&AT_EXECFN).map(|end| memory.variables(*end)).unwrap_or_default();
        Ok(core)
    }

    /// Whether a file that begins so is one.
    pub fn starts_with(start: &[u8]) -> bool {
        layout::header(&Source::new(&start)).is_ok_and(|header| header.e_type == ET_CORE)
    }

    /// The file that an address lies in.
    pub fn file_at(&self, address: u64) -> Option<&CoreFile> {
        self.files.iter().find(|file| file.has(address))
    }

    /// `struct elf_prstatus`: signal, number, registers.
    fn status(&mut self, content: &[u8], machine: u16) {
        const SIGNAL: usize = 12;
        const PID: usize = 32;
        // The registers begin at 112: rip is the 17th of x86-64, the program counter follows x0 to x30 and sp on aarch64.
        let counter = match machine {
            EM_X86_64 => Some(112 + 16 * 8),
            EM_AARCH64 => Some(112 + 32 * 8),
            _ => None,
        };
        if content.len() >= PID + 4 {
            self.signal = i32::from(u16_at(content, SIGNAL));
            self.pid = u32_at(content, PID);
        }
        self.instruction = counter.filter(|at| content.len() >= at + 8).map(|at| u64_at(content, at));
    }

    /// `struct elf_prpsinfo`: the name of the program, and the number of the process, not of a thread of it.
    fn information(&mut self, content: &[u8]) {
        const PID: usize = 24;
        if let Some(name) = content.get(40..56) {
            let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
            self.name = String::from_utf8_lossy(&name[..end]).into_owned();
            self.pid = u32_at(content, PID);
        }
    }

    /// `siginfo_t`: the address, where the signal is about one (SIGILL, SIGBUS, SIGFPE, SIGSEGV) and the kernel sent it.
    fn signal(&mut self, content: &[u8]) {
        const ABOUT_ADDRESS: [u32; 4] = [4, 7, 8, 11];
        if content.len() >= 24 && ABOUT_ADDRESS.contains(&u32_at(content, 0)) && (u32_at(content, 8) as i32) > 0 {
            self.fault = Some(u64_at(content, 16));
        }
    }
}

/// All program headers: one for each mapping of the process, of which Linux allows 65,530 unless it is told otherwise.
fn segments(source: &Source<'_>, header: &Header) -> Result<Vec<ProgramHeader>, Unreadable> {
    const MOST: u64 = 1 << 20;
    /// With more, the number is in the first section header (elf(5), PN_XNUM).
    const ELSEWHERE: u16 = 0xffff;
    const INFO: usize = 44;
    let count = match header.e_phnum {
        ELSEWHERE => u32_at(&source.bytes(header.e_shoff, SECTION_HEADER, "the first section header")?, INFO).into(),
        count => u64::from(count),
    };
    layout::segments(source, header, count, MOST)
}

/// The auxiliary vector: pairs of a key and a number.
fn pairs(content: &[u8]) -> HashMap<u64, u64> {
    content.chunks_exact(16).map(|pair| (u64_at(pair, 0), u64_at(pair, 8))).collect()
}

/// NT_FILE: how many mappings, the size of a page, begin, end and offset of each, then their paths.
fn files(content: &[u8]) -> Result<Vec<CoreFile>, Unreadable> {
    let damaged = || Unreadable::damaged(0, "the list of mapped files ends early");
    let number = |at: usize| content.get(at..at + 8).map(|bytes| u64_at(bytes, 0)).ok_or_else(damaged);
    let count = usize::try_from(number(0)?).ok().filter(|count| *count <= content.len() / 24).ok_or_else(damaged)?;
    let mut names = content.get(16 + 24 * count..).ok_or_else(damaged)?.split(|byte| *byte == 0);
    let mut files: Vec<CoreFile> = Vec::new();
    let mut known: HashMap<&[u8], usize> = HashMap::new();
    for i in 0..count {
        let range = (number(16 + 24 * i)?, number(24 + 24 * i)?);
        let name = names.next().filter(|name| !name.is_empty()).ok_or_else(damaged)?;
        let at = *known.entry(name).or_insert(files.len());
        if at == files.len() {
            let path = PathBuf::from(OsStr::from_bytes(name));
            files.push(CoreFile { path, ranges: Vec::new(), executable: false, start: Vec::new(), build_id: None });
        }
        files[at].ranges.push(range);
    }
    Ok(files)
}

/// The build id of the ELF file that begins so.
fn build_id(start: &[u8]) -> Option<String> {
    let source = Source::new(&start);
    let header = layout::header(&source).ok()?;
    let segments = layout::segments(&source, &header, header.e_phnum.into(), u16::MAX.into()).ok()?;
    notes::build_id(&source, &segments).ok()?
}

/// The memory of the process, as far as the core has it.
struct Memory<'c, 'f> {
    source: &'c Source<'f>,
    segments: &'c [ProgramHeader],
}

impl Memory<'_, '_> {
    fn segment(&self, address: u64) -> Option<&ProgramHeader> {
        let has = |one: &ProgramHeader| address.checked_sub(one.p_vaddr).is_some_and(|inside| inside < one.p_memsz);
        // They are in the order of their addresses.
        let after = self.segments.partition_point(|one| one.p_type != PT_LOAD || one.p_vaddr <= address);
        self.segments[..after].last().filter(|one| one.p_type == PT_LOAD && has(one))
    }

    /// Up to `size` bytes from `address` on.
    fn bytes(&self, address: u64, size: u64) -> Option<Vec<u8>> {
        let segment = self.segment(address)?;
        let inside = address - segment.p_vaddr;
        let size = size.min(segment.p_filesz.checked_sub(inside)?);
        self.source.bytes(segment.p_offset.checked_add(inside)?, size, "memory").ok()
    }

    /// What lies before the program's name, which ends the strings: variables, and before them the arguments.
    fn variables(&self, end: u64) -> Vec<Vec<u8>> {
        let segment = self.segment(end);
        let start = segment.map_or(end, |segment| segment.p_vaddr.max(end.saturating_sub(MOST_STRINGS)));
        let bytes = self.bytes(start, end.saturating_sub(start)).unwrap_or_default();
        if start.saturating_add(bytes.len() as u64) != end {
            return Vec::new();
        }
        let strings = bytes.strip_suffix(b"\0").unwrap_or_default().rsplit(|byte| *byte == 0);
        strings.take_while(|text| is_variable(text)).map(<[u8]>::to_vec).collect()
    }
}

/// Whether a string begins as a variable does.
fn is_variable(text: &[u8]) -> bool {
    let name = &text[..memchr::memchr(b'=', text).unwrap_or_default()];
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.%()".contains(byte);
    name.first().is_some_and(|first| !first.is_ascii_digit()) && name.iter().all(word)
}
