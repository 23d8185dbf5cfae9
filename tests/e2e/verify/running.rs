//! `gpulock verify pid:N` on running processes of real wheels: healthy ones, and those that were put together wrongly.
//!
//! What a process has mapped is read a second time here, line by line from `/proc/PID/maps`.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gpulock::inventory::process::ProcFs;
use gpulock::inventory::{Inventory, Options};
use serde_json::Value;

use super::environment::{Changed, Environment, findings, healthy, named, part, report};
use crate::run::{folder, gpulock, network};

/// cuDNN is opened by its first call.
const TORCH: &str = "import torch; torch.backends.cudnn.version()";

/// A Python that has run some code and waits for more.
pub struct Running {
    python: Child,
    folder: tempfile::TempDir,
}

impl Running {
    /// Runs `code`, with variables.
    pub fn start(environment: &Path, code: &str, variables: &[(&str, String)]) -> Self {
        Self::of(Command::new(environment.join("bin/python")), code, variables)
    }

    pub fn of(mut command: Command, code: &str, variables: &[(&str, String)]) -> Self {
        let folder = folder();
        let wait = format!(
            "{code}\nimport sys\nprint('up', flush=True)\nfor line in sys.stdin: exec(line); print('done', flush=True)"
        );
        command.args(["-W", "ignore", "-c", &wait]).current_dir(folder.path());
        command.env_remove("LD_LIBRARY_PATH").env_remove("LD_PRELOAD").stdin(Stdio::piped()).stdout(Stdio::piped());
        let python = command.envs(variables.iter().map(|(name, value)| (name, value))).spawn().unwrap();
        let mut running = Self { python, folder };
        running.wait_for("up");
        running
    }

    fn wait_for(&mut self, word: &str) {
        let mut lines = BufReader::new(self.python.stdout.as_mut().unwrap()).lines();
        let line = lines.find_map(|line| line.ok().filter(|line| line == word));
        assert_eq!(line.as_deref(), Some(word), "the process ended");
    }

    /// It goes on.
    fn run(&mut self, code: &str) {
        writeln!(self.python.stdin.as_mut().unwrap(), "{code}").unwrap();
        self.wait_for("done");
    }

    pub fn pid(&self) -> u32 {
        self.python.id()
    }

    /// It goes on to its end, for what has to be tidied up there.
    pub fn end(mut self) {
        drop(self.python.stdin.take());
        assert!(self.python.wait().unwrap().success());
    }

    fn verify(&self, arguments: &[&str]) -> (Value, Option<i32>) {
        let pid = format!("pid:{}", self.pid());
        report(gpulock(self.folder.path(), &self.folder.path().join("cache")), Path::new(&pid), arguments)
    }

    /// The ELF files of which something may be executed, as `/proc` has them.
    fn maps(&self) -> BTreeSet<PathBuf> {
        let text = fs::read(format!("/proc/{}/maps", self.pid())).unwrap();
        let paths = text.split(|byte| *byte == b'\n').filter_map(|line| {
            let at = line.iter().position(|byte| *byte == b'/')?;
            let words = String::from_utf8_lossy(&line[..at]).into_owned();
            let path = Path::new(std::ffi::OsStr::from_bytes(&line[at..])).to_owned();
            words.split_ascii_whitespace().nth(1)?.contains('x').then_some(path)
        });
        paths.filter(|path| fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"\x7fELF"))).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.python.kill();
        let _ = self.python.wait();
    }
}

/// Nothing is wrong, and what is said to be mapped is.
fn assert_healthy(running: &Running) {
    let (report, code) = running.verify(&[]);
    assert_eq!((code, findings(&report, &["error", "warning", "note"])), (Some(0), Vec::new()), "{report:#}");
    assert_eq!(report["subject"]["kind"], "process");
    let inventory = Inventory::of_process(&ProcFs::default(), running.pid(), &Options::default()).unwrap();
    let said: BTreeSet<PathBuf> = inventory.libraries().iter().map(|library| library.path.clone()).collect();
    assert_eq!(said, running.maps());
    println!("{}: {} files mapped, {}", report["subject"]["path"], said.len(), report["stack"]);
}

