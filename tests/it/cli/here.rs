//! `--target auto` and `init --from-host`: this machine, by what its nvidia-smi says where there is no driver.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::program::{Place, Ran};

/// A machine with a driver of its own answers for itself, and not as the tests expect.
fn has_driver() -> bool {
    Path::new("/proc/driver/nvidia").exists() || Path::new("/sys/module/nvidia").exists()
}

/// Runs it where nvidia-smi prints these GPUs.
fn run(place: &Place, gpus: &[&str], arguments: &[&str]) -> Ran {
    let gpus: String = gpus.iter().map(|name| format!("<gpu><product_name>{name}</product_name></gpu>")).collect();
    let printed = format!("<nvidia_smi_log><driver_version>570.124.06</driver_version>{gpus}</nvidia_smi_log>");
    let tools = tempfile::tempdir().unwrap();
    let tool = tools.path().join("nvidia-smi");
    fs::write(&tool, format!("#!/bin/sh\necho '{printed}'\n")).unwrap();
    fs::set_permissions(&tool, Permissions::from_mode(0o755)).unwrap();
    Ran::of(place.command(arguments).env("PATH", format!("{}:/usr/bin:/bin", tools.path().display())).output().unwrap())
}

const TWO: &str = "[stack]\ntorch = \"2.8.0\"\npython = \"3.11\"\n\n[target.a]\ngpus = [\"H100\"]\ndriver = \"550.54.15\"\n\
                   [target.b]\ngpus = [\"RTX 3090\"]\ndriver = \"580\"\n";
const RESOLVE: [&str; 4] = ["resolve", "--offline", "--target", "auto"];

#[test]
fn a_target_of_the_manifest_is_this_machine() {
    if has_driver() || std::env::consts::ARCH != "x86_64" {
        return;
    }
    let place = Place::with(TWO);
    let ran = run(&place, &["NVIDIA H100 80GB HBM3"], &RESOLVE).code(0);
    ran.says(&["GPU NVIDIA H100 80GB HBM3", "driver 570.124.06", "this machine is target a"]);
    assert!(place.lock().contains("name = \"a\"") && !place.lock().contains("name = \"b\""), "{}", place.lock());
    // The driver of the other is newer than this one.
    let ran = run(&Place::with(TWO), &["NVIDIA GeForce RTX 3090"], &RESOLVE).code(2);
    ran.says(&["this machine is none of the manifest's targets", "nvidia-smi -q -x"]);
    run(&Place::with(TWO), &["NVIDIA H100 80GB HBM3", "Tesla T4"], &RESOLVE).code(2);
}

#[test]
fn without_a_manifest_it_is_this_machine_itself() {
    if has_driver() || std::env::consts::ARCH != "x86_64" {
        return;
    }
    let one_off = [&RESOLVE[..], &["--torch", "2.8.0", "--python", "3.11", "--allow-pending"]].concat();
    let place = Place::empty();
    run(&place, &["NVIDIA H100 80GB HBM3"], &one_off).code(0).says(&["GPU NVIDIA H100 80GB HBM3"]);
    assert!(place.lock().contains("NVIDIA H100 80GB HBM3") && place.lock().contains("570.124.06"), "{}", place.lock());
    run(&place, &["Tesla T4"], &[&one_off[..], &["--gpu", "A100"]].concat())
        .code(2)
        .says(&["leave one of the two out"]);
    let fresh = Place::empty();
    run(&fresh, &["Tesla T4"], &["init", "--from-host"]).code(0).says(&["GPU Tesla T4"]);
    assert!(fresh.text("gpulock.toml").contains("gpus = [\"Tesla T4\"]"), "{}", fresh.text("gpulock.toml"));
}

/// It is never guessed.
#[test]
fn without_a_gpu_there_is_no_answer() {
    if has_driver() {
        return;
    }
    for arguments in [&RESOLVE[..], &["verify", "/", "--target", "auto"]] {
        Place::with(TWO).run(arguments).code(2).says(&["this machine has no NVIDIA GPU and no driver", "--gpu"]);
    }
}
