//! What `nvidia-smi -q -x` prints of each GPU: takes the text, gives the few fields that no file shows.
//!
//! The form is that of NVIDIA's `nvsmi_device_v*.dtd`; names of fields that changed are looked for under each of them.

use roxmltree::{Document, Node, ParsingOptions};

use super::Ask;
use super::reading::Reading;

/// How the program is asked.
const ARGUMENTS: [&str; 2] = ["-q", "-x"];
/// More nodes than the output of a hundred GPUs has.
const MOST_NODES: u32 = 1 << 20;
/// As many GPUs as no machine has.
const MOST_GPUS: usize = 1024;

/// All GPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Smi {
    /// The driver's version.
    pub driver: Option<String>,
    /// In the order in which they are printed.
    pub gpus: Vec<SmiGpu>,
}

/// One GPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SmiGpu {
    /// Where it is, in lower case with a domain of four digits: `0000:01:00.0`.
    pub address: String,
    /// Its product.
    pub name: String,
    /// Fields by the names below, as far as they are there.
    pub fields: Vec<(&'static str, String)>,
}

/// What NVML says in the place of a value when it cannot reach a GPU any more (`nvmlErrorString` of
/// `NVML_ERROR_GPU_IS_LOST` and `NVML_ERROR_RESET_REQUIRED`); the field has the first of them that is found.
const TROUBLES: [&str; 2] = ["GPU is lost", "GPU requires reset"];
pub const TROUBLE: &str = "trouble";
/// What stands where there is no value.
const NOTHING: [&str; 7] = [
    "N/A",
    "[N/A]",
    "Requested functionality has been deprecated",
    "Unknown Error",
    "[Unknown Error]",
    "ERR!",
    "[ERR!]",
];

/// A field and the places in which releases of the driver have it.
const FIELDS: [(&str, &[&str]); 18] = [
    (TROUBLE, &[TROUBLE]),
    ("recovery", &["gpu_recovery_action"]),
    ("compute-mode", &["compute_mode"]),
    ("fabric", &["fabric/state"]),
    ("retirement-pending", &["retired_pages/pending_retirement"]),
    ("persistence", &["persistence_mode"]),
    ("mig", &["mig_mode/current_mig"]),
    ("temperature", &["temperature/gpu_temp"]),
    ("power", &["gpu_power_readings/instant_power_draw", "gpu_power_readings/power_draw", "power_readings/power_draw"]),
    (
        "power-limit",
        &["gpu_power_readings/current_power_limit", "power_readings/power_limit", "gpu_power_readings/power_limit"],
    ),
    ("ecc", &["ecc_mode/current_ecc"]),
    // Before Turing all memories are counted together.
    ("uncorrectable-dram", &["ecc_errors/volatile/dram_uncorrectable", "ecc_errors/volatile/double_bit/total"]),
    (
        "uncorrectable-sram",
        &["ecc_errors/volatile/sram_uncorrectable", "ecc_errors/volatile/sram_uncorrectable_parity"],
    ),
    ("uncorrectable-sram-secded", &["ecc_errors/volatile/sram_uncorrectable_secded"]),
    ("remap-pending", &["remapped_rows/remapped_row_pending"]),
    ("remap-failure", &["remapped_rows/remapped_row_failure"]),
    (
        "thermal-slowdown",
        &[
            "clocks_event_reasons/clocks_event_reason_hw_thermal_slowdown",
            "clocks_throttle_reasons/clocks_throttle_reason_hw_thermal_slowdown",
        ],
    ),
    (
        "power-brake",
        &[
            "clocks_event_reasons/clocks_event_reason_hw_power_brake_slowdown",
            "clocks_throttle_reasons/clocks_throttle_reason_hw_power_brake_slowdown",
        ],
    ),
];

impl SmiGpu {
    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }
}

impl Smi {
    /// The GPU at an address.
    pub fn at(&self, address: &str) -> Option<&SmiGpu> {
        self.gpus.iter().find(|gpu| gpu.address == address)
    }

    /// What was read of it, in the form that it was read from: serial numbers and processes are not in it.
    pub fn text(&self) -> String {
        let escape =
            |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
        let mut out = "<nvidia_smi_log>\n".to_owned();
        if let Some(driver) = &self.driver {
            out += &format!("<driver_version>{}</driver_version>\n", escape(driver));
        }
        for gpu in &self.gpus {
            out +=
                &format!("<gpu id=\"{}\">\n<product_name>{}</product_name>\n", escape(&gpu.address), escape(&gpu.name));
            for (name, value) in &gpu.fields {
                let path = FIELDS.iter().find(|(known, _)| known == name).map_or("", |(_, paths)| paths[0]);
                let tags: Vec<&str> = path.split('/').collect();
                let open: String = tags.iter().map(|tag| format!("<{tag}>")).collect();
                let close: String = tags.iter().rev().map(|tag| format!("</{tag}>")).collect();
                out += &format!("{open}{}{close}\n", escape(value));
            }
            out += "</gpu>\n";
        }
        out + "</nvidia_smi_log>\n"
    }
}

