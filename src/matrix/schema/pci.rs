//! `pci.toml`: NVIDIA's devices on the PCI bus.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Basis;
use crate::version::Capability;

/// `pci.toml`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PciFile {
    /// What is known of the kinds of kernel modules.
    pub modules: Vec<ModulesRow>,
    /// Chips, the oldest first.
    #[serde(rename = "chip")]
    pub chips: Vec<ChipRow>,
}

/// Which chips a kind of kernel modules drives.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ModulesRow {
    /// The kind.
    pub kind: OpenModules,
    /// The fact, a sentence.
    pub claim: String,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// One chip and the devices that it is sold as.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ChipRow {
    /// "GB202".
    pub name: String,
    /// Its compute capability.
    pub capability: Capability,
    /// Which kernel modules drive it; absent where both do.
    pub open_modules: Option<OpenModules>,
    /// Whether the NVSwitches that go with it are no devices on the PCI bus of the machine.
    #[serde(default)]
    pub switches_off_bus: bool,
    /// A remark for people.
    pub note: Option<String>,
    /// How it is known.
    #[serde(default)]
    pub basis: Basis,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
    /// Device number, four hexadecimal digits in lower case, to product.
    pub devices: BTreeMap<String, String>,
}

/// What a chip has to do with NVIDIA's open kernel modules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OpenModules {
    /// They alone drive it.
    Required,
    /// The proprietary ones alone do.
    Unsupported,
}
