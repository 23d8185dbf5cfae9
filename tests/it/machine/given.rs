//! What a job is given of a machine: some of its GPUs, libraries by a variable, a container under WSL.

use super::faults::{judged, line};
use super::tree::{DRIVER, H100, LIB, Machine, RTX_3090, RTX_5090};
use crate::cli::program::{Place, Ran};

/// Several GPUs on the bus, of which a container is given one: by NVIDIA's runtime, which hides the others from the driver's
/// folder, or by its node alone.
#[test]
fn a_container_with_one_of_the_gpus() {
    let machine = Machine::with(&[H100]);
    machine.contained();
    // The same product, which the bus names in another way.
    machine.pci("0000:02:00.0", "0x10de", "2330", "030200");
    machine.link("sys/bus/pci/devices/0000:02:00.0/driver", "../../../bus/pci/drivers/nvidia");
    judged(&machine, 0, &[]);
    line(&machine, "visible GPUs", "ok", "all 1");
    machine.put("gpulock/variables", "CUDA_VISIBLE_DEVICES=1\n");
    judged(&machine, 0, &["warning gpu-hidden"]);
    let machine = Machine::with(&[RTX_5090, RTX_3090]);
    machine.contained();
    machine.remove("dev/nvidia1");
    judged(&machine, 0, &[]);
    line(&machine, "GPUs", "ok", "NVIDIA GeForce RTX 5090 (sm_120)");
    // Without any, all of the machine's are what is not handed in.
    machine.remove("dev/nvidia0");
    let found = machine.found();
    assert!(found.contains(&"error device-node-missing".to_owned()), "{found:?}");
}

#[test]
fn gpus_that_are_not_for_cuda() {
    let machine = Machine::with(&[H100, RTX_3090]);
    machine.link("sys/bus/pci/devices/0000:02:00.0/driver", "../../../bus/pci/drivers/vfio-pci");
    machine.remove("proc/driver/nvidia/gpus/0000:02:00.0");
    judged(&machine, 0, &["note gpu-held-by-other-driver"]);
    line(&machine, "visible GPUs", "ok", "all 1");
    // Nothing is asked of it: neither modules of its kind nor a driver that has it, nor cuda-compat.
    let beside = |driver: &str| {
        let machine = Machine::with(&[H100]);
        machine.pci("0000:02:00.0", "0x10de", "1281", "030000");
        machine.link("sys/bus/pci/devices/0000:02:00.0/driver", &format!("../../../bus/pci/drivers/{driver}"));
        machine
    };
    judged(&beside("vfio-pci"), 0, &["note gpu-held-by-other-driver"]);
    judged(&beside("nouveau"), 0, &["warning gpu-held-by-other-driver"]);
    // One that the driver did not take.
    machine.remove("sys/bus/pci/devices/0000:02:00.0/driver");
    judged(&machine, 0, &["warning gpu-held-by-other-driver"]);
}

/// Where LD_LIBRARY_PATH alone leads to the driver's libraries, as in pods of GKE.
#[test]
fn libraries_that_a_variable_leads_to() {
    let machine = Machine::with(&[H100]);
    machine.contained();
    machine.remove(LIB);
    machine.put(&format!("usr/local/nvidia/lib64/libcuda.so.{DRIVER}"), "");
    machine.link("usr/local/nvidia/lib64/libcuda.so.1", &format!("libcuda.so.{DRIVER}"));
    judged(&machine, 1, &["error driver-libraries-missing"]);
    machine.put("gpulock/variables", "LD_LIBRARY_PATH=/usr/local/nvidia/lib:/usr/local/nvidia/lib64\n");
    judged(&machine, 0, &[]);
    line(&machine, "libraries", "ok", "by LD_LIBRARY_PATH");
    machine.module("535.54.03", true);
    judged(&machine, 1, &["error driver-module-mismatch"]);
    // A stub is none.
    machine.module(DRIVER, true);
    machine.put("opt/stubs/libcuda.so.1", "");
    machine.put("gpulock/variables", "LD_LIBRARY_PATH=/opt/stubs\n");
    judged(&machine, 1, &["error driver-libraries-missing", "error cuda-stub-linked"]);
}

#[test]
fn nixos() {
    let machine = Machine::with(&[H100]);
    machine.remove(LIB);
    machine.put(&format!("nix/store/x/lib/libcuda.so.{DRIVER}"), "");
    machine.link("nix/store/x/lib/libcuda.so.1", &format!("libcuda.so.{DRIVER}"));
    machine.link("run/opengl-driver/lib", "/nix/store/x/lib");
    judged(&machine, 0, &["note driver-libraries-missing"]);
    machine.put("gpulock/variables", "LD_LIBRARY_PATH=/run/opengl-driver/lib\n");
    judged(&machine, 0, &[]);
}

