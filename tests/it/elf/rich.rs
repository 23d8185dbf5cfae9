//! Sound files with everything in them, for mutation: by the tests of bad files and by `tests/fuzz`.

use object::elf;

use super::fatbin::{container, piece};
use super::make::{HIDDEN, Library, Symbol, Table};

/// A library with every table.
pub fn rich(table: Table) -> Vec<u8> {
    let code = container(&[piece(2, 90, 0x11, (1, 7), 64), piece(1, 90, 0x11, (8, 7), 32)]);
    Library {
        soname: Some("libcudnn_ops.so.9"),
        needed: vec!["libc.so.6"],
        defines: vec!["libcudnn_ops.so.9", "A"],
        needs: vec![("libc.so.6", "GLIBC_2.17", 3)],
        symbols: vec![
            Symbol::asked("malloc", 3),
            Symbol::defined("cudnn_ops_infer_version", 2),
            Symbol::defined("cudnnOpsVersionCheck", 2),
        ],
        sections: vec![(".nv_fatbin", [code.clone(), code.clone()].concat()), (".rodata", code)],
        table,
        ..Library::default()
    }
    .bytes()
}

/// One for each way in which a library tells what it is, among them those of [`rich`].
pub fn all() -> Vec<Vec<u8>> {
    let mut all = vec![rich(Table::Gnu), rich(Table::SysV)];
    let telling = |soname: &'static str, function: &'static str, code: &[u8], text: &[u8]| {
        let mut data = [0x90; 64];
        data[..code.len()].copy_from_slice(code);
        let symbols = vec![
            Symbol::asked("free", 0),
            Symbol { size: 64, ..Symbol::defined(function, 0) },
            Symbol { weak: true, ..Symbol::defined("other", 2 | HIDDEN) },
        ];
        Library {
            soname: (!soname.is_empty()).then_some(soname),
            rpath: Some("$ORIGIN/../lib:/opt"),
            runpath: Some("$ORIGIN"),
            flags_1: elf::DF_1_NODEFLIB.into(),
            defines: vec!["lib.so", "V"],
            needs: vec![("libc.so.6", "GLIBC_2.17", 3), ("libstdc++.so.6", "CXXABI_1.3.9", 4)],
            symbols,
            data,
            sections: vec![
                (".rodata", text.to_vec()),
                (".ldata", [&[0; 24], &container(&[piece(8, 75, 0x8010, (0, 0), 8)])[..]].concat()),
                ("__nv_relfatbin", container(&[piece(2, 100, 0x20_0011, (1, 8), 16)])),
                (".note.cuda.fwd_compatibility", [&[4, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0], &b"CUD\0abcd"[..]].concat()),
            ],
            ..Library::default()
        }
        .bytes()
    };
    let stores = |value: u32| [&[0xc7, 0x07], &value.to_le_bytes()[..], &[0x31, 0xc0, 0xc3]].concat();
    let pair = [stores(12), vec![0xc7, 0x06, 8, 0, 0, 0]].concat();
    // Puts a text together on its stack, as libtorch_cpu does.
    let options = [
        [&[0x48, 0xb8], &b"CUDNN_VE"[..], &[0x48, 0x89, 0x44, 0x24, 0x10]].concat(),
        [&[0xc7, 0x44, 0x24, 0x30], &b"9.26"[..], &[0x48, 0xc7, 0x44, 0x24, 0x28, 4, 0, 0, 0]].concat(),
    ];
    // `mov r8d, 9; lea rdi, [rip + 0]; mov r9d, 10; push 2`.
    let shim = [&[0x41, 0xb8, 9, 0, 0, 0, 0x48, 0x8d, 0x3d, 0, 0, 0, 0, 0x41, 0xb9, 10, 0, 0, 0, 0x6a, 2][..]];
    all.extend([
        telling("libnccl.so.2", "ncclGetVersion", &stores(22703), b"NCCL version 2.27.3+cuda12.9\0"),
        telling("", "cudaRuntimeGetVersion", &[0xe8, 5, 0, 0, 0, 0xc3, 0xc3, 0xc7, 0x07, 0x30, 0x2f, 0, 0], b"\0"),
        telling("libnvrtc.so.12", "nvrtcVersion", &pair, b"Cuda compilation tools, release 12.8, V12.8.93\0"),
        telling(
            "libtorch_cpu.so",
            "_ZN6caffe215GetBuildOptionsB5cxx11Ev",
            &options.concat(),
            b"TORCH_VERSION\x002.8.0\0",
        ),
        telling("libcudnn.so.9", "cudnnGetVersion", &shim.concat(), b"%s.%d.%d.%d\0"),
        telling("libcudnn_engines_precompiled.so.9", "f", &[], b"(9 * 10000 + 10 * 100 + 2)"),
    ]);
    all
}

/// Sections of GPU code: several containers, of all forms.
pub fn containers() -> Vec<Vec<u8>> {
    let forms = [
        piece(2, 90, 0x10_0011, (1, 7), 40),
        piece(1, 120, 0x2011, (8, 7), 24),
        piece(8, 75, 0x8011, (0, 0), 8),
        piece(0x10, 0, 0, (0, 0), 8),
    ];
    let many = container(&forms);
    // One within the payload of another, which is skipped.
    let mut outer = piece(2, 80, 0x11, (1, 7), many.len());
    outer[64..].copy_from_slice(&many);
    vec![
        many.clone(),
        [container(&forms[..1]), many.clone(), container(&forms[1..])].concat(),
        container(&[outer, forms[0].clone()]),
    ]
}
