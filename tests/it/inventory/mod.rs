//! Facts of machines and environments.

mod distribution;
mod e2e;
mod host;
mod integrity;
mod loader;
mod process;
mod python;
mod root;
mod subject;
mod walk;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};

use gpulock::inventory::{Inventory, Options};
use object::write::elf::{FileHeader, Writer};
use object::{Endianness, elf};

/// Writes a file and the folders that it lies in.
fn write(root: &Path, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    path
}

fn link(target: impl AsRef<Path>, root: &Path, path: &str) -> PathBuf {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(target, &path).unwrap();
    path
}

/// The smallest shared library that there is: an ELF header, followed by `marks` to tell it from others.
fn library(marks: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(Endianness::Little, true, &mut bytes);
    writer.reserve_file_header();
    let header = FileHeader {
        os_abi: elf::ELFOSABI_NONE,
        abi_version: 0,
        e_type: elf::ET_DYN,
        e_machine: elf::EM_X86_64,
        e_entry: 0,
        e_flags: 0,
    };
    writer.write_file_header(&header).unwrap();
    bytes.extend_from_slice(marks.as_bytes());
    bytes
}

fn read(path: impl AsRef<Path>) -> Inventory {
    Inventory::read(path.as_ref(), &Options { jobs: Some(2), ..Options::default() }).unwrap()
}

/// A virtual environment of Python 3.11 with no package in it; gives its site-packages folder.
fn venv(prefix: &Path) -> PathBuf {
    write(prefix, "pyvenv.cfg", "home = /nowhere/bin\ninclude-system-site-packages = false\nversion = 3.11.7\n");
    let site = prefix.join("lib/python3.11/site-packages");
    fs::create_dir_all(&site).unwrap();
    site
}

/// A package with a RECORD of these lines.
fn package(site: &Path, name: &str, version: &str, record: &str) {
    let info = format!("{name}-{version}.dist-info");
    write(site, &format!("{info}/METADATA"), format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"));
    write(site, &format!("{info}/RECORD"), record);
}

/// The names of the libraries of an inventory.
fn names(inventory: &Inventory) -> Vec<&str> {
    inventory.libraries().iter().map(|library| library.name.as_str()).collect()
}

/// What could not be read, as `name: why`.
fn troubles(inventory: &Inventory) -> Vec<String> {
    inventory.troubles.iter().map(|trouble| format!("{}: {}", trouble.name, trouble.why)).collect()
}
