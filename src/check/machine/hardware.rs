//! GPUs: which there are, how warm they are, and what went wrong with them.

use std::collections::BTreeMap;

use super::{Context, HELD, HIDDEN, Layer, Line, MEMORY, MISSING, NOT_ANSWERING, SeenGpu, THROTTLED, XID};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::inventory::machine::{PciDevice, Reading, SmiGpu, Xid, reading, smi};

const LAYER: Layer = Layer::Hardware;

/// `is_explained`: the driver's own lines say why nothing reaches the GPUs.
pub(super) fn judge(context: &Context<'_>, is_explained: bool) -> Result<Vec<Line>, Failure> {
    let mut lines = vec![gpus(context, is_explained)?];
    if context.is_gpu_machine() {
        lines.push(power(context));
        lines.push(memory(context));
        lines.push(faults(context)?);
    }
    Ok(lines)
}

/// `2 x NVIDIA H100 PCIe (sm_90), Tesla T4 (sm_75)`
pub(super) fn counted(gpus: &[SeenGpu]) -> String {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for gpu in gpus {
        let words = gpu.words();
        match counts.iter_mut().find(|(known, _)| *known == words) {
            Some((_, count)) => *count += 1,
            None => counts.push((words, 1)),
        }
    }
    let words = counts.into_iter().map(|(words, count)| if count == 1 { words } else { format!("{count} x {words}") });
    words.collect::<Vec<_>>().join(", ")
}

fn gpus(context: &Context<'_>, is_explained: bool) -> Result<Line, Failure> {
    let devices = &context.facts.devices;
    let system = &context.facts.system;
    if context.gpus.is_empty() {
        if system.is_wsl() {
            return Ok(Line::not_checked(
                LAYER,
                "GPUs",
                "under WSL they are not on the PCI bus, and nvidia-smi shows none",
                devices.how(),
            ));
        }
        if let Some(version) = context.facts.module.version.fact().filter(|_| devices.value().is_some()) {
            let message = format!("driver {} runs, and no NVIDIA GPU is on the PCI bus", version.value);
            let finding = MISSING.found(message, Evidence::observed(devices.how(), "no display controller of NVIDIA"));
            let fix = "look for \"fallen off the bus\" in the kernel's log and restart the machine; in a virtual \
                       machine, pass the GPU through";
            let findings = vec![finding.and(version.seen.clone()).fix(fix)];
            return Ok(Line::judged(LAYER, "GPUs", "none", devices.how(), findings));
        }
        return Ok(Line::unread(LAYER, "GPUs", devices, "no NVIDIA GPU on the PCI bus"));
    }
    // Where there is one on the bus, all are from there.
    let how = match devices.value().is_some_and(|devices| devices.iter().any(PciDevice::is_gpu)) {
        true => devices.how(),
        false => reading::how(&context.gpus[0].seen),
    };
    let mut findings = held(context);
    findings.extend(undriven(context));
    findings.extend(unreached(context, is_explained)?);
    Ok(Line::judged(LAYER, "GPUs", counted(context.gpus), how, findings))
}

/// GPUs that no driver holds while NVIDIA's holds others.
fn undriven(context: &Context<'_>) -> Vec<Diagnostic> {
    if !context.gpus.iter().any(SeenGpu::is_driven) {
        return Vec::new();
    }
    let one = |gpu: &SeenGpu| {
        let address = gpu.address.as_deref().filter(|_| gpu.driver.is_none())?;
        let message = format!("{} at {address} is held by no kernel driver, and NVIDIA's holds others", gpu.name);
        let seen = Evidence::observed(format!("/sys/bus/pci/devices/{address}/driver"), "no such link");
        let finding = Diagnostic { severity: Severity::Warning, ..HELD.found(message, seen).about(address) };
        Some(finding.fix("dmesg | grep NVRM says why the driver does not take it: it is too old for it or too new, or it cannot be set up"))
    };
    context.gpus.iter().filter_map(one).collect()
}

