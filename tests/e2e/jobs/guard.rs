//! The guard under real torch: right, and wrong in the ways that it is there for.

use std::path::Path;
use std::process::Command;

use super::{export, lock, said};
use crate::run::{self, folder};
use crate::verify::environment::{healthy, part};

/// What the guard in `folder` says under that Python.
fn guard(python: &Path, folder: &Path, demand: &str, libraries: Option<&Path>) -> (bool, String) {
    let mut command = Command::new(python);
    command.args(["-m", "gpulock_guard"]).current_dir(folder).env("GPULOCK_GUARD", demand);
    command.env_remove("LD_LIBRARY_PATH").envs(libraries.map(|path| ("LD_LIBRARY_PATH", path)));
    said(&mut command)
}

#[test]
fn network_the_guard_knows_its_torch_from_another() {
    if !run::network() {
        return;
    }
    let Some(environment) = healthy() else { return };
    let python = environment.path().join("bin/python");
    let folder = folder();
    let folder = folder.path();
    lock(folder, "2.8.0", "RTX 5090", "");
    export(folder, &["guard"], "gpulock_guard.py");
    let (good, text) = guard(&python, folder, "software", None);
    assert!(good, "{text}");
    // CUDA is left alone: a process that is forked afterwards could use it.
    let code = "import gpulock_guard, torch; print(torch.cuda.is_initialized(), torch.cuda._is_in_bad_fork())";
    let mut command = Command::new(&python);
    let (good, text) = said(command.args(["-c", code]).current_dir(folder).env("GPULOCK_GUARD", "software"));
    assert!(good && text.contains("False False"), "{text}");
    if !Path::new("/proc/driver/nvidia/version").exists() {
        let (good, text) = guard(&python, folder, "all", None);
        assert!(!good && text.contains("driver: the lock has 525.60.13 or later, here is none"), "{text}");
        assert!(!text.contains("torch: "), "{text}");
    }
    for (cudnn, words) in
        [("9.11.0.98", "here is 9.11.0\n"), ("9.5.1.17", "here is one that torch refuses (cuDNN version")]
    {
        let libraries = part(&format!("nvidia-cudnn-cu12=={cudnn}"), None).join("nvidia/cudnn/lib");
        let (good, text) = guard(&python, folder, "software", Some(&libraries));
        assert!(!good && text.contains("1 thing differs") && text.contains(words), "{text}");
        // The files that were loaded say where it is.
        assert!(text.contains(&format!("{}/libcudnn", libraries.display())), "{text}");
    }
    // Python without torch.
    let (good, text) = guard(Path::new("python3"), folder, "software", None);
    assert!(!good && text.contains("torch: the lock has 2.8.0+cu128, here is none that can be imported"), "{text}");
    // The same torch, for the lock of another one.
    lock(folder, "2.3.0", "A100", "");
    export(folder, &["guard"], "gpulock_guard.py");
    let (good, text) = guard(&python, folder, "software", None);
    let expected = [
        "4 things differ",
        "torch: the lock has 2.3.0+cu121, here is 2.8.0+cu128",
        "CUDA of torch: the lock has 12.1, here is 12.8",
        "cuDNN: the lock has 8.9.2.26, here is 9.10.2",
        "NCCL: the lock has 2.20.5, here is 2.27.3",
    ];
    assert!(!good && expected.iter().all(|words| text.contains(words)), "{text}");
}
