//! Which library a file is, and the version that it tells.

use gpulock::elf::Identity;
use object::elf;

use super::make::{Library, Symbol};

fn read(library: Library) -> Option<Identity> {
    library.read().identity
}

/// A library whose symbol points to these bytes.
fn telling(soname: &'static str, symbol: &'static str, bytes: &[u8]) -> Library {
    let mut data = [0x90; 64];
    data[..bytes.len()].copy_from_slice(bytes);
    let symbols = vec![Symbol { size: 64, ..Symbol::defined(symbol, 0) }];
    Library { soname: Some(soname), symbols, data, ..Library::default() }
}

/// `mov dword [rdi], value; xor eax, eax; ret`.
fn stores(value: u32) -> Vec<u8> {
    [&[0xc7, 0x07], &value.to_le_bytes()[..], &[0x31, 0xc0, 0xc3]].concat()
}

fn version(library: Library) -> (String, Option<String>) {
    let identity = read(library).unwrap();
    let name = identity.component.map_or(identity.library.into(), |part| format!("{}/{part}", identity.library));
    (name, identity.version)
}

#[test]
fn constants_of_version_functions() {
    let cases = [
        ("libnccl.so.2", "ncclGetVersion", 22703, "nccl", Some("2.27.3")),
        ("libcufft.so.11", "cufftGetVersion", 11303, "cufft", Some("11.3.3")),
        ("libcublasLt.so.12", "cublasLtGetVersion", 120804, "cublaslt", Some("12.8.4")),
        ("libcudart.e8e8b82a.so.12", "cudaRuntimeGetVersion", 12080, "cudart", Some("12.8")),
        ("libcupti.so.12", "cuptiGetVersion", 26, "cupti", None),
        ("libcudnn_cnn-1a2b3c4d.so.9", "cudnnCnnVersionCheck", 91002, "cudnn/cnn", Some("9.10.2")),
        ("libcudnn_ops_train.so.8", "cudnnOpsTrainVersionCheck", 8902, "cudnn/ops_train", Some("8.9.2")),
        ("libcublas.so.12", "cublasGetVersion_v2", 120804, "cublas", None),
    ];
    for (soname, function, value, name, expected) in cases {
        let found = version(telling(soname, function, &stores(value)));
        assert_eq!(found, (name.into(), expected.map(str::to_owned)), "{soname}");
    }
}

#[test]
fn two_constants_are_no_version() {
    let bytes = [stores(22703), stores(22005)].concat();
    assert_eq!(version(telling("libnccl.so.2", "ncclGetVersion", &bytes)).1, None);
}

#[test]
fn machine_code_of_another_processor_is_not_read() {
    let arm = |library| Library { machine: elf::EM_AARCH64, ..library };
    assert_eq!(version(arm(telling("libnccl.so.2", "ncclGetVersion", &stores(22703)))).1, None);
    // An object is data, the same everywhere.
    let object = telling("libcudnn_graph.so.9", "cudnn_graph_version", &[2, 10, 9, 0]);
    assert_eq!(version(arm(object)), ("cudnn/graph".into(), Some("9.10.2".into())));
}

#[test]
fn texts() {
    let text = |soname: &'static str, text: &[u8]| {
        let sections = vec![(".rodata", [&[0; 40], text, &[0; 40]].concat())];
        version(Library { soname: Some(soname), sections, ..Library::default() })
    };
    let engines = text("libcudnn_engines_precompiled.so.9", b"x == (9 * 10000 + 10 * 100 + 2)");
    assert_eq!(engines, ("cudnn/engines_precompiled".into(), Some("9.10.2".into())));
    let train = text("libcudnn_cnn_train.so.8", b"(8 * 1000 + 9 * 100 + 7)");
    assert_eq!(train.1.as_deref(), Some("8.9.7"));
    assert_eq!(text("libnccl.so.2", b"NCCL version 2.20.5+cuda12.4").1.as_deref(), Some("2.20.5"));
    let compiler = b"Cuda compilation tools, release %d.%d,\0Cuda compilation tools, release 12.8, V12.8.93\0";
    assert_eq!(text("libnvrtc.so.12", compiler).1.as_deref(), Some("12.8.93"));
}

#[test]
fn disagreement_is_no_version() {
    let mut library = telling("libnccl.so.2", "ncclGetVersion", &stores(22703));
    library.sections = vec![(".rodata", b"NCCL version 2.20.5+cuda12.4\0".to_vec())];
    let identity = read(library).unwrap();
    assert_eq!((identity.version, identity.readings.len()), (None, 2));
}

#[test]
fn other_libraries_are_none() {
    for soname in ["libcudnnx.so.1", "libnvrtc-builtins.so.12.8", "libcusolverMg.so.11", "libz.so.1"] {
        assert_eq!(read(Library { soname: Some(soname), ..Library::default() }), None, "{soname}");
    }
    let nameless = Library { soname: None, ..telling("", "ncclGetVersion", &stores(22703)) };
    assert_eq!(version(nameless), ("nccl".into(), Some("2.27.3".into())));
}

/// The code with which libtorch_cpu makes its table of build options.
#[test]
fn what_torch_was_built_with() {
    let name = |start: &[u8; 8], slot: u8| [&[0x48, 0xb8], &start[..], &[0x48, 0x89, 0x44, 0x24, slot]].concat();
    let code = [
        name(b"CUDNN_VE", 0x10),
        // mov r15d, ".0"; mov dword [rsp+0x30], "9.26"; mov [rsp+0x34], r15w; mov qword [rsp+0x28], 6
        [&[0x41, 0xbf], &b".0\0\0"[..]].concat(),
        [&[0xc7, 0x44, 0x24, 0x30], &b"9.26"[..]].concat(),
        vec![0x66, 0x44, 0x89, 0x7c, 0x24, 0x34],
        vec![0x48, 0xc7, 0x44, 0x24, 0x28, 6, 0, 0, 0],
    ];
    let library = telling("libtorch_cpu.so", "_ZN6caffe215GetBuildOptionsB5cxx11Ev", &code.concat());
    let identity = read(library).unwrap();
    assert_eq!((identity.library, identity.component.as_deref()), ("torch", Some("cpu")));
    assert_eq!(identity.built_against_cudnn.unwrap().version, "9.26.0");
    assert_eq!(identity.version, None);
}
