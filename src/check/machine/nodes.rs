//! Device nodes: whether those are there that CUDA opens, and who may open them.

use super::{Context, Layer, Line, NODE_MISSING, NODE_RESTRICTED};
use crate::diag::{Diagnostic, Evidence};

const LAYER: Layer = Layer::Driver;
const TOPIC: &str = "device nodes";
const MODPROBE_SOURCE: &str = "https://github.com/NVIDIA/nvidia-modprobe, nvidia-modprobe.1";
/// Read and write for everybody.
const FOR_ALL: u32 = 0o006;

pub(super) fn judge(context: &Context<'_>) -> Line {
    let facts = context.facts;
    let system = &facts.system;
    if system.is_wsl() {
        return wsl(context);
    }
    if system.jetson.fact().is_some() {
        return Line::not_checked(
            LAYER,
            TOPIC,
            "which nodes a Jetson has depends on the release of its software",
            "/dev",
        );
    }
    if facts.module.version.value().is_none() {
        return Line::not_checked(LAYER, TOPIC, "there are none without a kernel module", "/dev");
    }
    let missing = missing(context);
    let mut findings: Vec<Diagnostic> = Vec::new();
    let is_container = system.container.fact().is_some();
    let mut made_later = Vec::new();
    for path in missing {
        if !is_container && context.facts.has_modprobe {
            made_later.push(path);
        } else {
            findings.push(not_there(context, &path));
        }
    }
    findings.extend(restricted(context));
    let there =
        system.nodes.iter().filter(|node| node.path.starts_with("/dev/nvidia") && !node.path[5..].contains('/'));
    let names: Vec<&str> = there.map(|node| node.path.trim_start_matches("/dev/")).collect();
    let mut text = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    if !made_later.is_empty() {
        text += &format!("; {} at first use, by nvidia-modprobe", made_later.join(", "));
    }
    Line::judged(LAYER, TOPIC, text, "/dev", findings)
}

/// What CUDA opens and is not there. A container may have been given some GPUs only.
fn missing(context: &Context<'_>) -> Vec<String> {
    let system = &context.facts.system;
    let mut wanted = vec!["/dev/nvidiactl".to_owned(), "/dev/nvidia-uvm".to_owned()];
    let is_gpu_node = |path: &str| path.strip_prefix("/dev/nvidia").is_some_and(|rest| rest.parse::<u32>().is_ok());
    let minors: Vec<u32> = context.gpus.iter().filter_map(|gpu| gpu.minor).collect();
    if system.container.fact().is_some() || minors.is_empty() {
        if !context.gpus.is_empty() && !system.nodes.iter().any(|node| is_gpu_node(&node.path)) {
            wanted.push("/dev/nvidia0".to_owned());
        }
    } else {
        wanted.extend(minors.iter().map(|minor| format!("/dev/nvidia{minor}")));
    }
    wanted.retain(|path| system.node(path).is_none());
    wanted
}

fn not_there(context: &Context<'_>, path: &str) -> Diagnostic {
    let message =
        format!("{path} is missing: CUDA does not start (\"no CUDA-capable device\" or \"unknown error\", 100 or 999)");
    let finding = NODE_MISSING.found(message, Evidence::observed(path, "no such file")).about(path);
    match context.facts.system.container.fact() {
        Some(container) => finding.and(container.seen.clone()).fix(format!(
            "start the container through NVIDIA's runtime (--gpus all, or --device nvidia.com/gpu=all), or hand it \
             in too: --device {path}"
        )),
        None => {
            let fact = Evidence::fact("nvidia-modprobe makes missing nodes when a program starts", MODPROBE_SOURCE);
            let make = if path.ends_with("uvm") { "nvidia-modprobe -c 0 -u" } else { "nvidia-modprobe -c 0" };
            finding.and(fact).fix(format!(
                "as root: {make}; install nvidia-modprobe, so that programs do it \
                                           themselves"
            ))
        }
    }
}

/// Nodes that not everybody may open, which is well where the job's user is of their group.
fn restricted(context: &Context<'_>) -> Option<Diagnostic> {
    let names = ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0"];
    let nodes = names.iter().filter_map(|path| context.facts.system.node(path));
    let node = nodes.into_iter().find(|node| node.mode & FOR_ALL != FOR_ALL)?;
    let message =
        format!("{} is open to its owner and group alone: others get \"no CUDA-capable device\" (100)", node.path);
    let seen = Evidence::observed(&*node.path, format!("mode {:04o}", node.mode & 0o7777));
    let finding = NODE_RESTRICTED.found(message, seen).about(&*node.path);
    Some(finding.fix("put the job's user into that group (ls -l), or set NVreg_DeviceFileMode=0666 for the module"))
}

fn wsl(context: &Context<'_>) -> Line {
    let system = &context.facts.system;
    if system.node("/dev/dxg").is_some() {
        return Line::ok(LAYER, TOPIC, "/dev/dxg", "/dev");
    }
    let message = "/dev/dxg is missing: this WSL has no GPU";
    let finding = NODE_MISSING.found(message, Evidence::observed("/dev/dxg", "no such file")).about("/dev/dxg");
    let fix = "use WSL 2 (wsl --set-version), and install NVIDIA's driver in Windows";
    Line::judged(LAYER, TOPIC, "none", "/dev", vec![finding.fix(fix)])
}