#[test]
fn network_healthy_processes_are_clean() {
    if !network() {
        return;
    }
    let Some(healthy) = healthy() else { return };
    assert_healthy(&Running::start(&healthy.path(), TORCH, &[]));
    assert_healthy(&Running::start(&healthy.path(), "import torch, torchvision, torchaudio, numpy", &[]));
    for (name, requirements) in [
        ("torch-2.3.0", ["torch==2.3.0", "torchvision==0.18.0", "numpy<2"]),
        ("torch-2.15.0", ["torch==2.15.0", "torchvision", "numpy"]),
    ] {
        let Some(environment) = Environment::kept(name, "3.11", &requirements.map(str::to_owned)) else { return };
        assert_healthy(&Running::start(&environment.path(), &format!("{TORCH}; import torchvision"), &[]));
    }
}

/// A process that is put together wrongly, and what is said of it.
struct Case {
    name: &'static str,
    change: fn(&mut Changed) -> Vec<(&'static str, String)>,
    code: &'static str,
    /// Done once the process is up.
    then: fn(&Changed, &mut Running),
    rule: &'static str,
    words: &'static [&'static str],
}

const CASES: [Case; 7] = [
    Case {
        name: "another cuDNN on LD_LIBRARY_PATH",
        change: |_| vec![("LD_LIBRARY_PATH", cudnn().display().to_string())],
        code: TORCH,
        then: |_, _| {},
        rule: "loaded-from-elsewhere",
        words: &["9.11.0 in place of 9.10.2", "by LD_LIBRARY_PATH", "asked for by nvidia/cudnn/lib/libcudnn.so.9"],
    },
    Case {
        name: "a part of cuDNN of another release",
        change: |env| {
            env.replace("nvidia-cudnn-cu12==9.11.0.98", "nvidia/cudnn/lib/libcudnn_ops.so.9");
            Vec::new()
        },
        code: TORCH,
        then: |_, _| {},
        rule: "cudnn-version-mixed",
        words: &["9.11.0", "9.10.2"],
    },
    Case {
        name: "a part of cuDNN that is not there",
        change: |env| {
            env.remove("nvidia/cudnn/lib/libcudnn_engines_precompiled.so.9");
            Vec::new()
        },
        code: TORCH,
        then: |_, _| {},
        rule: "cudnn-sublibrary-missing",
        words: &["libcudnn_engines_precompiled.so.9", "the first convolution or attention on a GPU"],
    },
    Case {
        name: "another nvJitLink in LD_PRELOAD",
        change: |_| {
            let folder = part("nvidia-nvjitlink-cu12==12.9.86", None).join("nvidia/nvjitlink/lib");
            vec![("LD_PRELOAD", folder.join("libnvJitLink.so.12").display().to_string())]
        },
        code: TORCH,
        then: |_, _| {},
        rule: "loaded-twice",
        words: &["nvjitlink 2 times", "12.9.86", "12.8.93", "found by LD_PRELOAD"],
    },
    Case {
        name: "cuDNN replaced while the process runs",
        change: |_| Vec::new(),
        code: TORCH,
        then: |env, _| env.replace("nvidia-cudnn-cu12==9.11.0.98", "nvidia/cudnn/lib"),
        rule: "deleted-mapping",
        words: &["9.10.2 is mapped, 9.11.0 is on disk", "libcudnn_graph.so.9"],
    },
    Case {
        name: "cuDNN removed while the process runs",
        change: |_| Vec::new(),
        code: TORCH,
        then: |env, _| env.remove("nvidia/cudnn/lib/libcudnn_graph.so.9"),
        rule: "deleted-mapping",
        words: &["libcudnn_graph.so.9 was removed", "nothing is there now"],
    },
    Case {
        name: "a second cuDNN opened by its path",
        change: |_| Vec::new(),
        code: TORCH,
        then: |_, running| {
            let shim = cudnn().join("libcudnn.so.9");
            running.run(&format!("import ctypes; ctypes.CDLL({:?})", shim.display().to_string()));
        },
        rule: "loaded-twice",
        words: &["has cudnn 2 times", "9.11.0", "9.10.2", "found by its path"],
    },
];

fn cudnn() -> PathBuf {
    part("nvidia-cudnn-cu12==9.11.0.98", None).join("nvidia/cudnn/lib")
}

