//! Whether a machine is one that the lock's target describes.

use super::tree::{H100, Machine, RTX_3090};
use crate::cli::program::Place;

const ANY: &str = "[stack]\ntorch = \"2.8.0\"\npython = \"3.11\"\n\n[target.a]\ngpus = [\"H100\", \"H200\"]\ndriver = \"570.124.06\"\n";

fn place() -> Place {
    let place = Place::with(ANY);
    place.run(&["resolve", "--offline", "-q"]).code(0);
    place
}

#[test]
fn one_of_them() {
    let machine = Machine::with(&[H100]);
    let ran = machine.doctor_in(&place(), &[]).code(0);
    assert!(
        ran.out.contains("ok           lock: target a: H100, H200, driver 570.124.06 [gpulock.lock]"),
        "{}",
        ran.out
    );
}

#[test]
fn none_of_them() {
    let place = place();
    let other = Machine::with(&[RTX_3090]);
    let ran = other.doctor_in(&place, &[]).code(1);
    assert!(ran.out.contains("error[machine-not-target]: NVIDIA GeForce RTX 3090 (sm_86) is none of"), "{}", ran.out);
    let arm = Machine::with(&[H100]);
    arm.put("gpulock/processor", "aarch64\n");
    assert!(arm.doctor_in(&place, &[]).code(1).out.contains("this machine is aarch64"));
    let old = Machine::with(&[H100]);
    old.module("520.61.05", true);
    old.libraries("520.61.05");
    let ran = old.doctor_in(&place, &[]).code(1);
    assert!(ran.out.contains("error[driver-too-old]: driver 520.61.05 is older than 525.60.13"), "{}", ran.out);
    place.run(&["doctor", "--target", "b"]).code(2);
}

/// With several targets it is enough to be one of them.
#[test]
fn one_of_several() {
    let several = format!("{ANY}[target.b]\ngpus = [\"RTX 3090\"]\ndriver = \"570.124.06\"\n");
    let place = Place::with(&several);
    place.run(&["resolve", "--offline", "-q"]).code(0);
    let machine = Machine::with(&[RTX_3090]);
    assert!(machine.doctor_in(&place, &[]).code(0).out.contains("lock: target b: RTX 3090"));
    machine.doctor_in(&place, &["--target", "a"]).code(1);
    machine.doctor_in(&place, &["--target", "c"]).code(2).says(&["the lock has no target `c`"]);
    let ran = Machine::with(&[("1eb8", "Tesla T4")]).doctor_in(&place, &[]).code(1);
    assert!(ran.out.contains("this machine is none of the lock's targets: a, b"), "{}", ran.out);
}

/// Levels of the manifest hold for machines too.
#[test]
fn levels() {
    let machine = Machine::with(&[H100]);
    machine.put("proc/self/mounts", "shm /dev/shm tmpfs rw,size=65536k 0 0\n");
    let place = Place::with(&format!("{ANY}[checks]\nshm-small = \"error\"\n"));
    machine.doctor_in(&place, &[]).code(1);
    let place = Place::with(&format!("{ANY}[checks]\nshm-small = {{ level = \"off\", reason = \"one loader\" }}\n"));
    machine.doctor_in(&place, &["--fail-on", "warning"]).code(0);
}