/// Libraries for 32-bit programs, left over from an older driver: the loader of others passes them over.
#[test]
fn libraries_of_32_bits() {
    let machine = Machine::with(&[H100]);
    machine.put("etc/ld.so.conf.d/i386-linux-gnu.conf", "/usr/lib/i386-linux-gnu\n");
    machine.put("usr/lib/i386-linux-gnu/libcuda.so.535.54.03", "");
    machine.link("usr/lib/i386-linux-gnu/libcuda.so.1", "libcuda.so.535.54.03");
    judged(&machine, 0, &[]);
}

/// A container under WSL is given the libraries of Windows' driver in its own folder, without a version in their names.
#[test]
fn a_container_under_wsl() {
    let machine = Machine::bare();
    machine.put("proc/sys/kernel/osrelease", "5.15.153.1-microsoft-standard-WSL2\n");
    machine.nodes(&["dxg"]);
    machine.contained();
    machine.put(&format!("{LIB}/libcuda.so.1"), "");
    judged(&machine, 0, &[]);
    machine.remove(&format!("{LIB}/libcuda.so.1"));
    machine.put("usr/lib/wsl/drivers/nv_dispi.inf_amd64_1/libcuda.so.1.1", "");
    machine.link("usr/lib/wsl/drivers/nv_dispi.inf_amd64_1/libcuda.so.1", "libcuda.so.1.1");
    machine.put("etc/ld.so.conf.d/nvcr.conf", "/usr/lib/wsl/drivers/nv_dispi.inf_amd64_1\n");
    judged(&machine, 0, &[]);
}

/// Devices of an old chipset have the class of an NVSwitch, and a driver of their own; NVSwitches of the fourth generation
/// are not on the bus.
#[test]
fn switches_and_what_looks_like_them() {
    let machine = Machine::with(&[RTX_3090]);
    machine.pci("0000:00:08.0", "0x10de", "0373", "068000");
    machine.link("sys/bus/pci/devices/0000:00:08.0/driver", "../../../bus/pci/drivers/forcedeth");
    judged(&machine, 0, &[]);
    line(&machine, "fabric manager", "ok", "not needed");
    let machine = Machine::with(&[("2901", "NVIDIA B200"), ("2901", "NVIDIA B200")]);
    line(&machine, "fabric manager", "not checked", "not on the PCI bus");
    machine.put("proc/900/comm", "nv-fabricmanage\n");
    line(&machine, "fabric manager", "ok", "runs");
}

#[test]
fn names_that_are_no_gpus() {
    let machine = Machine::with(&[H100, H100]);
    for (value, found) in [
        ("0,1", None),
        (" 1 , 0", None),
        ("GPU-1234", None),
        ("MIG-GPU-1/1/0", None),
        ("none", Some("CUDA sees no GPU")),
        ("all", Some("CUDA sees no GPU")),
        ("cuda:0", Some("CUDA sees no GPU")),
        ("0,none", Some("there is no GPU `none`")),
        ("0,", Some("there is no GPU ``")),
        ("", Some("is empty")),
    ] {
        machine.put("gpulock/variables", format!("CUDA_VISIBLE_DEVICES={value}\n"));
        judged(&machine, 0, if found.is_some() { &["warning gpu-hidden"] } else { &[] });
        let out = machine.doctor(&[]).out;
        assert!(found.is_none_or(|words| out.contains(words)), "{value}: {out}");
    }
}

/// What a container says that it wants of NVIDIA's runtime.
#[test]
fn a_container_that_asks_for_no_gpu() {
    let machine = Machine::with(&[H100]);
    machine.contained();
    machine.remove(LIB);
    for (variables, words) in [
        ("", "--gpus all (Docker)"),
        ("NVIDIA_VISIBLE_DEVICES=void\n", "where it asks for none now"),
        ("NVIDIA_VISIBLE_DEVICES=all\nNVIDIA_DRIVER_CAPABILITIES=utility\n", "CAPABILITIES=compute,utility"),
        ("NVIDIA_VISIBLE_DEVICES=all\nNVIDIA_DRIVER_CAPABILITIES=compute,utility\n", "--gpus all (Docker)"),
    ] {
        machine.put("gpulock/variables", variables);
        judged(&machine, 1, &["error driver-libraries-missing"]);
        let out = machine.doctor(&[]).out;
        assert!(out.contains(words), "{variables}: {out}");
    }
}

/// An environment that was asked for is part of the question; the one that is active is not.
#[test]
fn an_environment_that_is_not_there() {
    let machine = Machine::with(&[H100]);
    machine.doctor(&["--env", "none"]).code(2).says(&["none does not exist"]);
    let place = Place::empty();
    let mut command = place.command(&["doctor"]);
    let ran = Ran::of(command.env("VIRTUAL_ENV", place.path("none")).output().unwrap());
    assert!(ran.code != Some(2) && ran.out.contains("not checked  Python environment: "), "{ran:?}");
}
