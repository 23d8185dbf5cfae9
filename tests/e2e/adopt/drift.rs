//! An environment of real wheels beside the lock that a project has of it: clean, and with another cuDNN installed.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::run::{self, folder, gpulock, stdout, succeed};
use crate::verify::environment::{Changed, healthy, part};

const CUDNN: &str = "nvidia-cudnn-cu12==9.11.0.98";

#[test]
fn network_check_finds_another_cudnn() {
    if !run::network() {
        return;
    }
    let Some(environment) = healthy() else { return };
    let folder = folder();
    let gpulock = || gpulock(folder.path(), &folder.path().join("cache"));
    fs::write(folder.path().join("gpulock.toml"), manifest(&environment.path())).unwrap();
    succeed(gpulock().args(["resolve", "--quiet"]));
    let check = |path: &Path, format: &str| {
        let output = gpulock().args(["check", "--format", format, "--env"]).arg(path).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, out) = check(&environment.path(), "human");
    assert!(code == Some(0) && out.ends_with("\nclean\n"), "{out}");

    let changed = Changed::copy(&environment.path());
    for place in ["nvidia/cudnn", "nvidia_cudnn_cu12-9.11.0.98.dist-info"] {
        changed.replace(CUDNN, place);
    }
    changed.remove("nvidia_cudnn_cu12-9.10.2.21.dist-info");
    assert!(part(CUDNN, None).exists());
    for format in ["human", "json", "sarif", "junit", "github", "markdown"] {
        let (code, out) = check(&changed.path, format);
        let plain = out.replace('\\', "");
        assert_eq!(code, Some(1), "{format}: {out}");
        assert!(plain.contains("9.11.0.98 is installed; the lock has 9.10.2.21"), "{format}: {out}");
    }
}

/// Asks for the torch of the environment, and for all else as it is installed there.
fn manifest(environment: &Path) -> String {
    let code = "import importlib.metadata as m\nfor d in m.distributions(): print(d.name.lower(), d.version)";
    let listed = stdout(Command::new(environment.join("bin/python")).args(["-c", code]));
    let stack = ["torch", "torchvision", "torchaudio"];
    let other = |name: &str| !stack.contains(&name) && !name.starts_with("nvidia") && name != "triton";
    let packages = listed.lines().filter_map(|line| line.split_once(' ')).filter(|(name, _)| other(name));
    let packages: String = packages.map(|(name, version)| format!("{name} = \"=={version}\"\n")).collect();
    format!(
        "[stack]\ntorch = \"2.8.0\"\ntorchvision = \"0.23.0\"\ntorchaudio = \"2.8.0\"\npython = \"3.11\"\n\n[packages]\n\
         {packages}\n[target.a]\ngpus = [\"A100\"]\ndriver = \"580\"\n"
    )
}
