//! NVIDIA's devices on the PCI bus: takes `pci.toml`, answers by number.

use super::schema::{ChipRow, PciFile};

impl PciFile {
    /// The product that a device number (0x2b85) stands for, and its chip.
    pub fn device(&self, number: u16) -> Option<(&str, &ChipRow)> {
        let number = format!("{number:04x}");
        self.chips.iter().find_map(|chip| Some((chip.devices.get(&number)?.as_str(), chip)))
    }
}
