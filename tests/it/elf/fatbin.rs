//! GPU code containers made by code: what is counted, and what damage does.

use gpulock::elf::{CodeKind, Compression, GpuCodes, Object};

use super::make::Library;

const PTX: u16 = 1;
const CUBIN: u16 = 2;
const NVVM: u16 = 8;

/// A piece of code with a payload of `size` bytes.
pub fn piece(kind: u16, architecture: u32, flags: u64, isa: (u16, u16), size: usize) -> Vec<u8> {
    let mut piece = vec![0; 64];
    piece[..2].copy_from_slice(&kind.to_le_bytes());
    piece[2..4].copy_from_slice(&[1, 1]);
    piece[4..8].copy_from_slice(&64u32.to_le_bytes());
    piece[8..16].copy_from_slice(&(size as u64).to_le_bytes());
    piece[0x18..0x1a].copy_from_slice(&isa.1.to_le_bytes());
    piece[0x1a..0x1c].copy_from_slice(&isa.0.to_le_bytes());
    piece[0x1c..0x20].copy_from_slice(&architecture.to_le_bytes());
    piece[0x28..0x30].copy_from_slice(&flags.to_le_bytes());
    piece.resize(64 + size, 0xcd);
    piece
}

pub fn container(pieces: &[Vec<u8>]) -> Vec<u8> {
    let payload = pieces.concat();
    let mut bytes = vec![0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];
    bytes.extend((payload.len() as u64).to_le_bytes());
    bytes.extend(payload);
    bytes
}

fn cubin(architecture: u32) -> Vec<u8> {
    piece(CUBIN, architecture, 0x11, (1, 7), 4096)
}

fn read(sections: Vec<(&'static str, Vec<u8>)>) -> Object {
    Library { sections, ..Library::default() }.read()
}

fn counted(codes: &GpuCodes) -> Vec<(String, usize)> {
    codes.codes().map(|(code, count)| (code.to_string(), count)).collect()
}

#[test]
fn forms_architectures_and_suffixes() {
    let pieces = [
        cubin(90),
        piece(CUBIN, 90, 0x10_0011, (1, 7), 100_000),
        piece(CUBIN, 100, 0x20_8011, (1, 8), 8),
        piece(PTX, 120, 0x2011, (8, 7), 0),
        piece(NVVM, 75, 0x1_0011, (0, 0), 16),
    ];
    let object = read(vec![(".nv_fatbin", container(&pieces))]);
    let codes = &object.gpu_code.containers[0].0;
    let names: Vec<String> = codes.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["sm_90", "sm_90a", "sm_100f", "compute_120", "lto_75"]);
    assert_eq!(codes[2].compression, Compression::Zstd);
    assert_eq!((codes[3].kind, codes[3].compression), (CodeKind::Ptx, Compression::Lz4));
    assert_eq!(codes[3].isa.as_ref().unwrap().to_string(), "8.7");
    assert!(codes[0].isa.is_none());
    assert_eq!(object.gpu_code.damaged, []);
}

#[test]
fn equal_containers_are_counted_together() {
    let twice = [container(&[cubin(80)]), container(&[cubin(90), cubin(80)]), container(&[cubin(80), cubin(90)])];
    let object = read(vec![(".nv_fatbin", twice.concat()), ("__nv_relfatbin", container(&[cubin(80)]))]);
    assert_eq!(
        object.gpu_code.containers.iter().map(|(codes, count)| (codes.len(), *count)).collect::<Vec<_>>(),
        [(1, 2), (2, 2)]
    );
    assert_eq!(object.gpu_code.len(), 4);
    assert!(object.gpu_code_embedded.is_empty());
}

#[test]
fn embedded_containers_are_found_among_other_data() {
    let mut data = vec![0x11; 200_000];
    data.extend(container(&[cubin(80)]));
    data.extend([0; 24]);
    data.extend(container(&[cubin(90)]));
    // The magic alone is nothing.
    data.extend([0x50, 0xed, 0x55, 0xba, 7, 0, 16, 0]);
    data.extend(vec![0x22; 300_000]);
    data.extend(container(&[cubin(100)]));
    let object = read(vec![(".nv_fatbin", container(&[cubin(52)])), (".ldata", data)]);
    let found = counted(&object.gpu_code_embedded);
    assert_eq!(found, [("sm_80".into(), 1), ("sm_90".into(), 1), ("sm_100".into(), 1)]);
    assert_eq!(object.gpu_code_embedded.damaged, []);
}

#[test]
fn code_is_never_searched() {
    let object = read(vec![(".nv_fatbin", container(&[cubin(52)])), (".text", container(&[cubin(80)]))]);
    assert!(object.gpu_code_embedded.is_empty());
}

#[test]
fn damage_is_said_and_the_rest_goes_on() {
    let good = container(&[cubin(80)]);
    let mut no_size = good.clone();
    no_size[8..16].fill(0);
    let mut too_large = good.clone();
    too_large[8..16].fill(0xff);
    let mut no_header = good.clone();
    no_header[16 + 4..16 + 8].fill(0);
    let mut endless = good.clone();
    endless[16 + 8..16 + 16].fill(0xff);
    let mut unknown = good.clone();
    unknown[16] = 0x33;
    let garbage = vec![0xee; 64];
    for (bad, what) in [
        (no_size, "of 0 bytes"),
        (too_large, "of 18446744073709551615 bytes"),
        (no_header, "whose header has 0 bytes"),
        (endless, "more than 2^64"),
        (unknown, "kind 51"),
        (garbage, "no GPU code container begins here"),
    ] {
        let section = [good.clone(), bad, good.clone()].concat();
        let object = read(vec![(".nv_fatbin", section)]);
        assert_eq!(counted(&object.gpu_code), [("sm_80".into(), 2)], "{what}");
        assert_eq!(object.gpu_code.damaged.len(), 1, "{what}");
        let said = &object.gpu_code.damaged[0];
        assert!(said.to_string().contains(what), "{said}");
        assert!(said.offset > 0);
    }
}
