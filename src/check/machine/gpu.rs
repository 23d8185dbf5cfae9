//! The GPUs of a machine, by whichever source shows them: the PCI bus, the board of a Jetson, nvidia-smi.

use crate::diag::{Evidence, Failure};
use crate::inventory::machine::{Facts, PciDevice};
use crate::matrix::Matrix;
use crate::matrix::schema::{GpuClass, OpenModules};
use crate::version::Capability;

/// A GPU that was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenGpu {
    /// Where it is on the PCI bus.
    pub address: Option<String>,
    /// What it is called: by its driver, else by its number.
    pub name: String,
    /// Its compute capability, where the matrix knows it.
    pub capability: Option<Capability>,
    /// What it is sold as, where the matrix knows it.
    pub class: Option<GpuClass>,
    /// Which kernel modules drive it, where only one kind does.
    pub open_modules: Option<OpenModules>,
    /// Whether the NVSwitches that go with it are not on the PCI bus.
    pub switches_off_bus: bool,
    /// The kernel driver that holds it.
    pub driver: Option<String>,
    /// Number of its device node.
    pub minor: Option<u32>,
    /// How it was seen.
    pub seen: Evidence,
}

impl SeenGpu {
    /// Whether NVIDIA's driver holds it, where that is seen.
    pub fn is_driven(&self) -> bool {
        self.driver.as_deref() == Some("nvidia")
    }

    /// Whether another driver holds it.
    pub fn is_elsewhere(&self) -> bool {
        self.driver.is_some() && !self.is_driven()
    }

    /// With its architecture: `NVIDIA H100 PCIe (sm_90)`.
    pub fn words(&self) -> String {
        match self.capability {
            Some(capability) => format!("{} ({})", self.name, capability.sm()),
            None => self.name.clone(),
        }
    }
}

/// The GPUs that are there.
///
/// # Errors
/// When the matrix cannot be read.
pub fn gpus(facts: &Facts, matrix: &Matrix) -> Result<Vec<SeenGpu>, Failure> {
    let devices = facts.devices.value().into_iter().flatten().filter(|device| device.is_gpu());
    let seen: Vec<SeenGpu> = devices.map(|device| on_bus(device, facts, matrix)).collect::<Result<_, _>>()?;
    if !seen.is_empty() {
        return Ok(given(seen, facts));
    }
    if let Some(board) = facts.system.jetson.fact() {
        return Ok(vec![named(&board.value, None, board.seen.clone(), matrix)?]);
    }
    let Some(smi) = facts.smi.fact() else { return Ok(Vec::new()) };
    smi.value.gpus.iter().map(|gpu| named(&gpu.name, Some(&gpu.address), smi.seen.clone(), matrix)).collect()
}

/// Those that are given to this container, where it shows which: the bus shows all of the machine's.
///
/// NVIDIA's runtime hides the folders of other GPUs below `/proc/driver/nvidia/gpus`, and no runtime hands in their nodes.
fn given(seen: Vec<SeenGpu>, facts: &Facts) -> Vec<SeenGpu> {
    let is_listed = |gpu: &SeenGpu| gpu.minor.is_some();
    let has_node =
        |gpu: &SeenGpu| gpu.minor.is_some_and(|minor| facts.system.node(&format!("/dev/nvidia{minor}")).is_some());
    let is_hidden = |gpu: &SeenGpu| !is_listed(gpu) && gpu.is_driven();
    if facts.system.container.fact().is_some() && seen.iter().any(has_node) {
        return seen.into_iter().filter(has_node).collect();
    }
    match seen.iter().any(is_listed) {
        true => seen.into_iter().filter(|gpu| !is_hidden(gpu)).collect(),
        false => seen,
    }
}

fn on_bus(device: &PciDevice, facts: &Facts, matrix: &Matrix) -> Result<SeenGpu, Failure> {
    let known = matrix.pci()?.device(device.device);
    let smi = facts.smi.value().and_then(|smi| smi.at(&device.address)).filter(|gpu| !gpu.name.is_empty());
    let (name, seen) = match (&device.model, smi, known) {
        (Some(model), ..) => (model.value.clone(), model.seen.clone()),
        (None, Some(gpu), _) => (gpu.name.clone(), Evidence::observed(facts.smi.how(), gpu.name.as_str())),
        (None, None, Some((name, _))) => (name.to_owned(), device.seen()),
        (None, None, None) => (format!("unknown GPU 10de:{:04x}", device.device), device.seen()),
    };
    let gpu = named(&name, Some(&device.address), seen, matrix)?;
    let by_number = known.and_then(|(name, _)| matrix.gpu().ok()?.find(name).ok()?.class);
    Ok(SeenGpu {
        capability: known.map(|(_, chip)| chip.capability).or(gpu.capability),
        class: gpu.class.or(by_number),
        open_modules: known.and_then(|(_, chip)| chip.open_modules),
        switches_off_bus: known.is_some_and(|(_, chip)| chip.switches_off_bus),
        driver: device.driver.clone(),
        minor: device.minor,
        ..gpu
    })
}

fn named(name: &str, address: Option<&str>, seen: Evidence, matrix: &Matrix) -> Result<SeenGpu, Failure> {
    let known = matrix.gpu()?.find(name).ok();
    Ok(SeenGpu {
        address: address.map(str::to_owned),
        name: name.to_owned(),
        capability: known.as_ref().map(|gpu| gpu.capability),
        class: known.as_ref().and_then(|gpu| gpu.class),
        open_modules: None,
        switches_off_bus: false,
        driver: None,
        minor: None,
        seen,
    })
}
