//! `gpulock verify core:FILE` on core files of real processes: healthy libraries, a part of cuDNN of another release, and a
//! library that was replaced since.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::environment::{Changed, findings, healthy, named, part, report};
use crate::run::{folder, gpulock, network};

/// Dies by a signal of its own making, in libc, once cuDNN is loaded.
const DIE: &str = "import torch, ctypes; torch.backends.cudnn.version(); ctypes.string_at(16)";

/// The core file of a Python that died; `None` where this machine hands them to a program.
fn core(environment: &Path, folder: &Path) -> Option<PathBuf> {
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    if pattern.starts_with('|') || pattern.contains('/') {
        println!("not run: core files of this machine go to {pattern}");
        return None;
    }
    let python = environment.join("bin/python");
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -c unlimited; exec \"$0\" -W ignore -c \"$1\""]).arg(python).arg(DIE).current_dir(folder);
    let status = shell.env_remove("LD_LIBRARY_PATH").env("NAME", "a=b").status().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(11), "{status}");
    let files = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    files.into_iter().find(|path| path.file_name().unwrap().to_string_lossy().starts_with("core"))
}

fn verify(core: &Path, folder: &Path) -> (Value, Option<i32>) {
    let subject = format!("core:{}", core.display());
    report(gpulock(folder, &folder.join("cache")), Path::new(&subject), &[])
}

#[test]
fn network_core_files_say_what_was_loaded_and_where_it_died() {
    if !network() {
        return;
    }
    let Some(healthy) = healthy() else { return };
    let own = folder();
    let Some(file) = core(&healthy.path(), own.path()) else { return };
    let (report, code) = verify(&file, own.path());
    assert_eq!((code, findings(&report, &["error", "warning"])), (Some(0), Vec::new()), "{report:#}");
    assert_eq!(report["subject"]["kind"], "core");
    assert!(report["stack"].as_array().unwrap().contains(&"cuDNN 9.10.2".into()), "{report:#}");
    assert!(named(&report, "command-failed", &["died of SIGSEGV in libc.so.6", "0x10"]), "{report:#}");

    let changed = Changed::copy(&healthy.path());
    changed.replace("nvidia-cudnn-cu12==9.11.0.98", "nvidia/cudnn/lib/libcudnn_ops.so.9");
    let own = folder();
    let Some(file) = core(&changed.path, own.path()) else { return };
    let (report, code) = verify(&file, own.path());
    assert_eq!(code, Some(1), "{report:#}");
    assert!(named(&report, "cudnn-version-mixed", &["libcudnn_ops.so.9"]), "{report:#}");
    assert!(named(&report, "command-failed", &["explains it"]), "{report:#}");

    // Replaced after the death: what is there now was never loaded, and is not judged.
    let changed = Changed::copy(&healthy.path());
    let own = folder();
    let Some(file) = core(&changed.path, own.path()) else { return };
    let place = changed.site().join("nvidia/nccl/lib/libnccl.so.2");
    fs::remove_file(&place).unwrap();
    fs::copy(part("nvidia-cudnn-cu12==9.11.0.98", None).join("nvidia/cudnn/lib/libcudnn_adv.so.9"), &place).unwrap();
    let (report, code) = verify(&file, own.path());
    assert!(named(&report, "deleted-mapping", &["1 library was replaced", "libnccl.so.2"]), "{report:#}");
    assert_eq!((code, findings(&report, &["error"])), (Some(0), Vec::new()), "{report:#}");
}
