//! What a job is given: variables, GPUs, shared memory, locked memory, InfiniBand and the devices of its control group.

use super::{CGROUP, Context, INFINIBAND, Layer, Line, MEMLOCK, SHM, variables};
use crate::diag::{Evidence, Failure};
use crate::inventory::machine::Reading;

const LAYER: Layer = Layer::Application;
/// What NCCL's manual asks for in a container.
const LEAST_SHM: u64 = 1 << 30;
const NCCL: &str = "NCCL user guide, \"Runtime and MPI issues\" (--shm-size=1g --ulimit memlock=-1): \
                    https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/runtime_and_mpi_issues.html";
/// Major number of `/dev/nvidia*` (Linux, Documentation/admin-guide/devices.txt).
const MAJOR: &str = "195";

pub(super) fn judge(context: &Context<'_>) -> Result<Vec<Line>, Failure> {
    let mut lines = vec![variables::judge(context)?];
    if !context.gpus.is_empty() {
        lines.push(variables::visible(context));
    }
    lines.push(shm(context));
    lines.extend(network(context));
    if context.is_gpu_machine() {
        lines.push(devices(context));
    }
    Ok(lines)
}

/// `64 MB`, in powers of two as mounts have it.
fn size(bytes: u64) -> String {
    match bytes {
        0..0x10_0000 => format!("{} kB", bytes >> 10),
        0x10_0000..0x4000_0000 => format!("{} MB", bytes >> 20),
        _ => format!("{} GB", bytes >> 30),
    }
}

fn shm(context: &Context<'_>) -> Line {
    const TOPIC: &str = "/dev/shm";
    let Reading::Is(shm) = &context.facts.system.shm else {
        return Line::unread(LAYER, TOPIC, &context.facts.system.shm, "no tmpfs is mounted there");
    };
    let how = context.facts.system.shm.how();
    let Some(bytes) = shm.value else { return Line::ok(LAYER, TOPIC, "half of the memory", how) };
    let mut findings = Vec::new();
    if bytes < LEAST_SHM {
        let message = format!(
            "/dev/shm has {}: loader processes of torch die with \"Bus error\", and NCCL fails to extend its segments",
            size(bytes)
        );
        let finding =
            SHM.found(message, shm.seen.clone()).and(Evidence::fact("NCCL asks for 1 GB in a container", NCCL));
        let fix = "start the container with --shm-size=8g or --ipc=host; in Kubernetes, mount an emptyDir of medium \
                   Memory there";
        findings.push(finding.about("/dev/shm").fix(fix));
    }
    Line::judged(LAYER, TOPIC, size(bytes), how, findings)
}

/// InfiniBand, where the machine has it, and the memory that it needs locked.
fn network(context: &Context<'_>) -> Vec<Line> {
    let system = &context.facts.system;
    let adapters = &system.infiniband;
    let nodes = system.nodes.iter().filter(|node| node.path.starts_with("/dev/infiniband/")).count();
    let memlock = match &system.memlock {
        Reading::Is(limit) => {
            let text = limit.value.map_or_else(|| "unlimited".to_owned(), size);
            let mut findings = Vec::new();
            if limit.value.is_some() && !adapters.is_empty() {
                let message = format!(
                    "a process may lock {text} of memory: InfiniBand fails with \"Cannot allocate memory\" when \
                     NCCL registers more"
                );
                let finding = MEMLOCK
                    .found(message, limit.seen.clone())
                    .and(Evidence::fact("NCCL asks for no limit in a container", NCCL));
                findings.push(finding.fix(
                    "--ulimit memlock=-1 for a container; memlock unlimited in \
                                           /etc/security/limits.d or LimitMEMLOCK=infinity elsewhere",
                ));
            }
            Line::judged(LAYER, "locked memory", text, system.memlock.how(), findings)
        }
        other => Line::unread(LAYER, "locked memory", other, "the limits of this process are not there"),
    };
    let how = "/sys/class/infiniband";
    let infiniband = match (adapters.len(), nodes) {
        (0, _) => Line::ok(LAYER, "InfiniBand", "none", how),
        (_, 0) => {
            let names = adapters.join(", ");
            let message =
                format!("the machine has {names}, and /dev/infiniband is not there: NCCL goes over TCP instead");
            let finding = INFINIBAND.found(message, Evidence::observed(how, names.clone()));
            let finding = finding.and(Evidence::observed("/dev/infiniband", "nothing there")).about("/dev/infiniband");
            let fix = "hand it to the container: --device /dev/infiniband, or the RDMA device plugin; on a machine, \
                       load ib_uverbs";
            Line::judged(LAYER, "InfiniBand", names, how, vec![finding.fix(fix)])
        }
        _ => Line::ok(LAYER, "InfiniBand", format!("{} with {nodes} device nodes", adapters.join(", ")), how),
    };
    vec![memlock, infiniband]
}

/// The rules of a control group of version 1; those of version 2 are a program in the kernel.
fn devices(context: &Context<'_>) -> Line {
    const TOPIC: &str = "device rules";
    let Reading::Is(rules) = &context.facts.system.devices else {
        let absent = "control groups of version 2 keep them in the kernel, where no file shows them";
        return Line::unread(LAYER, TOPIC, &context.facts.system.devices, absent);
    };
    let how = context.facts.system.devices.how();
    // `c 195:* rw`, `a *:* rwm`.
    let allows = |line: &str| {
        let mut words = line.split_whitespace();
        let (kind, number, rights) = (words.next(), words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let major = number.split(':').next().unwrap_or_default();
        matches!(kind, Some("a" | "c"))
            && (major == MAJOR || major == "*")
            && rights.contains('r')
            && rights.contains('w')
    };
    if rules.value.lines().any(allows) {
        return Line::ok(LAYER, TOPIC, "NVIDIA's devices are allowed", how);
    }
    let message =
        "the control group of this process does not allow NVIDIA's devices: NVML fails with \"Unknown Error\"";
    let finding = CGROUP.found(message, rules.seen.clone());
    let fact = Evidence::fact(
        "systemd takes devices away that it does not know when its units are read again",
        "https://github.com/NVIDIA/nvidia-docker/issues/1730",
    );
    let fix = "start the container anew; on its host, nvidia-ctk system create-dev-char-symlinks keeps it from \
               happening again";
    Line::judged(LAYER, TOPIC, "NVIDIA's devices are not allowed", how, vec![finding.and(fact).fix(fix)])
}
