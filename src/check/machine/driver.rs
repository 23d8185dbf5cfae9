//! The driver: its kernel module, and the services that go with it. Libraries and device nodes have files of their own.

use super::{
    Context, FABRIC, Layer, Line, MIG, NOT_LOADED, OPEN_REQUIRED, OPEN_UNSUPPORTED, SeenGpu, libraries, nodes,
};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::inventory::machine::{PciDevice, Reading};
use crate::matrix::Gpu;
use crate::matrix::schema::OpenModules;
use crate::resolve::first_driver;
use crate::version::Driver;

const LAYER: Layer = Layer::Driver;
const FABRIC_TOPIC: &str = "fabric manager";
/// CUDA's own word on a machine whose fabric is not set up.
const FABRIC_SOURCE: &str = "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html";

pub(super) fn judge(context: &Context<'_>) -> Result<Vec<Line>, Failure> {
    let mut lines = Vec::new();
    if !context.is_gpu_machine() {
        lines.push(Line::not_checked(
            LAYER,
            "kernel module",
            "there is no GPU, and no module runs",
            context.facts.module.version.how(),
        ));
        lines.extend(libraries::judge(context));
        return Ok(lines);
    }
    lines.push(module(context)?);
    lines.extend(libraries::judge(context));
    lines.push(nodes::judge(context));
    if !context.facts.system.is_wsl() && context.facts.system.jetson.fact().is_none() {
        lines.push(fabric(context));
        lines.push(persistence(context));
        lines.push(mig(context));
    }
    Ok(lines)
}

fn module(context: &Context<'_>) -> Result<Line, Failure> {
    const TOPIC: &str = "kernel module";
    let facts = context.facts;
    let module = &facts.module;
    if facts.system.is_wsl() {
        return Ok(Line::ok(
            LAYER,
            TOPIC,
            "none is needed: under WSL the driver is that of Windows",
            facts.system.kernel.how(),
        ));
    }
    let Some(version) = module.version.fact() else {
        if facts.system.jetson.fact().is_some() {
            return Ok(Line::unread(
                LAYER,
                TOPIC,
                &module.version,
                "on this board the GPU's driver is part of the kernel and shows no version",
            ));
        }
        return Ok(match &module.version {
            Reading::Unread { .. } => Line::unread(LAYER, TOPIC, &module.version, ""),
            _ => not_loaded(context),
        });
    };
    let kind = match module.open.value() {
        Some(true) => ", open kernel modules",
        Some(false) => ", proprietary kernel modules",
        None => "",
    };
    let mut findings = kinds(context)?;
    findings.extend(ages(context, &version.value)?);
    Ok(Line::judged(LAYER, TOPIC, format!("{}{kind}", version.value), module.version.how(), findings))
}

/// A GPU, and no module that drives it.
fn not_loaded(context: &Context<'_>) -> Line {
    const TOPIC: &str = "kernel module";
    let module = &context.facts.module;
    let kernel = context.facts.system.kernel.value().map_or("this kernel", String::as_str);
    // That another driver holds the GPUs says why.
    if context.gpus.iter().all(SeenGpu::is_elsewhere) {
        return Line::not_checked(LAYER, TOPIC, "another driver holds the GPUs", module.version.how());
    }
    let absent = Evidence::observed(module.version.how(), "no such file");
    let (message, evidence, fix) = match &module.installed {
        Reading::Is(paths) => (
            format!("NVIDIA's kernel module is there for {kernel}, and does not run"),
            paths.seen.clone(),
            "modprobe nvidia, and read in dmesg why it refuses: another kind or version of modules for this GPU, or \
             a signature that secure boot asks for",
        ),
        Reading::Absent(what) => (
            format!("there is no NVIDIA kernel module for {kernel}"),
            Evidence::observed(what.as_str(), "no nvidia.ko"),
            "install the driver; after an upgrade of the kernel, build its modules again (dkms autoinstall)",
        ),
        Reading::Unread { what, why } => (
            "NVIDIA's kernel module does not run".to_owned(),
            Evidence::observed(what.as_str(), why.as_str()),
            "modprobe nvidia, and read in dmesg why it refuses",
        ),
    };
    let finding = NOT_LOADED.found(message, absent).and(evidence).fix(fix);
    Line::judged(LAYER, TOPIC, "none runs", module.version.how(), vec![finding])
}

