//! The two headers inside GPU code: of a container, and of a piece of code in it. Little-endian.

use super::super::code::{Code, CodeKind, Compression};
use super::super::read::{u16_at, u32_at, u64_at};
use crate::version::{Capability, PtxIsa};

/// Header of a container: magic, version 1 (16 bits), size of this header (16 bits), size of what follows (64 bits).
pub(super) struct Container {
    /// Bytes that follow.
    pub size: u64,
}

impl Container {
    pub const SIZE: usize = 16;
    /// How it begins: 0xBA55ED50, which alone also occurs in other data, 1 and 16.
    pub const BEGINNING: [u8; 8] = [0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];
    /// Containers begin at multiples of this.
    pub const ALIGNMENT: u64 = 8;

    /// `None` where there is none.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        bytes.starts_with(&Self::BEGINNING).then(|| Self { size: u64_at(bytes, 8) })
    }
}

const PTX: u16 = 1;
const CUBIN: u16 = 2;
const NVVM: u16 = 8;
/// Other kinds that are documented: debugging aids and indexes, not code for a GPU.
const OTHER_KINDS: [u16; 2] = [0x10, 0x40];

const LZ4: u64 = 0x2000;
const ZSTD: u64 = 0x8000;
const ARCHITECTURE_ALONE: u64 = 0x10_0000;
const FAMILY: u64 = 0x20_0000;

/// Header of a piece of code.
pub(super) struct Entry {
    /// Bytes from its header to the next one.
    pub size: u64,
    /// What it is; absent for what no GPU runs.
    pub code: Option<Packed>,
}

impl Entry {
    /// Bytes that every such header has; what follows depends on its size.
    pub const SIZE: usize = 64;

    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let (kind, header, payload) = (u16_at(bytes, 0), u32_at(bytes, 4), u64_at(bytes, 8));
        if (header as usize) < Self::SIZE {
            return Err(format!("a piece of GPU code whose header has {header} bytes, less than {}", Self::SIZE));
        }
        let size = payload.checked_add(header.into()).ok_or("a piece of GPU code of more than 2^64 bytes")?;
        let form = match kind {
            PTX => CodeKind::Ptx,
            CUBIN => CodeKind::Sass,
            NVVM => CodeKind::LtoIr,
            other if OTHER_KINDS.contains(&other) => return Ok(Self { size, code: None }),
            other => return Err(format!("a piece of GPU code of kind {other}, which is not known")),
        };
        let architecture = u32_at(bytes, 0x1c);
        if !(10..10_000).contains(&architecture) {
            return Err(format!("a piece of GPU code for architecture {architecture}, which is none"));
        }
        let flags = u64_at(bytes, 0x28);
        let compression = match () {
            () if flags & ZSTD != 0 => Compression::Zstd,
            () if flags & LZ4 != 0 => Compression::Lz4,
            () if u32_at(bytes, 0x10) != 0 => Compression::Other,
            () => Compression::None,
        };
        let suffix = match () {
            () if flags & ARCHITECTURE_ALONE != 0 => Some('a'),
            () if flags & FAMILY != 0 => Some('f'),
            () => None,
        };
        let isa = if form == CodeKind::Ptx { (u16_at(bytes, 0x1a), u16_at(bytes, 0x18)) } else { (0, 0) };
        Ok(Self { size, code: Some(Packed { form, architecture, suffix, isa, compression }) })
    }
}

/// A [`Code`] in few bytes, while tens of thousands are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Packed {
    form: CodeKind,
    architecture: u32,
    suffix: Option<char>,
    isa: (u16, u16),
    compression: Compression,
}

impl Packed {
    pub fn code(self) -> Code {
        let isa = PtxIsa::from_numbers(&[self.isa.0.into(), self.isa.1.into()]);
        Code {
            kind: self.form,
            capability: Capability { major: self.architecture / 10, minor: self.architecture % 10 },
            suffix: self.suffix,
            isa: (self.form == CodeKind::Ptx).then_some(isa),
            compression: self.compression,
        }
    }
}
