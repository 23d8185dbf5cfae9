//! Core files made for a test, as the kernel writes them (fs/binfmt_elf.c), of a process that has mapped certain files.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use gpulock::diag::{Failure, Severity};
use gpulock::inventory::{Inventory, Options};

use super::process::TORCH;
use super::venv::{NCCL, Question, Venv, judge};
use crate::link::fixture::Elf;

const PID: u32 = 4242;
const SIGSEGV: u32 = 11;
const STACK: u64 = 0x7ffc_0000_0000;
const PAGE: u64 = 0x1000;

/// A core file in the making.
struct Core {
    path: PathBuf,
    program: PathBuf,
    /// Files with the address of each.
    files: Vec<(PathBuf, u64)>,
    /// Address at which the thread was.
    at: u64,
    variables: String,
    /// As gdb's gcore writes it: code that is in files is left out.
    by_gdb: bool,
}

impl Core {
    /// Of a process that has loaded nothing but its program.
    fn of(venv: &Venv) -> Self {
        let base = venv.path().parent().unwrap().canonicalize().unwrap();
        let program = base.join("bin/python3.11");
        Elf::program().defines(&["PyModule_Create2"]).write(&program);
        let files = vec![(program.clone(), 0x40_0000)];
        Self { path: base.join("core"), program, files, at: 0, variables: String::new(), by_gdb: false }
    }

    /// Of one that has done `import torch`.
    fn with_torch(venv: &Venv) -> Self {
        let mut core = Self::of(venv);
        for (i, path) in TORCH.iter().enumerate() {
            let path = venv.site().canonicalize().unwrap().join(path);
            core.files.push((path, 0x7f00_0000_0000 - 0x10_0000 * i as u64));
        }
        core
    }

    /// Died in the file whose name ends so.
    fn died_in(mut self, name: &str) -> Self {
        let file = self.files.iter().find(|(path, _)| path.to_string_lossy().ends_with(name));
        self.at = file.unwrap().1 + 0x10;
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let mut files = self.files.clone();
        files.sort_by_key(|(_, address)| *address);
        let strings = format!("python\0--opt=1\0{}python\0", self.variables);
        let name = STACK + strings.len() as u64 - 7;
        let mut status = vec![0; 336];
        status[12] = SIGSEGV as u8;
        status[32..36].copy_from_slice(&PID.to_le_bytes());
        status[240..248].copy_from_slice(&self.at.to_le_bytes());
        let mut information = vec![0; 136];
        information[24..28].copy_from_slice(&PID.to_le_bytes());
        information[40..46].copy_from_slice(b"python");
        let mut signal = vec![0; 128];
        signal[0..4].copy_from_slice(&SIGSEGV.to_le_bytes());
        signal[8] = 1;
        signal[16] = 0x10;
        let auxiliary = numbers(&[3, 0x40_0040, 31, name, 0, 0]);
        // The page of the headers, and one of code behind it where the two are told apart.
        let pages = if self.by_gdb { 2 } else { 1 };
        let mut mapped = numbers(&[files.len() as u64 * pages, PAGE]);
        for (_, address) in &files {
            (0..pages).for_each(|at| mapped.extend(numbers(&[address + PAGE * at, address + PAGE * (at + 1), at])));
        }
        for (path, _) in &files {
            (0..pages).for_each(|_| mapped.extend([path.as_os_str().as_bytes(), b"\0"].concat()));
        }
        let flags = if self.by_gdb { 4 } else { 5 };
        let kinds = [(1, status), (3, information), (0x5349_4749, signal), (6, auxiliary), (0x4649_4c45, mapped)];
        let notes: Vec<u8> = kinds.into_iter().flat_map(|(kind, content)| note(kind, &content)).collect();

        let segments = files.len() + 2;
        let mut at = 64 + 56 * segments as u64;
        let mut headers = segment(4, 0, (at, notes.len() as u64), (0, 0));
        at += notes.len() as u64;
        let mut memory = Vec::new();
        for (path, address) in &files {
            let mut page = fs::read(path).unwrap_or_default();
            page.truncate(PAGE as usize);
            headers.extend(segment(1, flags, (at, page.len() as u64), (*address, PAGE)));
            at += page.len() as u64;
            memory.extend(page);
        }
        headers.extend(segment(1, 6, (at, strings.len() as u64), (STACK, PAGE)));
        memory.extend(strings.as_bytes());
        let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
        elf.resize(16, 0);
        elf.extend([4, 0, 62, 0, 1, 0, 0, 0]);
        elf.extend(numbers(&[0, 64, 0]));
        elf.extend([0, 0, 0, 0, 64, 0, 56, 0, segments as u8, 0, 64, 0, 0, 0, 0, 0]);
        [elf, headers, notes, memory].concat()
    }

    fn write(&self, bytes: &[u8]) -> Result<Inventory, Failure> {
        fs::write(&self.path, bytes).unwrap();
        Inventory::of_core(&self.path, &Options { jobs: Some(1), ..Options::default() })
    }

    fn read(&self) -> Result<Inventory, Failure> {
        self.write(&self.bytes())
    }
}