/// GPUs that the driver holds and NVML does not reach. Where nvidia-smi fails for a reason that is found elsewhere, that says it.
fn unreached(context: &Context<'_>, is_explained: bool) -> Result<Vec<Diagnostic>, Failure> {
    let facts = context.facts;
    let how = facts.smi.how();
    let smi = match &facts.smi {
        Reading::Is(smi) => &smi.value,
        Reading::Unread { why, .. }
            if smi::is_failure(why) && facts.module.version.value().is_some() && !is_explained =>
        {
            let finding = NOT_ANSWERING
                .found(format!("NVML does not reach the GPUs: {why}"), Evidence::observed(how, why.as_str()));
            let known = context.matrix.message()?;
            let answer = known.meanings(why).into_iter().find_map(|meaning| meaning.answer());
            return Ok(vec![match answer {
                Some(row) => finding.and(Evidence::fact(&*row.cause, &*row.source)).fix(&*row.fix),
                None => finding.fix("dmesg | grep NVRM says what the driver met; reset the GPU or restart the machine"),
            }]);
        }
        _ => return Ok(Vec::new()),
    };
    let mut findings: Vec<Diagnostic> = smi.gpus.iter().filter_map(|gpu| ailing(gpu, how)).collect();
    findings.extend(unlisted(context, &smi.gpus, how));
    findings.extend(prohibited(&smi.gpus, how));
    Ok(findings)
}

/// GPUs on which no program may compute: one that is there for a screen, or all.
fn prohibited(gpus: &[SmiGpu], how: &str) -> Vec<Diagnostic> {
    let is_prohibited = |gpu: &&SmiGpu| gpu.field("compute-mode") == Some("Prohibited");
    let severity = if gpus.iter().all(|gpu| is_prohibited(&gpu)) { Severity::Error } else { Severity::Warning };
    let one = |gpu: &SmiGpu| {
        let message = format!(
            "the compute mode of {} at {} is Prohibited: CUDA fails there with \"CUDA-capable device(s) is/are busy or \
             unavailable\" (46)",
            gpu.name, gpu.address
        );
        let finding = HIDDEN.found(message, Evidence::observed(how, "compute_mode: Prohibited")).about(&*gpu.address);
        Diagnostic { severity, ..finding }.fix(format!("nvidia-smi -i {} -c DEFAULT", gpu.address))
    };
    gpus.iter().filter(is_prohibited).map(one).collect()
}

/// A GPU that NVML cannot reach any more, or of which it says what would bring it back.
fn ailing(gpu: &SmiGpu, how: &str) -> Option<Diagnostic> {
    let recovery = gpu.field("recovery").filter(|action| *action != "None");
    let (what, message) = match (gpu.field(smi::TROUBLE), recovery) {
        (Some(trouble), _) => (trouble, format!("{} at {} does not answer: {trouble}", gpu.name, gpu.address)),
        (None, Some(action)) => {
            (action, format!("{} at {} has met a fault that it recovers from by: {action}", gpu.name, gpu.address))
        }
        (None, None) => return None,
    };
    let finding = NOT_ANSWERING.found(message, Evidence::observed(how, what)).about(&*gpu.address);
    Some(finding.fix(match recovery {
        Some("Reset" | "GPU Reset" | "Drain and Reset") => {
            "end the programs that use it and reset it (nvidia-smi --gpu-reset)"
        }
        Some("Drain P2P") => "end the programs that use it together with other GPUs",
        _ => "restart the machine; if it happens again, look at power, cooling and seating of the GPU",
    }))
}

