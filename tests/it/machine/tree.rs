//! Machines made for a test, as folders with the files by which a machine describes itself.
//!
//! [`Machine::with`] is whole: `gpulock doctor` has nothing to say of it. A test breaks one thing of it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::cli::program::{Place, Ran};

/// A folder that is laid out as `/` is.
pub struct Machine {
    path: PathBuf,
    /// Goes with the machine.
    _folder: Option<tempfile::TempDir>,
}

pub const DRIVER: &str = "570.124.06";
pub const RTX_5090: (&str, &str) = ("2b85", "NVIDIA GeForce RTX 5090");
pub const RTX_3090: (&str, &str) = ("2204", "NVIDIA GeForce RTX 3090");
pub const H100: (&str, &str) = ("2330", "NVIDIA H100 80GB HBM3");
pub const LIB: &str = "usr/lib/x86_64-linux-gnu";

impl Machine {
    /// A machine without anything of NVIDIA's.
    pub fn bare() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::furnished(Self { path: folder.path().to_owned(), _folder: Some(folder) })
    }

    /// That of the README, in a folder that stays: the inside of a container on a machine with the wrong kernel modules.
    pub fn of_readme(path: PathBuf) -> Self {
        let machine = Self::furnished(Self { path, _folder: None }).driven(&[RTX_5090]);
        machine.module(DRIVER, false);
        machine.contained();
        machine.remove("dev/nvidia-uvm");
        machine.put("proc/self/mounts", "shm /dev/shm tmpfs rw,nosuid,nodev,noexec,size=65536k,inode64 0 0\n");
        machine.put("gpulock/variables", "CUDA_LAUNCH_BLOCKING=1\n");
        machine.put("gpulock/unread", "/dev/kmsg\tpermission denied (the log is for root alone)\n");
        machine.remove("dev/kmsg");
        machine
    }

    fn furnished(machine: Self) -> Self {
        machine.put("etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n");
        machine.put("proc/sys/kernel/osrelease", "6.8.0-45-generic\n");
        machine.put("proc/2/comm", "kthreadd\n");
        machine.put("proc/self/mounts", "tmpfs /dev/shm tmpfs rw,nosuid,nodev,inode64 0 0\n");
        machine.put(
            "proc/self/limits",
            "Limit                     Soft Limit           Hard Limit           Units\n\
             Max locked memory         8388608              8388608              bytes\n",
        );
        machine.put("gpulock/variables", "");
        machine.put("gpulock/processor", "x86_64\n");
        machine.pci("0000:00:1f.0", "0x8086", "7a84", "060100");
        machine
    }

    /// GPUs by device number and model, with a driver, open modules and all that goes with them.
    pub fn with(gpus: &[(&str, &str)]) -> Self {
        Self::bare().driven(gpus)
    }

    fn driven(self, gpus: &[(&str, &str)]) -> Self {
        let machine = self;
        machine.module(DRIVER, true);
        machine.libraries(DRIVER);
        machine.nodes(&["nvidiactl", "nvidia-uvm"]);
        machine.put("dev/kmsg", "");
        for (at, gpu) in gpus.iter().enumerate() {
            machine.gpu(at, *gpu);
        }
        machine
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.path().join(path)
    }

    pub fn put(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn link(&self, path: &str, to: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        symlink(to, path).unwrap();
    }

    pub fn remove(&self, path: &str) {
        let path = self.at(path);
        if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }

    pub fn pci(&self, address: &str, vendor: &str, device: &str, class: &str) {
        let folder = format!("sys/bus/pci/devices/{address}");
        self.put(&format!("{folder}/vendor"), format!("{vendor}\n"));
        self.put(&format!("{folder}/device"), format!("0x{device}\n"));
        self.put(&format!("{folder}/class"), format!("0x{class}\n"));
    }

    /// A GPU that NVIDIA's driver drives, with its node.
    pub fn gpu(&self, at: usize, (device, model): (&str, &str)) {
        let address = format!("0000:{:02x}:00.0", at + 1);
        self.pci(&address, "0x10de", device, "030000");
        self.link(&format!("sys/bus/pci/devices/{address}/driver"), "../../../bus/pci/drivers/nvidia");
        let text = format!("Model: \t\t {model}\nGPU UUID: \t GPU-secret\nDevice Minor: \t {at}\n");
        self.put(&format!("proc/driver/nvidia/gpus/{address}/information"), text);
        self.nodes(&[&format!("nvidia{at}")]);
    }

    /// What runs in the kernel.
    pub fn module(&self, version: &str, open: bool) {
        let line = match open {
            true => format!("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {version}  Release Build  (a@b)"),
            false => format!("NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Wed Feb 26 2025"),
        };
        self.put("proc/driver/nvidia/version", format!("{line}\nGCC version:  gcc version 13.2.0\n"));
        self.put("sys/module/nvidia/version", format!("{version}\n"));
    }

    pub fn no_module(&self) {
        self.remove("proc/driver");
        self.remove("sys/module");
        for entry in fs::read_dir(self.at("dev")).unwrap().flatten() {
            if entry.file_name().to_str().unwrap().starts_with("nvidia") {
                fs::remove_file(entry.path()).unwrap();
            }
        }
    }

    /// The driver's libraries where Debian's and Ubuntu's loader looks.
    pub fn libraries(&self, version: &str) {
        for name in ["libcuda.so", "libnvidia-ml.so"] {
            self.put(&format!("{LIB}/{name}.{version}"), "");
            self.link(&format!("{LIB}/{name}.1"), &format!("{name}.{version}"));
        }
    }

    /// Files that stand for device nodes, open to all.
    pub fn nodes(&self, names: &[&str]) {
        for name in names {
            let path = format!("dev/{name}");
            self.put(&path, "");
            fs::set_permissions(self.at(&path), fs::Permissions::from_mode(0o666)).unwrap();
        }
    }

    /// That it is the inside of a container: no processes of the machine, and a mark.
    pub fn contained(&self) {
        self.put(".dockerenv", "");
        self.remove("proc/2");
    }

    /// `gpulock doctor` on it, with these arguments besides.
    pub fn doctor(&self, arguments: &[&str]) -> Ran {
        self.doctor_in(&Place::empty(), arguments)
    }

    pub fn doctor_in(&self, place: &Place, arguments: &[&str]) -> Ran {
        let root = self.path().to_str().unwrap();
        place.run(&[&["doctor", "--sysroot", root], arguments].concat())
    }

    /// Code and severity of each finding, the gravest first.
    pub fn found(&self) -> Vec<String> {
        let ran = self.doctor(&["--format", "json"]);
        let report = ran.json();
        let findings = report["findings"].as_array().unwrap();
        let words = |finding: &serde_json::Value| {
            format!("{} {}", finding["severity"].as_str().unwrap(), finding["code"].as_str().unwrap())
        };
        findings.iter().map(words).collect()
    }

    /// State and text of a line.
    pub fn line(&self, topic: &str) -> (String, String) {
        let report = self.doctor(&["--format", "json"]).json();
        let layers = report["layers"].as_array().unwrap();
        let lines = layers.iter().flat_map(|layer| layer["lines"].as_array().unwrap());
        let line = lines.clone().find(|line| line["topic"] == topic).unwrap_or_else(|| panic!("{topic}: {report:#}"));
        let text = |key: &str| line[key].as_str().unwrap().to_owned();
        assert!(!text("how").is_empty(), "{line}");
        (text("state"), text("text"))
    }
}
