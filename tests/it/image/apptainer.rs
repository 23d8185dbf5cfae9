//! Images of Apptainer: what they say of themselves, and why one cannot be read.

use std::fs;
use std::io::Cursor;
use std::os::unix::fs::symlink;
use std::path::Path;

use backhand::compression::Compressor;
use backhand::{FilesystemCompressor, FilesystemWriter, NodeHeader};
use gpulock::diag::Failure;
use gpulock::inventory::image::Image;
use gpulock::inventory::{Inventory, Options};

use super::{options, put};
use crate::check::venv::{Question, ask, assert_quiet, judge};
use crate::link::fixture::Elf;

/// A squashfs with these files.
fn squashfs(files: &[(&str, &str)]) -> Vec<u8> {
    let mut system = FilesystemWriter::default();
    system.set_compressor(FilesystemCompressor::new(Compressor::Gzip, None).unwrap());
    let header = NodeHeader::new(0o755, 0, 0, 0);
    for (path, content) in files {
        if let Some((folder, _)) = path.rsplit_once('/') {
            system.push_dir_all(folder, header).unwrap();
        }
        system.push_file(Cursor::new(content.as_bytes().to_vec()), path, header).unwrap();
    }
    let mut bytes = Cursor::new(Vec::new());
    system.write(&mut bytes).unwrap();
    bytes.into_inner()
}

/// A part of a SIF file: its type, the file system and the role of a partition, its architecture, and its content.
type Part<'p> = (u32, u32, u32, &'p str, &'p [u8]);