/// Modules of a kind that does not drive a GPU that is here.
fn kinds(context: &Context<'_>) -> Result<Vec<Diagnostic>, Failure> {
    let Some(open) = context.facts.module.open.fact() else { return Ok(Vec::new()) };
    let modules = &context.matrix.pci()?.modules;
    let mut findings: Vec<Diagnostic> = Vec::new();
    for gpu in context.ours() {
        let last = gpu.capability.and_then(|capability| context.matrix.gpu().ok()?.get(capability)?.last_branch);
        let up_to = last.map_or_else(String::new, |last| format!(" of a driver of branch {last} or older"));
        let (fault, kind, fix) = match &gpu.open_modules {
            Some(OpenModules::Required) if !open.value => (
                OPEN_REQUIRED,
                "the proprietary kernel modules run, and it is driven by the open ones alone",
                "install the open kernel modules of the same driver (nvidia-open, nvidia-driver-*-open, \
                 kernel-module-type=open)"
                    .to_owned(),
            ),
            Some(OpenModules::Unsupported) if open.value => (
                OPEN_UNSUPPORTED,
                "the open kernel modules run, and it is driven by the proprietary ones alone",
                format!("install the proprietary kernel modules{up_to}"),
            ),
            _ => continue,
        };
        let message = format!("{}: {kind}", gpu.words());
        if findings.iter().any(|finding| finding.message == message) {
            continue;
        }
        let row = modules.iter().find(|row| Some(row.kind) == gpu.open_modules);
        let fact = row.map(|row| Evidence::fact(&*row.claim, &*row.source));
        let about = gpu.address.clone().unwrap_or_default();
        let finding = fault.found(message, open.seen.clone()).and(gpu.seen.clone());
        findings.push(fact.into_iter().fold(finding, Diagnostic::and).about(about).fix(fix));
    }
    Ok(findings)
}

/// A driver that does not know a GPU yet, or not any more.
fn ages(context: &Context<'_>, driver: &Driver) -> Result<Vec<Diagnostic>, Failure> {
    let mut findings: Vec<Diagnostic> = Vec::new();
    let seen = || Evidence::observed(context.facts.module.version.how(), driver.to_string());
    for gpu in context.ours() {
        let Some(capability) = gpu.capability else { continue };
        let known = Gpu { name: gpu.name.clone(), capability, class: gpu.class, known: true };
        let first = first_driver(context.matrix, &known)?;
        let row = context.matrix.gpu()?.get(capability).filter(|row| !row.tegra);
        let last = row.and_then(|row| Some((row.last_branch?, &row.source)));
        let finding = match (first, last) {
            (Some((first, claim, source, inferred)), _) if row.is_some() && *driver < first => {
                let message = format!(
                    "driver {driver} is older than {} ({}): it does not know this GPU",
                    gpu.name,
                    capability.sm()
                );
                let finding = Diagnostic::error("driver-too-old", message, seen()).and(Evidence::fact(claim, source));
                let severity = if inferred { Severity::Warning } else { Severity::Error };
                Diagnostic { severity, ..finding }.fix(format!("install driver {first} or later"))
            }
            (_, Some((last, source))) if driver.major() > last => {
                let message = format!("driver {driver} does not support {} ({}) any more", gpu.name, capability.sm());
                let claim = format!("the last branch for {} is R{last}", capability.sm());
                let finding = Diagnostic::error("driver-too-new", message, seen());
                finding.and(Evidence::fact(claim, source)).fix(format!("install a driver of branch {last}"))
            }
            _ => continue,
        };
        if !findings.iter().any(|other| other.message == finding.message) {
            findings.push(finding);
        }
    }
    Ok(findings)
}

