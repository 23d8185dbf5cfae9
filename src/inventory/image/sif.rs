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
use super::keep::{self, Kept};
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
/// A partition, of squashfs, with the system that is started or another; one that lies over it.
const PARTITION: u32 = 0x4004;
const OF_SQUASHFS: u32 = 1;
const SYSTEMS: [u32; 2] = [2, 1];
const OVERLAY: u32 = 4;
/// The index of an OCI image whose layers are parts.
const OCI_INDEX: u32 = 0x400a;
/// What a partition may be of besides, by its number.
const OTHERS: [(u32, &str); 5] =
    [(2, "ext3"), (3, "an archive of objects"), (4, "raw data"), (5, "encrypted"), (6, "encrypted")];
/// Architectures by their numbers.
const ARCHITECTURES: [(&[u8; 2], &str); 11] = [
    (b"01", "386"),
    (b"02", "amd64"),
    (b"03", "arm"),
    (b"04", "arm64"),
    (b"05", "ppc64"),
    (b"06", "ppc64le"),
    (b"07", "mips"),
    (b"08", "mipsle"),
    (b"09", "mips64"),
    (b"10", "mips64le"),
    (b"11", "s390x"),
];
/// Compressions of squashfs by their numbers (its format, "Superblock"); zstd and gzip are read.
const COMPRESSIONS: [&str; 7] = ["", "gzip", "lzma", "lzo", "xz", "lz4", "zstd"];
const READ: [usize; 2] = [1, 6];
/// Bytes of a superblock, and where it names the compression and its own size.
const SUPERBLOCK: usize = 96;
const COMPRESSION_AT: usize = 20;
const SIZE_AT: usize = 40;
const UNPACK: &str = "unpack it, and verify the folder: apptainer build --sandbox FOLDER FILE, or unsquashfs -d FOLDER FILE \
                      of a squashfs";

/// What the parts of a file say besides the files.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// As images name it, where it is said: `amd64`.
    pub(super) architecture: Option<&'static str>,
    /// Parts that are not read.
    pub(super) unread: Vec<String>,
}

/// Reads the files, and writes what is kept of them to `store`.
///
/// # Errors
/// What is no such file, or is damaged.
pub(super) fn read(file: File, store: &mut New, limits: &Limits, seen: &dyn Fn(u64)) -> Result<Parts, Fault> {
    let (at, parts) = squashfs_at(&file)?;
    superblock(&file, at)?;
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
                let read = keep::keep(&path, size, Kept::Judged, &mut reader as &mut dyn Read, &mut writer);
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
    writer.finish()?;
    Ok(parts)
}

/// Looks at what a squashfs says of itself, for better words than a reader of it has.
fn superblock(file: &File, at: u64) -> Result<(), Fault> {
    let length = file.metadata()?.len();
    if at >= length {
        return Err(Fault::broken("its root filesystem lies beyond its end: it is cut short or damaged".into()));
    }
    let mut block = [0; SUPERBLOCK];
    let count = file.read_at(&mut block, at)?;
    if !block.starts_with(SQUASHFS) {
        return Err(Fault::broken("its root filesystem is no squashfs, though its head says so".into()));
    }
    let size = number(&block, SIZE_AT);
    if count < SUPERBLOCK || at.checked_add(size).is_none_or(|end| end > length) {
        let what = format!("it is cut short: its squashfs has {size} bytes, of which {} are there", length - at);
        return Err(Fault::broken(what));
    }
    let compression = usize::from(u16::from_le_bytes([block[COMPRESSION_AT], block[COMPRESSION_AT + 1]]));
    match COMPRESSIONS.get(compression).filter(|name| !name.is_empty()) {
        Some(_) if READ.contains(&compression) => Ok(()),
        Some(name) => {
            Err(Fault::Foreign(format!("its squashfs is compressed with {name}: gzip and zstd are read"), UNPACK))
        }
        None => Err(Fault::broken(format!("its squashfs names a compression that there is none of ({compression})"))),
    }
}

fn damaged(error: BackhandError) -> Fault {
    match error {
        BackhandError::StdIo(error) => match Fault::from(error) {
            Fault::Broken(why) => Fault::Broken(format!("its squashfs is damaged: {why}")),
            other => other,
        },
        BackhandError::UnsupportedSquashfsVersion(major, minor) => {
            Fault::Foreign(format!("its squashfs is of version {major}.{minor}: 4.0 is read"), UNPACK)
        }
        _ => Fault::broken("its squashfs is damaged: its tables cannot be read".into()),
    }
}

/// Where the squashfs begins, and what else there is.
fn squashfs_at(file: &File) -> Result<(u64, Parts), Fault> {
    let mut header = [0; HEADER];
    let count = file.read_at(&mut header, 0)?;
    if header.starts_with(SQUASHFS) {
        return Ok((0, Parts::default()));
    }
    if count < HEADER || !header[SIF_AT as usize..].starts_with(SIF) {
        let what = "it is neither a SIF file nor a squashfs".into();
        return Err(Fault::Foreign(what, "name an archive as image:FILE, or make the image again"));
    }
    let (total, first) = (number(&header, DESCRIPTORS_AT), number(&header, DESCRIPTORS_AT + 8));
    if total > MOST_DESCRIPTORS {
        return Err(Fault::broken(format!("it says that it has {total} parts")));
    }
    if first.checked_add(total * DESCRIPTOR).is_none_or(|end| file.metadata().is_ok_and(|is| end > is.len())) {
        return Err(Fault::broken("the list of its parts lies beyond its end".into()));
    }
    let mut found: Vec<(usize, u64, Option<&str>)> = Vec::new();
    let (mut other, mut parts) = (None, Parts::default());
    for descriptor in 0..total {
        let mut bytes = [0; DESCRIPTOR as usize];
        file.read_exact_at(&mut bytes, first + descriptor * DESCRIPTOR)?;
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        if bytes[4] == 0 {
            continue;
        }
        let (kind, role) = (word(PARTITION_AT), word(PARTITION_AT + 4));
        let architecture = ARCHITECTURES.iter().find(|(code, _)| bytes[PARTITION_AT + 8..].starts_with(*code));
        let rank = SYSTEMS.iter().position(|system| *system == role);
        match (word(0), rank) {
            (PARTITION, Some(rank)) if kind == OF_SQUASHFS => {
                found.push((rank, number(&bytes, PART_AT), architecture.map(|(_, name)| *name)));
            }
            (PARTITION, Some(_)) => other = OTHERS.iter().find(|(number, _)| *number == kind).map(|(_, words)| *words),
            (PARTITION, None) if role == OVERLAY => {
                parts.unread.push("an overlay partition, whose files lie over those of the image".into());
            }
            (OCI_INDEX, _) => other = Some("an OCI image"),
            _ => {}
        }
    }
    if let Some((_, at, architecture)) = found.into_iter().min() {
        return Ok((at, Parts { architecture, ..parts }));
    }
    Err(match other {
        Some("encrypted") => Fault::Foreign(
            "its root filesystem is encrypted".into(),
            "verify the image that it was built from, or build it without encryption",
        ),
        Some("an OCI image") => Fault::Foreign(
            "it holds an OCI image instead of a root filesystem (OCI-SIF)".into(),
            "verify the image that it was built from: registry:NAME or image:FILE",
        ),
        Some(kind) => Fault::Foreign(format!("its root filesystem is {kind}: squashfs is read"), UNPACK),
        None => Fault::broken("it has no root filesystem that is a squashfs".into()),
    })
}

fn number(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|part| part.try_into().ok()).map_or(0, u64::from_le_bytes)
}