fn numbers(all: &[u64]) -> Vec<u8> {
    all.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn segment(kind: u32, flags: u32, file: (u64, u64), memory: (u64, u64)) -> Vec<u8> {
    let words = [kind.to_le_bytes(), flags.to_le_bytes()].concat();
    [words, numbers(&[file.0, memory.0, 0, file.1, memory.1, 0])].concat()
}

fn note(kind: u32, content: &[u8]) -> Vec<u8> {
    let mut note = [5, content.len() as u32, kind].iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    note.extend(b"CORE\0\0\0\0");
    note.extend(content);
    note.resize(note.len().next_multiple_of(4), 0);
    note
}

fn message(failure: &Failure) -> String {
    failure.diagnostics.iter().map(|one| format!("{}: {}", one.code, one.message)).collect()
}

#[test]
fn a_healthy_one_is_read_as_its_process() {
    let venv = Venv::with_torch();
    let mut core = Core::with_torch(&venv).died_in("libcudnn.so.9");
    core.variables = "PATH=/bin\0NAME=a=b\0".into();
    let inventory = core.read().unwrap();
    let process = inventory.process.as_ref().unwrap();
    let death = process.death.as_ref().unwrap();
    assert_eq!((process.pid, process.name.as_str(), death.signal), (PID, "python", 11));
    assert!(death.at.as_ref().unwrap().ends_with("nvidia/cudnn/lib/libcudnn.so.9"), "{death:?}");
    assert_eq!(death.fault, Some(0x10));
    assert_eq!(process.mapped.len(), TORCH.len() + 1);
    assert_eq!(inventory.subject.path, core.program);
    let variables: Vec<(&str, &str)> =
        inventory.variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(variables, [("NAME", "a=b"), ("PATH", "/bin")]);
    assert_eq!(judge(&inventory, Path::new("/"), &Question::default()).findings, []);
}

/// A library that is gone is told, and what others would find in it is not said to be missing.
#[test]
fn what_is_gone_is_said() {
    let venv = Venv::with_torch();
    let core = Core::with_torch(&venv);
    let bytes = core.bytes();
    venv.remove(NCCL);
    let found = judge(&core.write(&bytes).unwrap(), Path::new("/"), &Question::default());
    let said = "1 library was replaced or removed after process 4242 loaded it; not judged here";
    let [only] = &found.findings[..] else { panic!("{:?}", found.findings) };
    assert_eq!((only.code, only.severity), ("deleted-mapping", Severity::Warning));
    assert!(only.message.contains(said), "{}", only.message);
}

/// Code that the core leaves out was there all the same.
#[test]
fn one_that_gdb_wrote() {
    let venv = Venv::with_torch();
    let mut core = Core::with_torch(&venv);
    core.by_gdb = true;
    let data = venv.path().parent().unwrap().canonicalize().unwrap().join("data");
    fs::write(&data, "no library").unwrap();
    core.files.push((data, 0x7e00_0000_0000));
    let bytes = core.bytes();
    let mapped = core.write(&bytes).unwrap().process.unwrap().mapped;
    assert_eq!(mapped.len(), TORCH.len() + 1, "{mapped:?}");
    venv.put(NCCL, &Elf::library("libnccl.so.2").needed(&["libnowhere.so.1"]));
    let found = judge(&core.write(&bytes).unwrap(), Path::new("/"), &Question::default());
    let codes: Vec<&str> = found.findings.iter().map(|finding| finding.code).collect();
    assert_eq!(codes, ["deleted-mapping"], "{:?}", found.findings);
}

/// A core that ends before the memory does not say which files its process had.
#[test]
fn cut_short_is_said() {
    let venv = Venv::with_torch();
    let core = Core::with_torch(&venv);
    let bytes = core.bytes();
    let memory: u64 = core.files.iter().map(|(path, _)| fs::metadata(path).unwrap().len().min(PAGE)).sum();
    let found =
        judge(&core.write(&bytes[..bytes.len() - memory as usize]).unwrap(), Path::new("/"), &Question::default());
    let [only] = &found.findings[..] else { panic!("{:?}", found.findings) };
    assert_eq!((only.code, only.severity), ("deleted-mapping", Severity::Warning));
    assert!(only.message.starts_with("the core has kept nothing of /"), "{}", only.message);
    assert!(only.message.contains("and 9 more that process 4242 had mapped"), "{}", only.message);
}

/// Another file of that name is not what was loaded, with a build id or without.
#[test]
fn what_was_replaced_is_said() {
    let venv = Venv::with_torch();
    let core = Core::with_torch(&venv);
    let bytes = core.bytes();
    venv.put(NCCL, &Elf::library("libnccl.so.2").needed(&["libnowhere.so.1"]));
    let found = judge(&core.write(&bytes).unwrap(), Path::new("/"), &Question::default());
    let codes: Vec<&str> = found.findings.iter().map(|finding| finding.code).collect();
    assert_eq!(codes, ["deleted-mapping"], "{:?}", found.findings);
}

#[test]
fn of_another_machine() {
    let venv = Venv::with_torch();
    let core = Core::with_torch(&venv);
    let bytes = core.bytes();
    fs::remove_file(&core.program).unwrap();
    let said = message(&core.write(&bytes).unwrap_err());
    assert!(said.starts_with("core-elsewhere: the core is of /"), "{said}");
}

/// Cut short and with bytes changed: read or refused, never more.
#[test]
fn damaged() {
    let venv = Venv::with_torch();
    let core = Core::of(&venv);
    let bytes = core.bytes();
    let whole = bytes.len();
    for end in (0..whole).step_by(61) {
        let _ = core.write(&bytes[..end]);
    }
    for at in (0..whole.min(1500)).step_by(5) {
        let mut bytes = bytes.clone();
        bytes[at] = 0xff;
        let _ = core.write(&bytes);
    }
    let said = message(&core.write(b"hello").unwrap_err());
    assert_eq!(said, format!("not-a-subject: {} is no core file that can be read", core.path.display()));
    let mut no_core = bytes.clone();
    no_core[16] = 3;
    assert!(core.write(&no_core).is_err());
    let mut many = bytes;
    many[56..58].copy_from_slice(&[0xff, 0xff]);
    assert!(core.write(&many).is_err());
}