fn fabric(context: &Context<'_>) -> Line {
    let facts = context.facts;
    if let Some(line) = registration(context) {
        return line;
    }
    let switches = facts.devices.value().map_or(0, |all| all.iter().filter(|device| device.is_switch()).count());
    match &facts.devices {
        Reading::Is(_) if switches == 0 => return without_switch(context),
        Reading::Is(_) => {}
        other => return Line::unread(LAYER, FABRIC_TOPIC, other, "the PCI bus is not there"),
    }
    let Some(daemons) = facts.system.daemons.fact() else {
        let why = format!(
            "{switches} NVSwitches; {}",
            match &facts.system.daemons {
                Reading::Unread { why, .. } => why.as_str(),
                _ => "no processes are seen",
            }
        );
        return Line::not_checked(LAYER, FABRIC_TOPIC, why, facts.system.daemons.how());
    };
    if has_fabric_manager(&daemons.value) {
        return Line::ok(LAYER, FABRIC_TOPIC, format!("runs, for {switches} NVSwitches"), facts.system.daemons.how());
    }
    let message = format!(
        "{switches} NVSwitches, and no fabric manager runs: CUDA fails with \"system not yet initialized\" (802)"
    );
    let claim = "until the fabric manager has set up the NVSwitches, CUDA does not start";
    let finding = FABRIC.found(message, daemons.seen.clone()).and(Evidence::fact(claim, FABRIC_SOURCE));
    let version = facts.module.version.value().map_or_else(String::new, |version| format!(" of exactly {version}"));
    let fix = format!("install nvidia-fabricmanager{version}, and systemctl enable --now nvidia-fabricmanager");
    Line::judged(LAYER, FABRIC_TOPIC, "does not run", facts.system.daemons.how(), vec![finding.fix(fix)])
}

/// What the GPUs say of their fabric: each is registered in it before CUDA starts. Absent where they have none.
fn registration(context: &Context<'_>) -> Option<Line> {
    let smi = context.facts.smi.fact()?;
    // A GPU that is divided by MIG has no links.
    let whole = smi.value.gpus.iter().filter(|gpu| gpu.field("mig") != Some("Enabled"));
    let states: Vec<(&str, &str)> =
        whole.filter_map(|gpu| Some((gpu.address.as_str(), gpu.field("fabric")?))).collect();
    let how = context.facts.smi.how();
    if !states.is_empty() && states.iter().all(|(_, state)| *state == "Completed") {
        return Some(Line::ok(
            LAYER,
            FABRIC_TOPIC,
            format!("{} GPUs are registered in their fabric", states.len()),
            how,
        ));
    }
    let (address, state) = *states.iter().find(|(_, state)| ["Not Started", "In Progress"].contains(state))?;
    let message = format!(
        "the GPU at {address} is not registered in its fabric ({state}): until it is, CUDA fails with \"system not \
         yet initialized\" (802)"
    );
    let finding = FABRIC.found(message, Evidence::observed(how, format!("fabric state: {state}"))).about(address);
    // Where no NVSwitch is seen (a container, a virtual machine), that there is one is not known.
    let is_switched = context.facts.devices.value().is_some_and(|all| all.iter().any(PciDevice::is_switch))
        || has_switches_off_bus(context);
    let severity = if is_switched { finding.severity } else { Severity::Warning };
    let finding = Diagnostic { severity, ..finding };
    let fix =
        "look at nvidia-fabricmanager on the machine (systemctl status nvidia-fabricmanager), and at what it logs";
    Some(Line::judged(LAYER, FABRIC_TOPIC, format!("fabric state {state}"), how, vec![finding.fix(fix)]))
}