/// GPUs that the driver has set up and that nvidia-smi does not list; a container may be given some alone.
fn unlisted(context: &Context<'_>, listed: &[SmiGpu], how: &str) -> Vec<Diagnostic> {
    if context.facts.system.container.fact().is_some() {
        return Vec::new();
    }
    let one = |gpu: &SeenGpu| {
        let address = gpu.address.as_deref().filter(|_| gpu.is_driven() && gpu.minor.is_some())?;
        if listed.iter().any(|known| known.address == address) {
            return None;
        }
        let message = format!("{} at {address} is not listed by nvidia-smi: the driver has lost it", gpu.name);
        let finding =
            NOT_ANSWERING.found(message, Evidence::observed(how, format!("{} GPUs, not this one", listed.len())));
        let finding = finding.and(gpu.seen.clone()).about(address);
        Some(finding.fix("look for its faults in the kernel's log (dmesg | grep NVRM), and restart the machine"))
    };
    context.gpus.iter().filter_map(one).collect()
}

/// GPUs that another driver holds; those that are handed to a virtual machine are meant to be.
fn held(context: &Context<'_>) -> Vec<Diagnostic> {
    let is_used = context.gpus.iter().any(SeenGpu::is_driven);
    let one = |gpu: &SeenGpu| {
        let driver = gpu.driver.as_deref().filter(|_| gpu.is_elsewhere())?;
        let address = gpu.address.as_deref().unwrap_or_default();
        let message = format!("{} at {address} is held by the kernel driver {driver}, not by NVIDIA's", gpu.name);
        let seen = Evidence::observed(format!("/sys/bus/pci/devices/{address}/driver"), driver);
        let finding = HELD.found(message, seen).about(address);
        Some(match driver {
            "vfio-pci" => Diagnostic { severity: Severity::Note, ..finding }
                .fix("it is set aside for a virtual machine; if it is not, unbind it from vfio-pci"),
            // Beside GPUs that compute, one may be there for a screen alone.
            _ => Diagnostic { severity: if is_used { Severity::Warning } else { finding.severity }, ..finding }.fix(
                format!(
                    "keep {driver} from loading (blacklist {driver} in /etc/modprobe.d), make the \
                                      initramfs again and restart"
                ),
            ),
        })
    };
    context.gpus.iter().filter_map(one).collect()
}

