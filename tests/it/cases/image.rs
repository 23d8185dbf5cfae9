//! Root filesystems: a loader of glibc or musl, Python, and packages where a distribution puts them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use gpulock::check::Findings;

use crate::check::venv::{Question, ask};
use crate::link::fixture::Elf;

/// An image in the making.
pub struct Image {
    folder: tempfile::TempDir,
    variables: BTreeMap<String, String>,
}

/// The folders that Debian's loader looks into, as its file lists them.
const FOLDERS: &str = "/lib/x86_64-linux-gnu/\0/usr/lib/x86_64-linux-gnu/\0/lib/\0/usr/lib/\0";
const ARM_FOLDERS: &str = "/lib/aarch64-linux-gnu/\0/usr/lib/aarch64-linux-gnu/\0/lib/\0/usr/lib/\0";

impl Image {
    /// Debian or Ubuntu on x86-64.
    pub fn debian() -> Self {
        Self::with_loader("usr/lib/x86_64-linux-gnu", "lib64/ld-linux-x86-64.so.2", FOLDERS, None)
    }

    /// The same on 64-bit ARM.
    pub fn debian_arm() -> Self {
        Self::with_loader("usr/lib/aarch64-linux-gnu", "lib/ld-linux-aarch64.so.1", ARM_FOLDERS, Some(183))
    }

    fn with_loader(libraries: &str, loader: &str, folders: &str, machine: Option<u16>) -> Self {
        let image = Self::empty();
        image.text("etc/os-release", "ID=debian\n");
        let own = Elf { machine, ..Elf::library("ld.so") }.section(".rodata", format!("\0{folders}\0").into_bytes());
        own.write(&image.path(loader));
        let text = "GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.\0";
        let libc = Elf { machine, ..Elf::library("libc.so.6") }.section(".rodata", text.as_bytes().to_vec());
        libc.write(&image.path(libraries).join("libc.so.6"));
        image
    }

    /// Alpine.
    pub fn alpine() -> Self {
        let image = Self::empty();
        image.text("etc/os-release", "ID=alpine\n");
        Elf::library("libc.musl-x86_64.so.1").write(&image.path("lib/ld-musl-x86_64.so.1"));
        image
    }

    fn empty() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), variables: BTreeMap::new() }
    }

    /// A path inside, as this machine names it.
    pub fn path(&self, inside: &str) -> PathBuf {
        self.folder.path().join(inside.trim_start_matches('/'))
    }

    pub fn text(&self, inside: &str, text: &str) {
        let path = self.path(inside);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn put(&self, inside: &str, elf: &Elf) {
        elf.write(&self.path(inside));
    }

    pub fn link(&self, target: &str, inside: &str) {
        let path = self.path(inside);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    /// A virtual environment; gives its folder of packages.
    pub fn venv(&self, inside: &str) -> PathBuf {
        let text = "home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.11.7\n";
        self.text(&format!("{inside}/pyvenv.cfg"), text);
        let site = self.path(&format!("{inside}/lib/python3.11/site-packages"));
        fs::create_dir_all(&site).unwrap();
        site
    }

    /// The image sets this variable.
    pub fn set(&mut self, name: &str, value: &str) {
        self.variables.insert(name.into(), value.into());
    }

    pub fn ask(&self, question: &Question<'_>) -> Findings {
        ask(self.folder.path(), &self.variables, Path::new("/"), question)
    }
}