/// No NVSwitch on the bus, where those of the fourth generation never are.
fn without_switch(context: &Context<'_>) -> Line {
    let facts = context.facts;
    if !has_switches_off_bus(context) {
        return Line::ok(LAYER, FABRIC_TOPIC, "not needed: no NVSwitch on the PCI bus", facts.devices.how());
    }
    if facts.system.daemons.value().is_some_and(|daemons| has_fabric_manager(daemons)) {
        return Line::ok(LAYER, FABRIC_TOPIC, "runs", facts.system.daemons.how());
    }
    let why = "the NVSwitches of these GPUs are not on the PCI bus, and no output of nvidia-smi tells of the fabric";
    Line::not_checked(LAYER, FABRIC_TOPIC, why, facts.devices.how())
}

/// Whether the fabric manager is among daemons, by its name, which the kernel cuts short.
fn has_fabric_manager(daemons: &[String]) -> bool {
    daemons.iter().any(|name| name.starts_with("nv-fabric"))
}

/// Whether there are GPUs whose NVSwitches are not on the PCI bus.
fn has_switches_off_bus(context: &Context<'_>) -> bool {
    context.gpus.iter().any(|gpu| gpu.switches_off_bus)
}

fn persistence(context: &Context<'_>) -> Line {
    const TOPIC: &str = "persistence";
    let facts = context.facts;
    if let Some(daemons) = facts.system.daemons.fact()
        && daemons.value.iter().any(|name| name.starts_with("nvidia-persiste"))
    {
        return Line::ok(LAYER, TOPIC, "nvidia-persistenced runs", facts.system.daemons.how());
    }
    let modes =
        facts.smi.value().map(|smi| smi.gpus.iter().filter_map(|gpu| gpu.field("persistence")).collect::<Vec<_>>());
    match (modes, &facts.system.daemons) {
        (Some(modes), _) if !modes.is_empty() && modes.iter().all(|mode| *mode == "Enabled") => {
            Line::ok(LAYER, TOPIC, "persistence mode is on", facts.smi.how())
        }
        (_, Reading::Is(_)) => {
            let text =
                "nvidia-persistenced does not run: the first program after a pause waits until the GPUs are set up";
            Line::ok(LAYER, TOPIC, text, facts.system.daemons.how())
        }
        (_, other) => Line::unread(LAYER, TOPIC, other, "no processes are seen"),
    }
}

fn mig(context: &Context<'_>) -> Line {
    const TOPIC: &str = "MIG";
    let facts = context.facts;
    let instances: usize = facts.instances.values().sum();
    let Some(smi) = facts.smi.fact() else {
        if instances > 0 {
            return Line::ok(LAYER, TOPIC, format!("{instances} instances"), "/proc/driver/nvidia/capabilities");
        }
        return Line::unread(LAYER, TOPIC, &facts.smi, "no output of nvidia-smi");
    };
    let on: Vec<&str> = smi
        .value
        .gpus
        .iter()
        .filter(|gpu| gpu.field("mig") == Some("Enabled"))
        .map(|gpu| gpu.address.as_str())
        .collect();
    if on.is_empty() {
        return Line::ok(LAYER, TOPIC, "off", facts.smi.how());
    }
    let text = format!("on for {} of {} GPUs, {instances} instances", on.len(), smi.value.gpus.len());
    // A container is shown those that it was given, and need not be shown any.
    if facts.system.container.fact().is_some() {
        return Line::ok(LAYER, TOPIC, text, facts.smi.how());
    }
    let empty = |address: &&&str| {
        let gpu = context.gpus.iter().find(|gpu| gpu.address.as_deref() == Some(**address));
        gpu.and_then(|gpu| gpu.minor).is_some_and(|minor| !facts.instances.contains_key(&minor))
    };
    let finding = |address: &&str| {
        let message = format!("MIG is on for the GPU at {address}, and it has no instance: CUDA finds no device there");
        let seen = Evidence::observed("/proc/driver/nvidia/capabilities", "no instance of this GPU");
        let finding = MIG.found(message, seen).about(*address);
        finding.fix("make instances (nvidia-smi mig -cgi .. -C), or switch MIG off (nvidia-smi -mig 0)")
    };
    let findings = on.iter().filter(empty).map(finding).collect();
    Line::judged(LAYER, TOPIC, text, facts.smi.how(), findings)
}
