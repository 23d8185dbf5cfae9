//! Images of Apptainer: takes a SIF file, or a squashfs of its own, gives the files in it. SIF keeps descriptors of its
//! parts behind a header (github.com/sylabs/sif, `pkg/sif`); the part with the root filesystem is a squashfs.

use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;

use backhand::{BackhandError, FilesystemReader, InnerNode};

use super::bytes::Bytes;
use super::cache::New;
use super::fault::Fault;
use super::keep;
use super::layer::Limits;
use super::store::{Item, Writer};
use super::tar::Kind;

/// How a squashfs and a SIF file begin; in a SIF file a line for the shell comes before.
const SQUASHFS: &[u8] = b"hsqs";
const SIF: &[u8] = b"SIF_MAGIC";
const SIF_AT: u64 = 32;
/// Bytes of the header, and where it says how many descriptors there are and where.
const HEADER: usize = 128;
const DESCRIPTORS_AT: usize = 88;
/// Bytes of a descriptor. Files have a few, and never this many.
const DESCRIPTOR: u64 = 585;
const MOST_DESCRIPTORS: u64 = 4096;
/// Where a descriptor says where its part is, and what a partition is.
const PART_AT: usize = 17;
const PARTITION_AT: usize = 201;
/// A partition, of squashfs, with the system that is started or another.
const PARTITION: u32 = 0x4004;
const OF_SQUASHFS: u32 = 1;
const SYSTEMS: [u32; 2] = [2, 1];

/// Reads the files, and writes what is kept of them to `store`.
///
/// # Errors
/// What is no such file, or is damaged.
pub(super) fn read(file: File, store: &mut New, limits: &Limits, seen: &dyn Fn(u64)) -> Result<(), Fault> {
    let at = squashfs_at(&file)?;
    let damaged = |error: BackhandError| Fault::broken(format!("its squashfs cannot be read ({error})"));
    let system = FilesystemReader::from_reader_with_offset(BufReader::new(file), at).map_err(damaged)?;
    let mut writer = Writer::new(store, "").map_err(Fault::Spool)?;
    for node in system.files() {
        let path = node.fullpath.as_os_str().as_bytes().to_vec();
        let (mut kept, mut size, mut target) = (None, 0, Vec::new());
        let kind = match &node.inner {
            InnerNode::File(content) => {
                size = content.file_len() as u64;
                limits.bytes(size)?;
                let mut reader = system.file(content).reader_checked().map_err(damaged)?;
                let name = || format!("the file {}", node.fullpath.display());
                let read = keep::keep(&path, size, &mut reader as &mut dyn Read, &mut writer);
                kept = read.map_err(|fault| fault.of(&name()))?;
                seen(size);
                Kind::File
            }
            InnerNode::Symlink(link) => {
                target = link.link.as_os_str().as_bytes().to_vec();
                Kind::Link
            }
            InnerNode::Dir(_) => Kind::Folder,
            InnerNode::CharacterDevice(_) | InnerNode::BlockDevice(_) => Kind::Device,
            InnerNode::NamedPipe | InnerNode::Socket => Kind::Pipe,
        };
        let mode = u32::from(node.header.permissions);
        limits.entry(path.len() + target.len())?;
        writer.entry(Item { path: Bytes(path), kind, target: Bytes(target), size, mode, kept });
    }
    writer.finish()
}

/// Where the squashfs begins.
fn squashfs_at(file: &File) -> Result<u64, Fault> {
    let mut header = [0; HEADER];
    let count = file.read_at(&mut header, 0)?;
    if header.starts_with(SQUASHFS) {
        return Ok(0);
    }
    if count < HEADER || !header[SIF_AT as usize..].starts_with(SIF) {
        return Err(Fault::broken("it is neither a SIF file nor a squashfs".into()));
    }
    let (total, first) = (number(&header, DESCRIPTORS_AT), number(&header, DESCRIPTORS_AT + 8));
    if total > MOST_DESCRIPTORS {
        return Err(Fault::broken(format!("it says that it has {total} parts")));
    }
    if first.checked_add(total * DESCRIPTOR).is_none_or(|end| file.metadata().is_ok_and(|is| end > is.len())) {
        return Err(Fault::broken("the list of its parts lies beyond its end".into()));
    }
    let mut found: Vec<(usize, u64)> = Vec::new();
    for descriptor in 0..total {
        let mut bytes = [0; DESCRIPTOR as usize];
        file.read_exact_at(&mut bytes, first + descriptor * DESCRIPTOR)?;
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let is_system = word(0) == PARTITION && bytes[4] != 0 && word(PARTITION_AT) == OF_SQUASHFS;
        let rank = SYSTEMS.iter().position(|kind| *kind == word(PARTITION_AT + 4));
        found.extend(rank.filter(|_| is_system).map(|rank| (rank, number(&bytes, PART_AT))));
    }
    let system = found.into_iter().min().map(|(_, at)| at);
    system.ok_or_else(|| {
        Fault::broken("it has no root filesystem that is a squashfs (an encrypted one is not read)".into())
    })
}

fn number(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|part| part.try_into().ok()).map_or(0, u64::from_le_bytes)
}
