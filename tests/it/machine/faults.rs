//! Each fault of a machine, and machines that have none.

use super::tree::{DRIVER, H100, LIB, Machine, RTX_3090, RTX_5090};

/// Exit code, and each finding with its severity.
pub fn judged(machine: &Machine, code: i32, findings: &[&str]) {
    machine.doctor(&[]).code(code);
    assert_eq!(machine.found(), findings);
}

pub fn line(machine: &Machine, topic: &str, state: &str, part: &str) {
    let (is, text) = machine.line(topic);
    assert!(is == state && text.contains(part), "{topic}: {is}: {text}");
}

#[test]
fn whole_machines() {
    for gpus in [vec![RTX_5090], vec![H100, H100], vec![RTX_3090], Vec::from([("1eb8", "Tesla T4")])] {
        let machine = Machine::with(&gpus);
        judged(&machine, 0, &[]);
    }
    let machine = Machine::with(&[H100, H100]);
    line(&machine, "GPUs", "ok", "2 x NVIDIA H100 80GB HBM3 (sm_90)");
    line(&machine, "kernel module", "ok", "570.124.06, open kernel modules");
    line(&machine, "libraries", "ok", "libcuda.so.1 of 570.124.06");
    line(&machine, "device nodes", "ok", "nvidia-uvm, nvidia0, nvidia1, nvidiactl");
    line(&machine, "fabric manager", "ok", "no NVSwitch");
    line(&machine, "/dev/shm", "ok", "half of the memory");
    line(&machine, "locked memory", "ok", "8 MB");
    // What could not be looked at is said to be so.
    line(&machine, "power and heat", "not checked", "no output of nvidia-smi");
    line(&machine, "device rules", "not checked", "version 2");
    // Older GPUs are driven by proprietary modules, and newer ones may be.
    for gpu in [("1b80", "NVIDIA GeForce GTX 1080"), RTX_3090] {
        let machine = Machine::with(&[gpu]);
        machine.module(DRIVER, false);
        judged(&machine, 0, &[]);
    }
}

#[test]
fn no_gpu_at_all() {
    let machine = Machine::bare();
    let ran = machine.doctor(&[]).code(3);
    assert!(ran.out.contains("there is no NVIDIA GPU here") && ran.out.contains("--gpus all"), "{}", ran.out);
    assert_eq!(machine.found(), [""; 0]);
    // Libraries alone make no GPU.
    machine.libraries(DRIVER);
    machine.doctor(&[]).code(3);
    line(&machine, "libraries", "not checked", "libcuda.so.1 of 570.124.06, and no kernel module runs");
}

#[test]
fn an_unknown_gpu_is_not_guessed() {
    let machine = Machine::with(&[]);
    machine.pci("0000:01:00.0", "0x10de", "ffff", "030200");
    line(&machine, "GPUs", "ok", "unknown GPU 10de:ffff");
    // Named by its driver, it is known by that name.
    machine.gpu(0, ("fffe", "NVIDIA GeForce RTX 5090"));
    line(&machine, "GPUs", "ok", "NVIDIA GeForce RTX 5090 (sm_120)");
}

#[test]
fn sound_and_bridges_are_no_gpus() {
    let machine = Machine::bare();
    machine.pci("0000:01:00.1", "0x10de", "22e8", "040300");
    machine.pci("0000:02:00.0", "0x10de", "22ce", "060400");
    machine.doctor(&[]).code(3);
}

#[test]
fn module_without_libraries() {
    let machine = Machine::with(&[H100]);
    machine.remove(&format!("{LIB}/libcuda.so.1"));
    judged(&machine, 1, &["error driver-libraries-missing"]);
    assert!(machine.doctor(&[]).out.contains("install the libraries of driver 570.124.06"));
    machine.contained();
    judged(&machine, 1, &["error driver-libraries-missing"]);
    assert!(machine.doctor(&[]).out.contains("--gpus all (Docker)"));
}

/// A package that is unpacked and not set up: no loader looks there.
#[test]
fn libraries_aside() {
    let machine = Machine::with(&[H100]);
    machine.remove(&format!("{LIB}/libcuda.so.1"));
    machine.put(&format!("{LIB}/nvidia/current/libcuda.so.{DRIVER}"), "");
    machine.link(&format!("{LIB}/nvidia/current/libcuda.so.1"), &format!("libcuda.so.{DRIVER}"));
    judged(&machine, 1, &["error driver-libraries-missing"]);
    line(&machine, "libraries", "problem", "libcuda.so.1 of 570.124.06, where the loader does not look");
    machine.put("etc/ld.so.conf.d/nvidia.conf", format!("/{LIB}/nvidia/current\n"));
    judged(&machine, 0, &[]);
}

