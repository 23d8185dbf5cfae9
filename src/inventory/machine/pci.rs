//! NVIDIA's devices on the PCI bus: `/sys/bus/pci/devices` (Linux, Documentation/ABI/testing/sysfs-bus-pci), and what the
//! driver says of those that it drives (`/proc/driver/nvidia/gpus`).

use super::files::Files;
use super::reading::Reading;
use crate::diag::Evidence;
use crate::inventory::host::Fact;

const FOLDER: &str = "/sys/bus/pci/devices";
const DRIVEN: &str = "/proc/driver/nvidia/gpus";
/// NVIDIA's number as a vendor.
const NVIDIA: &str = "0x10de";

/// A device of NVIDIA.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PciDevice {
    /// Where it is: `0000:01:00.0`.
    pub address: String,
    /// Its number: 0x2b85.
    pub device: u16,
    /// Its class: 0x030000.
    pub class: u32,
    /// The kernel driver that holds it, by name.
    pub driver: Option<String>,
    /// What NVIDIA's driver calls it.
    pub model: Option<Fact<String>>,
    /// The number of its device node, as NVIDIA's driver gives it to those that it was not told to leave alone.
    pub minor: Option<u32>,
}

impl PciDevice {
    /// Whether it is a display controller: VGA (0x0300) or 3D (0x0302).
    pub fn is_gpu(&self) -> bool {
        self.class >> 16 == 0x03
    }

    /// Whether it is an NVSwitch, which NVIDIA's driver knows by this class (`PCI_CLASS_BRIDGE_NVSWITCH`). Devices of old
    /// chipsets have it too, and other drivers (forcedeth); a switch that vfio-pci holds is another machine's.
    pub fn is_switch(&self) -> bool {
        self.class >> 8 == 0x0680 && self.driver.as_deref().is_none_or(|driver| driver.starts_with("nvidia"))
    }

    /// What was seen of it.
    pub fn seen(&self) -> Evidence {
        let numbers = format!("vendor 0x10de, device {:#06x}, class {:#08x}", self.device, self.class);
        Evidence::observed(format!("{FOLDER}/{}", self.address), numbers)
    }
}

pub(in crate::inventory) fn read(files: &Files<'_>) -> Reading<Vec<PciDevice>> {
    files.names(FOLDER).then(|names| {
        let devices: Vec<PciDevice> = names.value.into_iter().filter_map(|address| device(files, address)).collect();
        let fact = format!("{} devices of vendor 0x10de", devices.len());
        Reading::of(devices, FOLDER, &fact)
    })
}

fn device(files: &Files<'_>, address: String) -> Option<PciDevice> {
    let path = format!("{FOLDER}/{address}/vendor");
    let vendor = files.root().read(path.as_ref(), 64).ok()?;
    if vendor.trim_ascii() != NVIDIA.as_bytes() {
        return None;
    }
    files.keep(&path, &format!("{NVIDIA}\n"));
    let device = u16::try_from(number(files, &address, "device")?).ok()?;
    let class = number(files, &address, "class")?;
    let driver = files.link(&format!("{FOLDER}/{address}/driver"));
    let driver = driver.and_then(|target| Some(target.file_name()?.to_str()?.to_owned()));
    let (model, minor) = driven(files, &address);
    Some(PciDevice { address, device, class, driver, model, minor })
}

/// What NVIDIA's driver calls the GPUs that it drives, also where the bus is not shown, and their numbers where it is.
pub(in crate::inventory) fn models(files: &Files<'_>) -> Vec<(Fact<String>, Option<u16>)> {
    let addresses = files.names(DRIVEN).value().cloned().unwrap_or_default();
    let number = |address: &String| u16::try_from(number(files, address, "device")?).ok();
    addresses.iter().filter_map(|address| Some((driven(files, address).0?, number(address)))).collect()
}

/// The number in a file of a device: `0x2b85`.
fn number(files: &Files<'_>, address: &str, name: &str) -> Option<u32> {
    let text = files.text(&format!("{FOLDER}/{address}/{name}"));
    u32::from_str_radix(text.value()?.strip_prefix("0x")?, 16).ok()
}

/// `Model: NVIDIA A100-SXM4-80GB` and `Device Minor: 0`.
fn driven(files: &Files<'_>, address: &str) -> (Option<Fact<String>>, Option<u32>) {
    let wanted = |line: &str| ["Model:", "Device Minor:", "GPU Excluded:"].iter().any(|key| line.starts_with(key));
    let path = format!("{DRIVEN}/{address}/information");
    let Reading::Is(text) = files.lines(&path, wanted) else { return (None, None) };
    let field = |key: &str| text.value.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let known = |model: &&str| !model.is_empty() && !model.eq_ignore_ascii_case("unknown");
    let model = field("Model:").filter(known);
    let model = model.map(|model| Fact { value: model.to_owned(), seen: Evidence::observed(path.as_str(), model) });
    // Told so by NVreg_ExcludedGpus, the driver holds a GPU and does not set it up.
    let minor = field("Device Minor:").filter(|_| field("GPU Excluded:") != Some("Yes"));
    (model, minor.and_then(|minor| minor.parse().ok()))
}