/// Whether the program was started and says itself why it has nothing; what it prints of a damaged infoROM (14) it prints
/// besides all else.
pub fn is_failure(why: &str) -> bool {
    why.strip_prefix("nvidia-smi failed, ").is_some_and(|why| !why.contains("<?xml"))
}

/// Asks the program.
pub(in crate::inventory) fn asked(ask: Ask<'_>) -> Reading<Smi> {
    let what = format!("nvidia-smi {}", ARGUMENTS.join(" "));
    match ask("nvidia-smi", &ARGUMENTS) {
        Ok(text) => parsed(&text, &what),
        Err(why) => Reading::unread(&what, &why),
    }
}

/// Takes the text apart.
pub(super) fn parsed(text: &str, what: &str) -> Reading<Smi> {
    let options = ParsingOptions { allow_dtd: true, nodes_limit: MOST_NODES, ..ParsingOptions::default() };
    let document = match Document::parse_with_options(text, options) {
        Ok(document) => document,
        Err(error) => return Reading::unread(what, &format!("what it printed is no XML: {error}")),
    };
    let root = document.root_element();
    if root.tag_name().name() != "nvidia_smi_log" {
        let why = format!("what it printed is <{}>, not <nvidia_smi_log>", root.tag_name().name());
        return Reading::unread(what, &why);
    }
    let gpus: Vec<SmiGpu> = root.children().filter(|node| node.has_tag_name("gpu")).take(MOST_GPUS).map(gpu).collect();
    let fact = format!("{} GPUs", gpus.len());
    Reading::of(Smi { driver: text_at(root, "driver_version"), gpus }, what, &fact)
}

fn gpu(node: Node<'_, '_>) -> SmiGpu {
    let field =
        |(name, paths): &(&'static str, &[&str])| Some((*name, paths.iter().find_map(|path| text_at(node, path))?));
    let mut fields: Vec<(&'static str, String)> = FIELDS.iter().filter_map(field).collect();
    let said = |node: Node<'_, '_>| TROUBLES.into_iter().find(|text| node.text().is_some_and(|it| it.contains(text)));
    if let Some(text) = node.descendants().find_map(said) {
        fields.retain(|(name, value)| *name != TROUBLE && !value.contains(text));
        fields.insert(0, (TROUBLE, text.to_owned()));
    }
    SmiGpu {
        address: address(node.attribute("id").unwrap_or_default()),
        name: text_at(node, "product_name").unwrap_or_default(),
        fields,
    }
}

/// `00000000:01:00.0` is `0000:01:00.0` elsewhere.
fn address(id: &str) -> String {
    let id = id.to_lowercase();
    match id.split_once(':') {
        Some((domain, rest)) if domain.len() > 4 && domain.is_ascii() => {
            format!("{}:{rest}", &domain[domain.len() - 4..])
        }
        _ => id,
    }
}

/// The text of an element below a node, unless that says that there is none.
fn text_at(node: Node<'_, '_>, path: &str) -> Option<String> {
    const LONGEST: usize = 200;
    // What was kept has each field in elements of its own: several of one name beside each other.
    let (tag, rest) = path.split_once('/').map_or((path, None), |(tag, rest)| (tag, Some(rest)));
    let mut below = node.children().filter(|child| child.has_tag_name(tag));
    if let Some(rest) = rest {
        return below.find_map(|child| text_at(child, rest));
    }
    let text = below.next()?.text()?.trim();
    let says_something = !text.is_empty() && !NOTHING.contains(&text);
    (says_something && text.len() <= LONGEST).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_read_again() {
        let text = r#"<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log><driver_version>570.124.06</driver_version>
<gpu id="00000000:41:00.0"><product_name>NVIDIA H100 &lt;PCIe&gt;</product_name><serial>123</serial>
<temperature><gpu_temp>31 C</gpu_temp></temperature><power_readings><power_draw>70.1 W</power_draw>
<power_limit>350.00 W</power_limit></power_readings><ecc_errors><volatile><sram_uncorrectable_parity>1</sram_uncorrectable_parity>
<sram_uncorrectable_secded>2</sram_uncorrectable_secded><dram_uncorrectable>3</dram_uncorrectable></volatile></ecc_errors>
<ecc_mode><current_ecc>N/A</current_ecc></ecc_mode></gpu></nvidia_smi_log>"#;
        let Reading::Is(first) = parsed(text, "x") else { panic!() };
        let gpu = first.value.at("0000:41:00.0").unwrap();
        assert_eq!(
            (gpu.name.as_str(), gpu.field("power"), gpu.field("ecc")),
            ("NVIDIA H100 <PCIe>", Some("70.1 W"), None)
        );
        assert_eq!(gpu.field("uncorrectable-sram-secded"), Some("2"));
        let Reading::Is(again) = parsed(&first.value.text(), "x") else { panic!() };
        assert_eq!(again.value, first.value);
        assert!(!first.value.text().contains("123"));
    }
}