#[test]
fn libraries_without_module() {
    let machine = Machine::with(&[H100]);
    machine.no_module();
    machine.remove("sys/bus/pci/devices/0000:01:00.0/driver");
    judged(&machine, 1, &["error driver-not-loaded"]);
    assert!(machine.doctor(&[]).out.contains("there is no NVIDIA kernel module for 6.8.0-45-generic"));
    machine.put("lib/modules/6.8.0-45-generic/modules.dep", "updates/dkms/nvidia.ko.zst: kernel/x.ko\n");
    judged(&machine, 1, &["error driver-not-loaded"]);
    assert!(machine.doctor(&[]).out.contains("is there for 6.8.0-45-generic, and does not run"));
}

#[test]
fn another_driver_holds_the_gpu() {
    for (driver, code, severity) in [("nouveau", 1, "error"), ("vfio-pci", 0, "note")] {
        let machine = Machine::with(&[H100]);
        machine.no_module();
        machine.link("sys/bus/pci/devices/0000:01:00.0/driver", &format!("../../../bus/pci/drivers/{driver}"));
        judged(&machine, code, &[&format!("{severity} gpu-held-by-other-driver")]);
    }
}

#[test]
fn a_gpu_that_is_gone() {
    let machine = Machine::with(&[H100]);
    machine.remove("sys/bus/pci/devices/0000:01:00.0");
    judged(&machine, 1, &["error gpu-missing"]);
}

#[test]
fn versions_apart() {
    let machine = Machine::with(&[H100]);
    machine.libraries("570.211.01");
    judged(&machine, 1, &["error driver-module-mismatch"]);
    assert!(machine.doctor(&[]).out.contains("the driver was upgraded while the old module runs"));
    machine.libraries("565.57.01");
    assert!(machine.doctor(&[]).out.contains("these libraries are older than the module"));
    // One library of another version is enough.
    machine.libraries(DRIVER);
    machine.put(&format!("{LIB}/libnvidia-ml.so.565.57.01"), "");
    machine.link(&format!("{LIB}/libnvidia-ml.so.1"), "libnvidia-ml.so.565.57.01");
    judged(&machine, 1, &["error driver-module-mismatch"]);
    // The first that the loader finds counts.
    machine.libraries(DRIVER);
    machine.put("usr/lib64/libcuda.so.535.1.1", "");
    machine.link("usr/lib64/libcuda.so.1", "libcuda.so.535.1.1");
    judged(&machine, 0, &[]);
    machine.put("etc/ld.so.conf.d/old.conf", "/usr/lib64\n");
    judged(&machine, 1, &["error driver-module-mismatch"]);
}

