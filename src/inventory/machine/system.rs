//! What kind of system a machine is: its kernel, whether it is WSL, a Jetson or the inside of a container, which of NVIDIA's
//! processes run, and what a job is given of shared memory, locked memory and devices.

use super::files::Files;
use super::reading::Reading;
use crate::inventory::FileKind;

/// What a board is called that does not say which it is.
pub(in crate::inventory) const SOME_JETSON: &str = "Jetson";

/// What a machine is.
#[derive(Debug)]
pub struct System {
    /// Release of the kernel: `6.8.0-45-generic`.
    pub kernel: Reading<String>,
    /// The board, where it is a Jetson.
    pub jetson: Reading<String>,
    /// What says that this is the inside of a container.
    pub container: Reading<String>,
    /// NVIDIA's processes by their names, as the kernel cuts them (15 characters).
    pub daemons: Reading<Vec<String>>,
    /// The size that `/dev/shm` was given, in bytes; `None` for half of the memory, which is what it has by default.
    pub shm: Reading<Option<u64>>,
    /// Memory that a process may lock, in bytes; `None` for all, by its limit or by its capability.
    pub memlock: Reading<Option<u64>>,
    /// Adapters of InfiniBand or RoCE, by their names in the kernel.
    pub infiniband: Vec<String>,
    /// The devices that a control group of version 1 allows, one rule a line.
    pub devices: Reading<String>,
    /// What lies in `/dev` of NVIDIA, WSL and InfiniBand.
    pub nodes: Vec<Node>,
}

/// A file in `/dev`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its path.
    pub path: String,
    /// Permission bits.
    pub mode: u32,
}

impl System {
    /// Whether the kernel is that of WSL, or there is its device.
    pub fn is_wsl(&self) -> bool {
        let kernel = self.kernel.value().is_some_and(|release| release.to_lowercase().contains("microsoft"));
        kernel || self.node("/dev/dxg").is_some()
    }

    /// The file in `/dev` of that path.
    pub fn node(&self, path: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.path == path)
    }
}

pub(super) fn read(files: &Files<'_>) -> System {
    System {
        kernel: files.text("/proc/sys/kernel/osrelease"),
        jetson: jetson(files),
        container: container(files),
        daemons: daemons(files),
        shm: shm(files),
        memlock: memlock(files),
        infiniband: files.names("/sys/class/infiniband").value().cloned().unwrap_or_default(),
        devices: files.text("/sys/fs/cgroup/devices/devices.list"),
        nodes: nodes(files),
    }
}

/// `NVIDIA Jetson AGX Orin Developer Kit` in the device tree, else the release of its software.
pub(in crate::inventory) fn jetson(files: &Files<'_>) -> Reading<String> {
    let model = files.text("/proc/device-tree/model").and_then(|text| {
        let model = text.trim_matches('\0').trim().strip_prefix("NVIDIA ")?.to_owned();
        model.contains("Jetson").then(|| model.trim_end_matches(" Developer Kit").to_owned())
    });
    let compatible = || {
        let text = files.text("/proc/device-tree/compatible");
        text.and_then(|text| text.contains("nvidia,tegra").then(|| SOME_JETSON.to_owned()))
    };
    let release = || files.text("/etc/nv_tegra_release").and_then(|_| Some(SOME_JETSON.to_owned()));
    model.or(compatible).or(release)
}

/// Docker's, Podman's and systemd's marks, and those that Kubernetes leaves.
fn container(files: &Files<'_>) -> Reading<String> {
    const MARKS: [(&str, &str); 4] = [
        ("/.dockerenv", "Docker"),
        ("/run/.containerenv", "Podman"),
        ("/run/secrets/kubernetes.io", "Kubernetes"),
        ("/.singularity.d", "Apptainer"),
    ];
    let mark = MARKS.iter().find(|(path, _)| files.look(path).is_some());
    match mark {
        Some((path, name)) => Reading::of((*name).to_owned(), path, "is there"),
        None => files.text("/run/systemd/container"),
    }
}

