//! What one ELF file says: an [`Object`].

use goblin::elf::header::{EM_AARCH64, EM_X86_64, ET_DYN, ET_EXEC};
use goblin::elf::program_header::{PF_X, PT_GNU_STACK, PT_INTERP};

use super::dynamic::Dynamic;
use super::layout::Layout;
use super::read::Source;
use super::versions::Versions;
use super::{GpuCodes, Identity, ReadAt, Symbols, Unreadable, fatbin, identity, notes};

/// Processor that a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    /// 64-bit x86.
    X86_64,
    /// 64-bit ARM.
    Aarch64,
    /// Another, by its number in the ELF header.
    Other(u16),
}

/// What a file is for the loader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A shared library or an extension module.
    Shared,
    /// A program, position-independent or not.
    Executable,
    /// For the linker, a core dump: nothing that is loaded.
    Other(u16),
}

/// What a file asks of the stack (PT_GNU_STACK).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stack {
    /// Says nothing, which the loader takes for executable.
    Absent,
    /// Asks for an executable stack.
    Executable,
    /// Does not.
    Plain,
}

/// A version that a file asks of a library.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VersionNeed {
    /// The library: `libc.so.6`.
    pub library: String,
    /// The version: `GLIBC_2.17`.
    pub name: String,
    /// Whether the loader only warns when the library does not have it.
    pub weak: bool,
}

/// What one ELF file says.
#[derive(Debug, Clone)]
pub struct Object {
    /// Processor that it is for.
    pub machine: Machine,
    /// What it is for the loader.
    pub kind: Kind,
    /// Name under which others ask for it.
    pub soname: Option<String>,
    /// Libraries that it asks for, in order.
    pub needed: Vec<String>,
    /// DT_RPATH, as written, one folder each.
    pub rpath: Vec<String>,
    /// DT_RUNPATH, as written, one folder each.
    pub runpath: Vec<String>,
    /// Whether the loader may not look into its default folders (DF_1_NODEFLIB).
    pub no_default_search: bool,
    /// The loader that a program asks for.
    pub interpreter: Option<String>,
    /// What it asks of the stack.
    pub stack: Stack,
    /// Build id, in hexadecimal.
    pub build_id: Option<String>,
    /// The driver branches that a library of a cuda-compat package runs beside (`.note.cuda.fwd_compatibility`), in the
    /// form in which the note has them; absent in all other libraries.
    pub forward_compat: Option<Vec<u8>>,
    /// Versions that it asks of libraries.
    pub version_needs: Vec<VersionNeed>,
    /// Versions that it defines, its own name among them; empty for a library without versions.
    pub version_definitions: Vec<String>,
    /// Its dynamic symbols.
    pub symbols: Symbols,
    /// Whether there are section headers. Without them nobody says where GPU code is, and none is listed.
    pub has_sections: bool,
    /// GPU code in `.nv_fatbin` and `__nv_relfatbin`: what `cuobjdump -all` lists.
    pub gpu_code: GpuCodes,
    /// GPU code in containers elsewhere: `.ldata`, `.lrodata`, `.data`, `.rodata`, `.cask_resource`.
    pub gpu_code_embedded: GpuCodes,
    /// Which library it is, where that is one of those that are known.
    pub identity: Option<Identity>,
    /// What of it could not be read, while the rest could.
    pub damaged: Vec<Unreadable>,
}

impl Object {
    /// The highest version of a family that it asks for: `floor("GLIBC")` is `2.17`; also `GLIBCXX` and `CXXABI`.
    pub fn floor(&self, family: &str) -> Option<&str> {
        let numbers = |version: &str| -> Option<Vec<u32>> { version.split('.').map(|n| n.parse().ok()).collect() };
        self.version_needs
            .iter()
            .filter_map(|need| need.name.strip_prefix(family)?.strip_prefix('_'))
            .filter_map(|version| Some((numbers(version)?, version)))
            .max()
            .map(|(_, version)| version)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When it is not ELF, is of a kind that is not read, or is damaged where the loader would stop too.
    pub fn read(file: &dyn ReadAt) -> Result<Self, Unreadable> {
        let source = Source::new(file);
        let mut layout = Layout::read(&source)?;
        let dynamic = Dynamic::read(&source, &layout)?;
        let mut damaged = std::mem::take(&mut layout.damaged);
        let mut keep = |problem| damaged.push(problem);
        let build_id = notes::build_id(&source, &layout.segments).unwrap_or_else(|problem| {
            keep(problem);
            None
        });
        let forward_compat = notes::forward_compat(&source, &layout).unwrap_or_else(|problem| {
            keep(problem);
            None
        });
        let interpreter = interpreter(&source, &layout).unwrap_or_else(|problem| {
            keep(problem);
            None
        });
        let versions = Versions::read(&source, &dynamic, &mut damaged);
        let (version_needs, version_definitions) = (versions.needs.clone(), versions.definitions.clone());
        let symbols = Symbols::read(&source, &dynamic, versions, &mut damaged);
        let machine = Machine::of(layout.machine);
        let identity = identity::read(&source, &layout, machine, dynamic.soname.as_deref(), &symbols);
        Ok(Self {
            machine,
            kind: Kind::of(layout.kind, interpreter.is_some()),
            soname: dynamic.soname,
            needed: dynamic.needed,
            rpath: dynamic.rpath,
            runpath: dynamic.runpath,
            no_default_search: dynamic.no_default_search,
            stack: stack(&layout),
            interpreter,
            build_id,
            forward_compat,
            version_needs,
            version_definitions,
            symbols,
            has_sections: layout.has_sections,
            gpu_code: fatbin::read(&source, &layout),
            gpu_code_embedded: fatbin::read_embedded(&source, &layout),
            identity,
            damaged,
        })
    }
}

impl Machine {
    fn of(number: u16) -> Self {
        match number {
            EM_X86_64 => Self::X86_64,
            EM_AARCH64 => Self::Aarch64,
            other => Self::Other(other),
        }
    }
}

impl Kind {
    /// A position-independent program is a shared object that names a loader.
    fn of(number: u16, has_interpreter: bool) -> Self {
        match number {
            ET_EXEC => Self::Executable,
            ET_DYN if has_interpreter => Self::Executable,
            ET_DYN => Self::Shared,
            other => Self::Other(other),
        }
    }
}

fn stack(layout: &Layout) -> Stack {
    match layout.segments.iter().find(|segment| segment.p_type == PT_GNU_STACK) {
        None => Stack::Absent,
        Some(segment) if segment.p_flags & PF_X != 0 => Stack::Executable,
        Some(_) => Stack::Plain,
    }
}

fn interpreter(source: &Source<'_>, layout: &Layout) -> Result<Option<String>, Unreadable> {
    let Some(segment) = layout.segments.iter().find(|segment| segment.p_type == PT_INTERP) else { return Ok(None) };
    let end = segment.p_offset.saturating_add(segment.p_filesz);
    let text = source.text(segment.p_offset, end, "the name of the loader (PT_INTERP)")?;
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}