#[test]
fn network_broken_processes_are_found() {
    if !network() {
        return;
    }
    let Some(healthy) = healthy() else { return };
    for case in &CASES {
        let mut changed = Changed::copy(&healthy.path());
        let variables = (case.change)(&mut changed);
        let mut running = Running::start(&changed.path, case.code, &variables);
        (case.then)(&changed, &mut running);
        let (report, code) = running.verify(&[]);
        println!("{}: {}", case.name, findings(&report, &["error", "warning", "note"]).join("\n    "));
        assert_eq!((code, &report["summary"]["error"]), (Some(1), &1.into()), "{}: {report:#}", case.name);
        assert!(named(&report, case.rule, case.words), "{}: {report:#}", case.name);
    }
}

/// A process in a mount namespace of its own, where another cuDNN lies over the environment's: its files are judged, not
/// those of this machine under the same names.
#[test]
fn network_files_are_those_of_the_process() {
    let root = fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    if !network() || !root {
        return;
    }
    let Some(healthy) = healthy() else { return };
    let changed = Changed::copy(&healthy.path());
    let place = changed.site().join("nvidia/cudnn/lib");
    let mut unshare = Command::new("unshare");
    let script = format!("mount --bind '{}' '{}' && exec \"$@\"", cudnn().display(), place.display());
    unshare.args(["--mount", "sh", "-c", &script, "sh"]).arg(changed.path.join("bin/python"));
    let running = Running::of(unshare, TORCH, &[]);
    let (report, code) = running.verify(&[]);
    println!("{}", report["stack"]);
    assert!(report["stack"].as_array().unwrap().contains(&"cuDNN 9.11.0".into()), "{report:#}");
    // The record of the package is the environment's own: its libraries are not those that were installed.
    assert_eq!(code, Some(0), "{report:#}");
    assert!(named(&report, "library-modified", &["libcudnn"]), "{report:#}");
}

/// Many mappings, a program that has nothing to do with GPUs, and one that ends.
#[test]
fn other_processes() {
    let folder = folder();
    let verify = |pid: u32| {
        let mut gpulock = gpulock(folder.path(), &folder.path().join("cache"));
        let started = Instant::now();
        let output = gpulock.args(["verify", &format!("pid:{pid}")]).output().unwrap();
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        (output.status.code(), text, started.elapsed())
    };
    let mut sleep = Command::new("sleep").arg("600").spawn().unwrap();
    let (code, text, _) = verify(sleep.id());
    assert!(code == Some(3) && text.contains("nothing here has to do with GPUs"), "{code:?} {text}");
    sleep.kill().unwrap();
    // Not waited for: it has ended and is still listed.
    let (code, text, _) = verify(sleep.id());
    assert!(code == Some(2) && text.contains("it has ended"), "{code:?} {text}");
    sleep.wait().unwrap();
    let (code, text, _) = verify(sleep.id());
    assert!(code == Some(2) && text.contains("there is no process"), "{code:?} {text}");

    let code = "import mmap, os, sys, shutil\n\
        names = ['a\\nb.so', 'x.so (deleted)', 'y\\\\012.so']\n\
        for name in names: shutil.copy('/bin/true', name)\n\
        held = [open(name, 'rb') for name in names]\n\
        kept = [mmap.mmap(f.fileno(), 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE) for f in held]\n\
        more = [mmap.mmap(held[0].fileno(), 4096, prot=mmap.PROT_READ | (mmap.PROT_EXEC if i % 2 else 0), flags=mmap.MAP_PRIVATE) for i in range(10000)]";
    let running = Running::of(Command::new("python3"), code, &[]);
    let (code, text, took) = verify(running.pid());
    println!("10,000 mappings: {took:?}");
    assert_eq!(code, Some(3), "{text}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    let inventory = Inventory::of_process(&ProcFs::default(), running.pid(), &Options::default()).unwrap();
    let process = inventory.process.as_ref().unwrap();
    let has = |name: &str| {
        process
            .mapped
            .iter()
            .any(|one| !one.deleted && one.library.path == running.folder.path().canonicalize().unwrap().join(name))
    };
    for name in ["a\nb.so", "x.so (deleted)", "y\\012.so"] {
        assert!(has(name), "{name:?}: {:?}", process.mapped);
    }
}