#[test]
fn geforce_with_the_compat_package() {
    let compat = |machine: &Machine, version: &str| {
        machine.put("usr/local/cuda-13.0/version.json", r#"{"cuda": {"version": "13.0.1"}}"#);
        machine.put(&format!("usr/local/cuda-13.0/compat/libcuda.so.{version}"), "");
        machine.link("usr/local/cuda-13.0/compat/libcuda.so.1", &format!("libcuda.so.{version}"));
        machine.link("usr/local/cuda", "cuda-13.0");
    };
    let on_path = "LD_LIBRARY_PATH=/usr/local/cuda/compat\n";
    let geforce = Machine::with(&[RTX_3090]);
    compat(&geforce, "580.82.07");
    // There, and not looked into.
    judged(&geforce, 0, &["note toolkit-newer-than-driver"]);
    geforce.put("gpulock/variables", on_path);
    judged(&geforce, 1, &["error cuda-compat-wrong-target", "note toolkit-newer-than-driver"]);
    assert!(geforce.doctor(&[]).out.contains("no data-centre GPU: CUDA fails with 804"));
    // What ldconfig knows is found too.
    geforce.put("gpulock/variables", "");
    geforce.put("etc/ld.so.conf.d/compat.conf", "/usr/local/cuda-13.0/compat\n");
    judged(&geforce, 1, &["error cuda-compat-wrong-target", "note toolkit-newer-than-driver"]);
    // The container runtime puts it there by itself.
    geforce.remove("etc/ld.so.conf.d/compat.conf");
    geforce.contained();
    judged(&geforce, 1, &["error cuda-compat-wrong-target", "note toolkit-newer-than-driver"]);

    let data_centre = Machine::with(&[H100]);
    compat(&data_centre, "580.82.07");
    data_centre.put("gpulock/variables", on_path);
    judged(&data_centre, 0, &["note toolkit-newer-than-driver"]);
    // Of the driver's own version it is the driver's own library.
    let same = Machine::with(&[H100]);
    compat(&same, DRIVER);
    same.put("gpulock/variables", on_path);
    judged(&same, 0, &["note toolkit-newer-than-driver"]);
    // Older than the driver it is wrong everywhere.
    let newer = Machine::with(&[H100]);
    compat(&newer, "550.54.15");
    newer.put("gpulock/variables", on_path);
    judged(&newer, 1, &["error cuda-compat-wrong-target", "note toolkit-newer-than-driver"]);
    assert!(newer.doctor(&[]).out.contains("which is newer: CUDA fails with 803"));
}

#[test]
fn kinds_of_kernel_modules() {
    let machine = Machine::with(&[RTX_5090]);
    machine.module(DRIVER, false);
    judged(&machine, 1, &["error open-modules-required"]);
    let machine = Machine::with(&[("2342", "NVIDIA GH200 480GB")]);
    machine.module(DRIVER, false);
    judged(&machine, 1, &["error open-modules-required"]);
    let machine = Machine::with(&[("1b80", "NVIDIA GeForce GTX 1080")]);
    judged(&machine, 1, &["error open-modules-unsupported"]);
    assert!(machine.doctor(&[]).out.contains("proprietary kernel modules of a driver of branch 580 or older"));
    let kepler = Machine::with(&[("1281", "NVIDIA GeForce GT 710")]);
    kepler.module("470.256.02", true);
    kepler.libraries("470.256.02");
    assert!(kepler.doctor(&[]).out.contains("proprietary kernel modules of a driver of branch 470 or older"));
}

#[test]
fn drivers_that_do_not_know_a_gpu() {
    let machine = Machine::with(&[RTX_5090]);
    machine.module("560.35.05", true);
    machine.libraries("560.35.05");
    let found = machine.found();
    assert!(matches!(&found[..], [one] if one.ends_with(" driver-too-old")), "{found:?}");
    let machine = Machine::with(&[("1db6", "Tesla V100-PCIE-32GB")]);
    machine.module("590.48.01", false);
    machine.libraries("590.48.01");
    judged(&machine, 1, &["error driver-too-new"]);
}

#[test]
fn two_models() {
    let machine = Machine::with(&[RTX_5090, RTX_3090]);
    judged(&machine, 0, &["warning gpu-models-mixed"]);
    for (variables, findings) in [
        ("CUDA_VISIBLE_DEVICES=1\n", &[][..]),
        ("CUDA_VISIBLE_DEVICES=0,1\nCUDA_DEVICE_ORDER=PCI_BUS_ID\n", &["warning gpu-models-mixed"]),
        ("CUDA_VISIBLE_DEVICES=0,1\n", &["warning gpu-models-mixed"]),
        ("CUDA_VISIBLE_DEVICES=\n", &["warning gpu-hidden"]),
        ("CUDA_VISIBLE_DEVICES=-1\n", &["warning gpu-hidden"]),
        ("CUDA_VISIBLE_DEVICES=1,2,0\n", &["warning gpu-hidden"]),
        ("CUDA_VISIBLE_DEVICES=GPU-8932f937\n", &[]),
    ] {
        machine.put("gpulock/variables", variables);
        judged(&machine, 0, findings);
    }
    let alike = Machine::with(&[RTX_3090, RTX_3090, RTX_5090]);
    alike.put("gpulock/variables", "CUDA_VISIBLE_DEVICES=0,1\nCUDA_DEVICE_ORDER=PCI_BUS_ID\n");
    judged(&alike, 0, &[]);
}

#[test]
fn device_nodes() {
    let machine = Machine::with(&[H100]);
    machine.contained();
    machine.remove("dev/nvidia-uvm");
    judged(&machine, 1, &["error device-node-missing"]);
    assert!(machine.doctor(&[]).out.contains("--device /dev/nvidia-uvm"));
    // A container may be given some of the GPUs.
    let some = Machine::with(&[H100, H100]);
    some.contained();
    some.remove("dev/nvidia0");
    judged(&some, 0, &[]);
    some.remove("dev/nvidia1");
    judged(&some, 1, &["error device-node-missing"]);
    // A machine needs all, unless they are made when they are needed.
    let all = Machine::with(&[H100, H100]);
    all.remove("dev/nvidia1");
    judged(&all, 1, &["error device-node-missing"]);
    all.put("usr/bin/nvidia-modprobe", "");
    judged(&all, 0, &[]);
    line(&all, "device nodes", "ok", "/dev/nvidia1 at first use");
}

#[test]
fn restricted_nodes_are_a_remark() {
    use std::os::unix::fs::PermissionsExt;
    let machine = Machine::with(&[H100]);
    std::fs::set_permissions(machine.at("dev/nvidia0"), std::fs::Permissions::from_mode(0o660)).unwrap();
    judged(&machine, 0, &["note device-node-restricted"]);
}

#[test]
fn small_shared_memory() {
    let machine = Machine::with(&[H100]);
    for (size, findings) in [("65536k", &["warning shm-small"][..]), ("8388608k", &[]), ("1g", &[]), ("50%", &[])] {
        machine.put(
            "proc/self/mounts",
            format!("/dev/sda / ext4 rw 0 0\nshm /dev/shm tmpfs rw,size={size},inode64 0 0\n"),
        );
        judged(&machine, 0, findings);
    }
    line(&machine, "/dev/shm", "not checked", "no tmpfs");
    machine.put("proc/self/mounts", "/dev/sdb /dev/shm ext4 rw,relatime 0 0\n");
    line(&machine, "/dev/shm", "not checked", "no tmpfs");
    machine.put("proc/self/mounts", "shm /dev/shm tmpfs rw,size=65536k 0 0\n");
    assert!(machine.doctor(&["--fail-on", "warning"]).code(1).out.contains("/dev/shm has 64 MB"));
}

#[test]
fn infiniband_and_locked_memory() {
    let machine = Machine::with(&[H100]);
    machine.put("sys/class/infiniband/mlx5_0/node_type", "1: CA\n");
    judged(&machine, 0, &["note memlock-limited", "note infiniband-node-missing"]);
    // Root of a machine may lock all.
    machine.put("proc/self/status", "CapEff:\t000001ffffffffff\n");
    judged(&machine, 0, &["note infiniband-node-missing"]);
    machine.put("proc/self/status", "CapEff:\t00000000a80425fb\n");
    machine.put("dev/infiniband/uverbs0", "");
    machine.put("proc/self/limits", "Max locked memory         unlimited            unlimited            bytes\n");
    judged(&machine, 0, &[]);
}

#[test]
fn control_groups_of_version_1() {
    let machine = Machine::with(&[H100]);
    for (rules, findings) in [
        ("c *:* m\nc 1:3 rwm\nc 136:* rwm\n", &["error device-cgroup-denied"][..]),
        ("c *:* m\nc 195:255 rw\n", &[]),
        ("a *:* rwm\n", &[]),
    ] {
        machine.put("sys/fs/cgroup/devices/devices.list", rules);
        judged(&machine, if findings.is_empty() { 0 } else { 1 }, findings);
    }
}

#[test]
fn the_fabric_manager() {
    let machine = Machine::with(&[H100, H100]);
    machine.pci("0000:05:00.0", "0x10de", "22a3", "068000");
    judged(&machine, 1, &["error fabric-manager-missing"]);
    machine.put("proc/812/comm", "nv-fabricmanage\n");
    judged(&machine, 0, &[]);
    machine.remove("proc/812");
    machine.contained();
    judged(&machine, 0, &[]);
    line(&machine, "fabric manager", "not checked", "only processes of this container are seen");
}

#[test]
fn logged_faults() {
    let machine = Machine::with(&[H100]);
    machine.put(
        "dev/kmsg",
        "3,1,1,-;NVRM: Xid (PCI:0000:01:00): 79, pid=7, GPU has fallen off the bus.\n\
         3,2,2,-;NVRM: Xid (PCI:0000:01:00): 31, pid=7, name=python, MMU Fault\n\
         3,2,2,-;NVRM: Xid (PCI:0000:01:00): 999, pid=7, something new\n6,3,3,-;something else\n",
    );
    // A program that read where it must not is no fault of the machine.
    judged(&machine, 0, &["warning xid-logged", "warning xid-logged", "note xid-logged"]);
    let ran = machine.doctor(&[]);
    assert!(ran.out.contains("Xid 79 once") && ran.out.contains("fallen off the bus"), "{}", ran.out);
    machine.remove("dev/kmsg");
    machine.put("gpulock/unread", "/dev/kmsg\tpermission denied\n");
    line(&machine, "Xid faults", "not checked", "permission denied");
}

#[test]
fn wsl() {
    let machine = Machine::bare();
    machine.put("proc/sys/kernel/osrelease", "5.15.153.1-microsoft-standard-WSL2\n");
    machine.nodes(&["dxg"]);
    machine.put("etc/ld.so.conf.d/ld.wsl.conf", "/usr/lib/wsl/lib\n");
    machine.put("usr/lib/wsl/lib/libcuda.so.1", "");
    judged(&machine, 0, &[]);
    line(&machine, "kernel module", "ok", "under WSL the driver is that of Windows");
    line(&machine, "libraries", "ok", "/usr/lib/wsl/lib");
    line(&machine, "GPUs", "not checked", "under WSL");
    machine.libraries(DRIVER);
    machine.put("etc/ld.so.conf.d/a.conf", format!("/{LIB}\n"));
    judged(&machine, 1, &["error wsl-driver-installed"]);
    machine.remove("etc/ld.so.conf.d/a.conf");
    machine.remove("dev/dxg");
    judged(&machine, 1, &["error device-node-missing"]);
    // The device is there for GPUs of others too.
    let other = Machine::bare();
    other.put("proc/sys/kernel/osrelease", "5.15.153.1-microsoft-standard-WSL2\n");
    other.nodes(&["dxg"]);
    judged(&other, 3, &[]);
}

#[test]
fn jetson() {
    let machine = Machine::bare();
    machine.put("proc/device-tree/model", "NVIDIA Jetson AGX Orin Developer Kit\0");
    machine.put("etc/nv_tegra_release", "# R36 (release), REVISION: 4.0\n");
    machine.put("usr/lib/aarch64-linux-gnu/tegra/libcuda.so.1.1", "");
    machine.link("usr/lib/aarch64-linux-gnu/tegra/libcuda.so.1", "libcuda.so.1.1");
    judged(&machine, 0, &[]);
    line(&machine, "GPUs", "ok", "Jetson AGX Orin (sm_87)");
    line(&machine, "libraries", "ok", "whose file name has no version");
    line(&machine, "device nodes", "not checked", "Jetson");
    // The display's driver has a version, and the library has none to compare.
    machine.module("540.4.0", true);
    judged(&machine, 0, &[]);
    // It has that of the board's software in older ones, which is no driver's.
    machine.module("35.4.1", true);
    machine.put("usr/local/cuda-11.4/version.json", r#"{"cuda": {"version": "11.4.19"}}"#);
    judged(&machine, 0, &[]);
    machine.remove("usr/lib/aarch64-linux-gnu/tegra/libcuda.so.1");
    judged(&machine, 1, &["error driver-libraries-missing"]);
}

#[test]
fn variables() {
    let machine = Machine::with(&[H100]);
    for (variables, findings) in [
        ("CUDA_LAUNCH_BLOCKING=1\n", &["warning variable-left-over"][..]),
        ("CUDA_LAUNCH_BLOCKING=0\n", &[]),
        ("NCCL_DEBUG=INFO\n", &["note variable-left-over"]),
        ("NCCL_P2P_DISABLE=1\n", &["note variable-left-over"]),
        ("NCCL_DEBUG=WARN\nNCCL_SOCKET_IFNAME=eth0\nCUDA_HOME=/usr/local/cuda\n", &[]),
        ("CUDNN_VERSION=9.10.2\nCUDA_VERSION=12.8.1\nNCCL_VERSION=2.27.3\n", &[]),
        ("CUDA_VISIBLE_DEVICE=0\n", &["note env-variable-unknown"]),
        ("NCCL_TIMEOUT=3600\n", &["warning env-variable-unknown"]),
    ] {
        machine.put("gpulock/variables", variables);
        judged(&machine, 0, findings);
    }
}

#[test]
fn library_path() {
    let machine = Machine::with(&[H100]);
    machine.put("usr/local/cuda/lib64/stubs/libcuda.so.1", "");
    machine.put("gpulock/variables", "LD_LIBRARY_PATH=/usr/local/cuda/lib64/stubs:/nowhere\n");
    judged(&machine, 1, &["error cuda-stub-linked"]);
    machine.put("opt/old/libcuda.so.535.54.03", "");
    machine.link("opt/old/libcuda.so.1", "libcuda.so.535.54.03");
    machine.put("gpulock/variables", "LD_LIBRARY_PATH=/opt/old\n");
    judged(&machine, 1, &["error driver-module-mismatch"]);
}
