//! Processes made for a test: what `/proc` says of one that has mapped certain files.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use gpulock::check::Findings;
use gpulock::diag::Failure;
use gpulock::inventory::process::ProcFs;
use gpulock::inventory::{Inventory, Options};

use super::venv::{CUDART, NCCL, NVJITLINK, Question, TORCH_MODULE, Venv, judge};
use crate::link::fixture::Elf;

/// What a process of [`Venv::with_torch`] has loaded after `import torch`.
pub const TORCH: [&str; 9] = [
    TORCH_MODULE,
    "torch/lib/libtorch_cuda.so",
    "torch/lib/libtorch_cpu.so",
    "torch/lib/libc10.so",
    "nvidia/cudnn/lib/libcudnn.so.9",
    NCCL,
    "nvidia/cusparse/lib/libcusparse.so.12",
    NVJITLINK,
    CUDART,
];
pub const PID: u32 = 4242;

/// A process that is described by files.
pub struct Process {
    folder: PathBuf,
    address: u64,
    maps: Vec<u8>,
}

impl Process {
    /// One that has loaded nothing but its program.
    pub fn of(venv: &Venv) -> Self {
        let base = venv.path().parent().unwrap().canonicalize().unwrap();
        let folder = base.join(format!("proc/{PID}"));
        fs::create_dir_all(folder.join("map_files")).unwrap();
        let program = base.join("bin/python3.11");
        Elf::program().defines(&["PyModule_Create2"]).write(&program);
        symlink(&program, folder.join("exe")).unwrap();
        symlink("/", folder.join("root")).unwrap();
        fs::write(folder.join("stat"), format!("{PID} (python3) S 1 {}1 0 77 0\n", "0 ".repeat(16))).unwrap();
        fs::write(folder.join("environ"), b"PATH=/bin\0").unwrap();
        let mut process = Self { folder, address: 0x7f00_0000_0000, maps: Vec::new() };
        process.maps(&program);
        process
    }

    /// One after `import torch`.
    pub fn with_torch(venv: &Venv) -> Self {
        let mut process = Self::of(venv);
        for path in TORCH {
            process.maps(&venv.site().join(path));
        }
        process
    }

    /// It has loaded a file.
    pub fn maps(&mut self, path: &Path) {
        let path = path.canonicalize().unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        self.line(path.as_os_str().as_bytes(), inode);
    }

    /// It has loaded a file that was replaced or removed since; `kept` is where what it has is.
    pub fn maps_deleted(&mut self, path: &Path, kept: &Path) {
        let name = [
            path.parent().unwrap().canonicalize().unwrap().join(path.file_name().unwrap()).as_os_str().as_bytes(),
            b" (deleted)",
        ]
        .concat();
        self.line(&name, fs::metadata(kept).unwrap().ino());
        let range = format!("{:x}-{:x}", self.address, self.address + 0x1000);
        fs::hard_link(kept, self.folder.join("map_files").join(range)).unwrap();
    }

    /// As the kernel writes it.
    pub fn line(&mut self, path: &[u8], inode: u64) {
        self.address -= 0x10_0000;
        let begin = self.address;
        let line = format!("{begin:x}-{:x} r-xp 00000000 00:00 {inode}      ", begin + 0x1000);
        // By address; what is loaded later is mapped below.
        self.maps.splice(0..0, [line.as_bytes(), path, b"\n"].concat());
    }

    /// It was started with these.
    pub fn variables(&self, text: &str) {
        fs::write(self.folder.join("environ"), text.replace('\n', "\0")).unwrap();
    }

    pub fn read(&self) -> Result<Inventory, Failure> {
        fs::write(self.folder.join("maps"), &self.maps).unwrap();
        let options = Options { jobs: Some(1), ..Options::default() };
        Inventory::of_process(&ProcFs::new(self.folder.parent().unwrap()), PID, &options)
    }

    pub fn check(&self) -> Findings {
        self.ask(&Question::default())
    }

    pub fn ask(&self, question: &Question<'_>) -> Findings {
        judge(&self.read().unwrap(), Path::new("/"), question)
    }
}