/// A SIF file as `pkg/sif` lays it out.
fn sif(parts: &[Part<'_>]) -> Vec<u8> {
    const FIRST: usize = 4096;
    let mut file = vec![0; FIRST];
    file[32..42].copy_from_slice(b"SIF_MAGIC\0");
    file[88..96].copy_from_slice(&(parts.len() as u64).to_le_bytes());
    file[96..104].copy_from_slice(&128_u64.to_le_bytes());
    for (number, (kind, system, role, architecture, content)) in parts.iter().enumerate() {
        let (at, place) = (128 + number * 585, file.len() as u64);
        file[at..at + 4].copy_from_slice(&kind.to_le_bytes());
        file[at + 4] = 1;
        file[at + 17..at + 25].copy_from_slice(&place.to_le_bytes());
        file[at + 201..at + 205].copy_from_slice(&system.to_le_bytes());
        file[at + 205..at + 209].copy_from_slice(&role.to_le_bytes());
        file[at + 209..at + 211].copy_from_slice(architecture.as_bytes());
        file.extend_from_slice(content);
        file.resize(file.len().next_multiple_of(4096), 0);
    }
    file
}

fn read(bytes: &[u8]) -> Result<Inventory, Failure> {
    let folder = tempfile::tempdir().unwrap();
    let image = Image::of_sif("sif:x", &put(folder.path(), "x.sif", bytes), &options(None))?;
    Ok(Inventory::of_image(image, &Options::default()))
}

#[track_caller]
fn refused(bytes: &[u8], message: &str, fix: &str) {
    let problem = read(bytes).unwrap_err().diagnostics.remove(0);
    assert!(problem.message.contains(message), "{}", problem.message);
    assert!(problem.fix.as_ref().unwrap().contains(fix), "{:?}", problem.fix);
}

const ENV: &str = "#!/bin/sh\nexport PATH=\"/usr/bin\"\nexport LD_LIBRARY_PATH=\"${LD_LIBRARY_PATH:-\"/opt/lib\"}\"\n";
const RUN: &str = "#!/bin/sh\nOCI_ENTRYPOINT='\"/bin/run\" \"a b\"'\nOCI_CMD='\"c\"'\n";

#[test]
fn what_it_says_of_itself() {
    let system = squashfs(&[
        ("etc/os-release", "ID=debian\n"),
        (".singularity.d/env/10-docker2singularity.sh", ENV),
        (
            ".singularity.d/env/90-environment.sh",
            "#!/bin/sh\nexport LD_LIBRARY_PATH=/x:$LD_LIBRARY_PATH\n. /setup.sh\n",
        ),
        (".singularity.d/env/99-base.sh", "if true; then\n LD_LIBRARY_PATH=/no\nfi\n"),
        (".singularity.d/labels.json", "{\"a\": \"b\"}"),
        (".singularity.d/runscript", RUN),
    ]);
    let overlay: Part<'_> = (0x4004, 2, 4, "04", b"ext3");
    let inventory = read(&sif(&[(0x4004, 1, 2, "04", &system), overlay])).unwrap();
    assert_eq!(inventory.variables["LD_LIBRARY_PATH"], "/x:/opt/lib");
    let image = inventory.image.unwrap();
    assert_eq!(image.config.platform.as_deref(), Some("linux/arm64"));
    assert_eq!(image.config.command, ["/bin/run", "a b", "c"]);
    assert_eq!(image.config.labels["a"], "b");
    let [overlay, line] = &image.unread[..] else { panic!("{:?}", image.unread) };
    assert!(overlay.contains("overlay") && line.contains("`. /setup.sh` of 90-environment.sh"), "{line}");
    // Alone it has no descriptor, and the same files.
    let inventory = read(&system).unwrap();
    assert_eq!(inventory.variables["LD_LIBRARY_PATH"], "/x:/opt/lib");
    assert_eq!(inventory.image.unwrap().config.platform, None);
}

#[test]
fn every_reason_is_said() {
    let system = squashfs(&[("etc/os-release", "ID=debian\n")]);
    let with_compression = |number: u8| {
        let mut other = system.clone();
        other[20] = number;
        other
    };
    for (number, name) in [(2, "lzma"), (3, "lzo"), (4, "xz"), (5, "lz4")] {
        refused(&with_compression(number), &format!("compressed with {name}"), "unsquashfs -d FOLDER FILE");
    }
    refused(&with_compression(9), "a compression that there is none of (9)", "make or fetch");
    refused(&system[..150], "it is cut short", "make or fetch");
    let partition = |kind: u32| sif(&[(0x4004, kind, 2, "02", b"no squashfs")]);
    refused(&partition(1), "no squashfs, though its head says so", "make or fetch");
    refused(&partition(2), "its root filesystem is ext3", "apptainer build --sandbox");
    refused(&partition(5), "is encrypted", "built from");
    refused(&sif(&[(0x400a, 0, 0, "02", b"{}")]), "OCI image instead of a root filesystem", "registry:NAME");
    let whole = sif(&[(0x4004, 1, 2, "02", &system)]);
    assert!(read(&whole).is_ok());
    refused(&whole[..4096], "lies beyond its end", "make or fetch");
}

/// What a container runtime refuses, mounts and finds first is nothing to Apptainer.
#[test]
fn no_container_runtime_starts_it() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::create_dir_all(root.join("etc")).unwrap();
    fs::write(root.join("etc/os-release"), "ID=debian\n").unwrap();
    let libcuda = Elf::library("libcuda.so.1");
    libcuda.write(&root.join("usr/local/cuda/compat/libcuda.so.570.124.06"));
    symlink("libcuda.so.570.124.06", root.join("usr/local/cuda/compat/libcuda.so.1")).unwrap();
    libcuda.write(&root.join("usr/lib64/libcuda.so.535.54.03"));
    symlink("libcuda.so.535.54.03", root.join("usr/lib64/libcuda.so.1")).unwrap();
    let codes = |library_path: &str| -> Vec<&'static str> {
        let variables = [("NVIDIA_REQUIRE_CUDA", "cuda>=12.8"), ("LD_LIBRARY_PATH", library_path)];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let question = Question { gpus: &["RTX 4090"], driver: Some("550.54.15"), ..Question::default() };
        let of_image = ["cuda-compat-wrong-target", "driver-library-in-image", "image-driver-floor"];
        let findings = ask(root, &variables, root, &question).findings;
        of_image.into_iter().filter(|code| findings.iter().any(|finding| finding.code == *code)).collect()
    };
    assert_eq!(codes(""), ["cuda-compat-wrong-target", "driver-library-in-image", "image-driver-floor"]);
    fs::create_dir(root.join(".singularity.d")).unwrap();
    assert_eq!(codes(""), [""; 0]);
    // What comes before that which it binds.
    assert_eq!(codes("/usr/lib64"), ["driver-library-in-image"]);
    assert_eq!(codes("/usr/local/cuda/compat"), ["cuda-compat-wrong-target"]);
}

#[test]
fn what_it_requires_is_not_asked_for() {
    let script = "export NVIDIA_REQUIRE_CUDA=\"${NVIDIA_REQUIRE_CUDA:-\"cuda>=12.8\"}\"\n";
    let system =
        squashfs(&[("etc/os-release", "ID=debian\n"), (".singularity.d/env/10-docker2singularity.sh", script)]);
    let inventory = read(&sif(&[(0x4004, 1, 2, "02", &system)])).unwrap();
    assert_eq!(inventory.variables["NVIDIA_REQUIRE_CUDA"], "cuda>=12.8");
    let question = Question { gpus: &["A100"], driver: Some("550.54.15"), ..Question::default() };
    assert_quiet(&judge(&inventory, Path::new("/"), &question), "image-driver-floor");
}
