//! `gpulock verify pid:N` on a process in a container, asked from outside: the container's files are judged, not those that
//! this machine has under the same paths.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use gpulock::inventory::process::{ProcFs, with_children};

use super::environment::{findings, healthy, named, part, report};
use super::running::Running;
use crate::build::base;
use crate::buildah::Buildah;
use crate::run::{folder, gpulock, network, succeed};

/// Below site-packages, as in the environment that the container has.
const CUDNN: &str = "nvidia/cudnn/lib";

/// The process of that Python which cuDNN is loaded in: a child of a child of buildah.
fn with_cudnn(buildah: u32) -> u32 {
    let processes = ProcFs::default();
    let all = with_children(buildah, &processes.all().unwrap());
    let has =
        |pid: &u32| processes.mapped_names(*pid).is_ok_and(|names| names.iter().any(|name| name == "libcudnn.so.9"));
    all.into_iter().find(has).expect("a process with cuDNN")
}

/// The container has two of the files of cuDNN 9.10.2; this machine has all of cuDNN 9.11.0 in the same folder.
#[test]
fn network_root_files_are_those_of_the_container() {
    if !network() {
        return;
    }
    let Some(healthy) = healthy() else { return };
    let own = folder();
    let site = own.path().canonicalize().unwrap().join("venv/lib/python3.11/site-packages");
    fs::create_dir_all(site.join("nvidia/cudnn")).unwrap();
    let newer = part("nvidia-cudnn-cu12==9.11.0.98", None).join(CUDNN);
    succeed(Command::new("cp").arg("-al").arg(&newer).arg(site.join(CUDNN)));

    let buildah = Buildah::new("localhost");
    base::system(&buildah, buildah.path());
    let container = buildah.run(&["from", "--pull-never", base::SYSTEM]);
    let older = healthy.path().join("lib/python3.11/site-packages").join(CUDNN);
    for file in ["libcudnn.so.9", "libcudnn_graph.so.9"] {
        let to = site.join(CUDNN).join(file);
        succeed(buildah.command(&["copy", "--quiet", &container]).arg(older.join(file)).arg(to));
    }
    let shim = site.join(CUDNN).join("libcudnn.so.9");
    let code = format!("import ctypes; print(ctypes.CDLL({:?}).cudnnGetVersion())", shim.display().to_string());
    let mut command = buildah.command(&["run", &container, "--", "python3"]);
    command.stderr(Stdio::inherit());
    let running = Running::of(command, &code, &[]);
    let verify = |path: &str| report(gpulock(own.path(), &own.path().join("cache")), Path::new(path), &[]);
    let pid = format!("pid:{}", with_cudnn(running.pid()));

    let (report, code) = verify(&site.display().to_string());
    assert_eq!((code, &report["stack"][0]), (Some(0), &"cuDNN 9.11.0".into()), "{report:#}");
    let (report, code) = verify(&pid);
    println!("{}: {}", report["stack"], findings(&report, &["error", "warning", "note"]).join("\n    "));
    assert_eq!((code, &report["stack"][0]), (Some(1), &"cuDNN 9.10.2".into()), "{report:#}");
    let errors = findings(&report, &["error"]);
    assert!(errors.iter().all(|error| error.starts_with("cudnn-sublibrary-missing ")), "{report:#}");
    assert!(named(&report, "cudnn-sublibrary-missing", &["libcudnn_engines_precompiled.so.9"]), "{report:#}");

    // Replaced in the container while the process runs.
    let root = buildah.run(&["mount", &container]);
    let place = Path::new(&root).join(site.strip_prefix("/").unwrap()).join(CUDNN).join("libcudnn_graph.so.9");
    fs::remove_file(&place).unwrap();
    fs::copy(newer.join("libcudnn_graph.so.9"), &place).unwrap();
    let (report, code) = verify(&pid);
    println!("{}", findings(&report, &["error"]).join("\n    "));
    assert_eq!(code, Some(1), "{report:#}");
    assert!(named(&report, "deleted-mapping", &["9.10.2 is mapped, 9.11.0 is on disk"]), "{report:#}");
    running.end();
}
