//! Machines as their files describe them.

use std::fs;
use std::path::Path;

use gpulock::diag::Evidence;
use gpulock::inventory::host::{self, Host};
use gpulock::inventory::machine::Ask;
use gpulock::matrix::Matrix;

fn write(root: &Path, path: &str, text: impl AsRef<[u8]>) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn silent(program: &str, _: &[&str]) -> Result<String, String> {
    Err(format!("{program} is not here"))
}

fn read(root: &Path, processor: &str, ask: Ask<'_>) -> Host {
    let matrix = Matrix::embedded();
    host::read(root, processor, (matrix.pci().unwrap(), matrix.gpu().unwrap()), ask)
}

/// Driver, GPUs, platform, glibc and Python as text; `-` for what is absent.
fn shown(host: &Host) -> [String; 5] {
    fn or_dash<T: ToString>(value: Option<T>) -> String {
        value.map_or("-".into(), |value| value.to_string())
    }
    let gpus: Vec<&str> = host.gpus.iter().map(|gpu| gpu.value.as_str()).collect();
    [
        or_dash(host.driver.as_ref().map(|fact| &fact.value)),
        gpus.join(", "),
        or_dash(host.platform.as_ref().map(|fact| fact.value)),
        or_dash(host.glibc.as_ref().map(|fact| &fact.value)),
        or_dash(host.python.as_ref().map(|fact| fact.value)),
    ]
}

#[test]
fn a_gpu_server() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for (line, version) in [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024", "535.183.01"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.26  Release Build  (x@y)", "570.26"),
    ] {
        write(root, "proc/driver/nvidia/version", format!("{line}\nGCC version:  gcc version 11.4.0 (Ubuntu)\n"));
        for (bus, model) in [
            ("0000:01:00.0", "NVIDIA A100-SXM4-80GB"),
            ("0000:02:00.0", "NVIDIA A100-SXM4-80GB"),
            ("0000:03:00.0", "Tesla V100"),
        ] {
            let text = format!("Model: \t\t {model}\nIRQ:   \t\t 44\nGPU UUID: \t GPU-x\n");
            write(root, &format!("proc/driver/nvidia/gpus/{bus}/information"), text);
        }
        write(
            root,
            "lib64/libc.so.6",
            b"\x7fELF\0\xffGNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.\nCopyright",
        );
        let host = read(root, "x86_64", &|program, _| {
            if program == "python3" { Ok("3.13t\n".to_owned()) } else { Err(String::new()) }
        });
        assert_eq!(shown(&host), [version, "NVIDIA A100-SXM4-80GB, Tesla V100", "linux-x86_64", "2.36", "3.13t"]);
        match &host.driver.unwrap().seen {
            Evidence::Observed { what, fact } => assert!(what.ends_with("proc/driver/nvidia/version") && fact == line),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn where_files_are_hidden_the_tool_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let host = read(folder.path(), "aarch64", &|program, _| {
        let gpu = "<gpu><product_name>NVIDIA GH200 480GB</product_name></gpu>";
        let text = format!("<nvidia_smi_log><driver_version>570.124.06</driver_version>{gpu}{gpu}</nvidia_smi_log>");
        if program == "nvidia-smi" { Ok(text) } else { Err(String::new()) }
    });
    assert_eq!(shown(&host), ["570.124.06", "NVIDIA GH200 480GB", "linux-aarch64", "-", "-"]);
}

/// Without a driver the bus says which GPUs there are.
#[test]
fn a_machine_before_its_driver() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("vendor", "0x10de\n"), ("device", "0x2b85\n"), ("class", "0x030000\n")] {
        write(folder.path(), &format!("sys/bus/pci/devices/0000:01:00.0/{name}"), text);
    }
    assert_eq!(shown(&read(folder.path(), "x86_64", &silent))[..2], ["-", "GeForce RTX 5090"]);
}

/// The names of parts of a GPU, and those of several chips, are no products; the number on the bus says which it is.
#[test]
fn names_that_are_no_products() {
    for (model, device, expected) in [
        ("GRID T4-8C", "0x1eb8", "Tesla T4"),
        ("NVIDIA GeForce GT 710", "0x1281", "sm_35"),
        ("NVIDIA A100-SXM4-80GB", "0x20b2", "NVIDIA A100-SXM4-80GB"),
        ("GRID X1-8C", "0x0001", "GRID X1-8C"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "proc/driver/nvidia/gpus/0000:01:00.0/information", format!("Model: \t {model}\n"));
        write(folder.path(), "sys/bus/pci/devices/0000:01:00.0/device", format!("{device}\n"));
        assert_eq!(shown(&read(folder.path(), "x86_64", &silent))[1], expected);
    }
}

/// The display's module of a Jetson has the release of its software where others have the driver's.
#[test]
fn a_release_of_a_jetson_is_no_driver() {
    let folder = tempfile::tempdir().unwrap();
    let line = "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  35.4.1  Release Build  (x@y)\n";
    write(folder.path(), "proc/driver/nvidia/version", line);
    write(folder.path(), "proc/device-tree/model", "NVIDIA Jetson AGX Orin Developer Kit\0");
    assert_eq!(shown(&read(folder.path(), "aarch64", &silent))[..2], ["-", "Jetson AGX Orin"]);
}

#[test]
fn a_jetson_is_its_board() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "proc/device-tree/model", "NVIDIA Jetson AGX Orin Developer Kit\0");
    assert_eq!(shown(&read(folder.path(), "aarch64", &silent))[1], "Jetson AGX Orin");
}

#[test]
fn a_machine_without_gpu_says_nothing() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "proc/driver/nvidia/version", "garbage\n");
    write(folder.path(), "lib/libc.so.6", b"musl");
    assert_eq!(shown(&read(folder.path(), "riscv64", &silent)), ["-", "", "-", "-", "-"]);
}

#[test]
fn this_machine_is_read() {
    let host = read(Path::new("/"), std::env::consts::ARCH, &silent);
    assert!(host.glibc.is_some() || !Path::new("/lib64/ld-linux-x86-64.so.2").exists());
}
