//! GPU code as containers hold it: what for, in which form; never the code itself.

use std::fmt;

use crate::version::{Capability, PtxIsa};

/// Form of one piece of GPU code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CodeKind {
    /// Machine code (a cubin), `sm_90`.
    Sass,
    /// Intermediate code that the driver compiles, `compute_90`.
    Ptx,
    /// Intermediate code for linking at run time, `lto_90`.
    LtoIr,
}

/// How a piece of GPU code is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Compression {
    /// As it is.
    None,
    /// LZ4 blocks.
    Lz4,
    /// Zstandard.
    Zstd,
    /// Compressed, in a way that its flags do not name.
    Other,
}

/// One piece of GPU code in a container.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code {
    /// Its form.
    pub kind: CodeKind,
    /// Architecture that it was compiled for.
    pub capability: Capability,
    /// `a` (that GPU alone) or `f` (its family).
    pub suffix: Option<char>,
    /// Version of the PTX instruction set; PTX alone has one.
    pub isa: Option<PtxIsa>,
    /// How it is stored.
    pub compression: Compression,
}

impl Code {
    /// The compiler's name of a code: `sm_90a`, `compute_120`, `lto_90`.
    pub fn name(kind: CodeKind, capability: Capability, suffix: Option<char>) -> String {
        let kind = match kind {
            CodeKind::Sass => "sm",
            CodeKind::Ptx => "compute",
            CodeKind::LtoIr => "lto",
        };
        let suffix = suffix.map(String::from).unwrap_or_default();
        format!("{kind}_{}{}{suffix}", capability.major, capability.minor)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Self::name(self.kind, self.capability, self.suffix))
    }
}

/// The containers of a file, or of some of its sections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GpuCodes {
    /// Each distinct content, with how many containers hold exactly that. Sorted; a content keeps repeated codes.
    pub containers: Vec<(Vec<Code>, usize)>,
    /// What of the GPU code could not be walked, and where: a header with size 0, or beyond its section.
    pub damaged: Vec<super::Unreadable>,
}

impl GpuCodes {
    /// How many containers there are.
    pub fn len(&self) -> usize {
        self.containers.iter().map(|(_, count)| count).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.containers.is_empty()
    }

    /// Each code with how often it occurs in all containers together.
    pub fn codes(&self) -> impl Iterator<Item = (&Code, usize)> {
        self.containers.iter().flat_map(|(codes, count)| codes.iter().map(move |code| (code, *count)))
    }
}