fn power(context: &Context<'_>) -> Line {
    const TOPIC: &str = "power and heat";
    let Some(smi) = context.facts.smi.fact() else {
        return Line::unread(LAYER, TOPIC, &context.facts.smi, "no output of nvidia-smi");
    };
    let words = |gpu: &SmiGpu| {
        let parts = [
            gpu.field("temperature").map(str::to_owned),
            gpu.field("power").map(|power| match gpu.field("power-limit") {
                Some(limit) => format!("{power} of {limit}"),
                None => power.to_owned(),
            }),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { "not told".to_owned() } else { parts.join(", ") }
    };
    let text: Vec<String> = smi.value.gpus.iter().map(words).collect();
    let throttled = |gpu: &SmiGpu| {
        let reasons = [("thermal-slowdown", "it is too hot"), ("power-brake", "the power supply asks for it")];
        let (field, why) = reasons.into_iter().find(|(field, _)| gpu.field(field) == Some("Active"))?;
        let message = format!("{} at {} is slowed down by its hardware: {why}", gpu.name, gpu.address);
        let seen = Evidence::observed(context.facts.smi.how(), format!("{field}: Active"));
        Some(
            THROTTLED
                .found(message, seen)
                .about(&*gpu.address)
                .fix("look at fans, airflow and power supply of the machine"),
        )
    };
    let findings = smi.value.gpus.iter().filter_map(throttled).collect();
    Line::judged(LAYER, TOPIC, text.join("; "), context.facts.smi.how(), findings)
}

fn memory(context: &Context<'_>) -> Line {
    const TOPIC: &str = "memory errors";
    let Some(smi) = context.facts.smi.fact() else {
        return Line::unread(LAYER, TOPIC, &context.facts.smi, "no output of nvidia-smi");
    };
    let how = context.facts.smi.how();
    let mut findings = Vec::new();
    let mut with_ecc = 0;
    for gpu in &smi.value.gpus {
        with_ecc += usize::from(gpu.field("ecc") == Some("Enabled"));
        let number = |field: &str| gpu.field(field).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        let counts = ["uncorrectable-dram", "uncorrectable-sram", "uncorrectable-sram-secded"];
        let errors = counts.into_iter().map(number).fold(0, u64::saturating_add);
        let at = format!("{} at {}", gpu.name, gpu.address);
        if gpu.field("remap-failure") == Some("Yes") {
            let seen = Evidence::observed(how, "remapped_row_failure: Yes");
            let finding = MEMORY.found(format!("{at} has no spare rows left for broken memory"), seen);
            findings.push(finding.about(&*gpu.address).fix("take it out of service and have it replaced"));
        } else if errors > 0 {
            let seen = Evidence::observed(how, format!("{errors} uncorrectable errors since the driver was loaded"));
            let finding = MEMORY.found(format!("{at} has had {errors} memory errors that ECC could not correct"), seen);
            findings.push(finding.about(&*gpu.address).fix(
                "restart the job, then reset the GPU (nvidia-smi --gpu-reset); if they come back, have it replaced",
            ));
        } else if let Some(field) =
            ["remap-pending", "retirement-pending"].into_iter().find(|field| gpu.field(field) == Some("Yes"))
        {
            let seen = Evidence::observed(how, format!("{field}: Yes"));
            let finding =
                MEMORY.found(format!("{at} has a broken part of memory that is replaced at its next reset"), seen);
            let finding = Diagnostic { severity: Severity::Warning, ..finding };
            findings.push(finding.about(&*gpu.address).fix("reset it when no job runs: nvidia-smi --gpu-reset"));
        }
    }
    let text = match with_ecc {
        0 => "no GPU here has ECC switched on".to_owned(),
        count => format!("ECC on {count} of {}", smi.value.gpus.len()),
    };
    Line::judged(LAYER, TOPIC, text, how, findings)
}

/// Faults that the driver logged, one finding for each number.
fn faults(context: &Context<'_>) -> Result<Line, Failure> {
    const TOPIC: &str = "Xid faults";
    let faults = &context.facts.faults;
    let Reading::Is(logged) = faults else {
        return Ok(Line::unread(LAYER, TOPIC, faults, "no log of the kernel is here"));
    };
    let mut numbers: BTreeMap<u32, Vec<&Xid>> = BTreeMap::new();
    for fault in &logged.value {
        numbers.entry(fault.number).or_default().push(fault);
    }
    let known = context.matrix.message()?;
    let finding = |(number, same): (&u32, &Vec<&Xid>)| {
        let last = same.last()?;
        let times = if same.len() == 1 { "once".to_owned() } else { format!("{} times", same.len()) };
        let row = known.answer("Xid", *number);
        let meaning = row.map_or_else(String::new, |row| format!(" ({})", row.title));
        let message = format!("the driver logged Xid {number} {times}, last at {}{meaning}", last.address);
        let line = format!("NVRM: Xid ({}): {number}, {}", last.address, last.text);
        let finding = XID.found(message, Evidence::observed(faults.how(), line)).about(format!("Xid {number}"));
        let is_remark = row.is_some_and(|row| row.machine_is_well);
        let finding = if is_remark { Diagnostic { severity: Severity::Note, ..finding } } else { finding };
        Some(match row {
            Some(row) => {
                finding.and(Evidence::fact(format!("Xid {number}: {}", row.cause), &row.source)).fix(&*row.fix)
            }
            None => finding.fix("look it up in NVIDIA's catalogue of Xid errors"),
        })
    };
    let findings: Vec<Diagnostic> = numbers.iter().filter_map(finding).collect();
    let text = if findings.is_empty() { "none logged".to_owned() } else { format!("{} logged", logged.value.len()) };
    Ok(Line::judged(LAYER, TOPIC, text, faults.how(), findings))
}