/// The kernel's own threads are seen from outside of containers alone; the second process is their parent.
fn daemons(files: &Files<'_>) -> Reading<Vec<String>> {
    const WANTED: [&str; 2] = ["nv-fabricmanage", "nvidia-persiste"];
    if files.text("/proc/2/comm").value().is_none_or(|name| name != "kthreadd") {
        return Reading::unread("/proc", "only processes of this container are seen");
    }
    let mut found = Vec::new();
    for name in files.names("/proc").value().into_iter().flatten() {
        if !name.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let path = format!("/proc/{name}/comm");
        // What is none of them is not looked at any further, so that it is not captured.
        let Ok(bytes) = files.root().read(path.as_ref(), 64) else { continue };
        let comm = String::from_utf8_lossy(&bytes).trim_end().to_owned();
        if WANTED.iter().any(|wanted| comm.starts_with(wanted)) {
            files.keep(&path, &format!("{comm}\n"));
            found.push(comm);
        }
    }
    let fact = if found.is_empty() { "none of NVIDIA's".to_owned() } else { found.join(", ") };
    Reading::of(found, "/proc/*/comm", &fact)
}

/// `shm /dev/shm tmpfs rw,nosuid,size=65536k 0 0` (tmpfs(5)).
fn shm(files: &Files<'_>) -> Reading<Option<u64>> {
    const MOUNTS: &str = "/proc/self/mounts";
    let is_shm = |line: &str| line.split(' ').nth(1) == Some("/dev/shm");
    files.lines(MOUNTS, is_shm).and_then(|text| {
        // Another file system has no such size.
        let line = text.lines().last().filter(|line| line.split(' ').nth(2) == Some("tmpfs"))?.to_owned();
        let options = line.split(' ').nth(3)?;
        let Some(size) = options.split(',').find_map(|option| option.strip_prefix("size=")) else { return Some(None) };
        let digits = size.trim_end_matches(|c: char| !c.is_ascii_digit());
        let unit: u64 = match &size[digits.len()..] {
            "" => 1,
            "k" | "K" => 1 << 10,
            "m" | "M" => 1 << 20,
            "g" | "G" => 1 << 30,
            _ => return None,
        };
        digits.parse::<u64>().ok()?.checked_mul(unit).map(Some)
    })
}

/// `Max locked memory  8388608  8388608  bytes`: the first number is what holds.
fn memlock(files: &Files<'_>) -> Reading<Option<u64>> {
    const KEY: &str = "Max locked memory";
    // No limit holds for a process with this capability (CAP_IPC_LOCK of capabilities(7), bit 14).
    let capable = files.lines("/proc/self/status", |line| line.starts_with("CapEff:")).and_then(|line| {
        let set = u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok()?;
        (set & (1 << 14) != 0).then_some(None)
    });
    if let Reading::Is(_) = capable {
        return capable;
    }
    files.lines("/proc/self/limits", |line| line.starts_with(KEY)).and_then(|line| {
        match line.strip_prefix(KEY)?.split_whitespace().next()? {
            "unlimited" => Some(None),
            number => number.parse().ok().map(Some),
        }
    })
}

fn nodes(files: &Files<'_>) -> Vec<Node> {
    const BEGINNINGS: [&str; 4] = ["nvidia", "nvhost", "nvmap", "dxg"];
    let names = |folder: &str| files.names(folder).value().cloned().unwrap_or_default();
    let own = names("/dev").into_iter().filter(|name| BEGINNINGS.iter().any(|begin| name.starts_with(begin)));
    let own = own.map(|name| format!("/dev/{name}"));
    let below = ["/dev/nvidia-caps", "/dev/infiniband"].into_iter();
    let below = below.flat_map(|folder| names(folder).into_iter().map(move |name| format!("{folder}/{name}")));
    own.chain(below)
        .filter_map(|path| {
            let look = files.look(&path).filter(|look| look.kind != FileKind::Folder)?;
            Some(Node { path, mode: look.mode })
        })
        .collect()
}
