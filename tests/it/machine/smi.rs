//! What nvidia-smi prints, whole and not.

use super::tree::{H100, Machine};

fn with(fields: &str) -> Machine {
    let machine = Machine::with(&[H100]);
    let text = format!(
        "<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n<nvidia_smi_log>\
         <driver_version>570.124.06</driver_version><gpu id=\"00000000:01:00.0\">\
         <product_name>NVIDIA H100 80GB HBM3</product_name>{fields}</gpu></nvidia_smi_log>\n"
    );
    machine.put("gpulock/nvidia-smi.xml", text);
    machine
}

/// A GPU that the driver holds and nvidia-smi leaves out; a container is shown those that it was given.
#[test]
fn a_gpu_that_is_not_listed() {
    let machine = with("");
    machine.gpu(1, H100);
    assert_eq!(machine.found(), ["error gpu-not-answering"]);
    let excluded = "Model: \t\t NVIDIA H100 80GB HBM3\nDevice Minor: \t 1\nGPU Excluded:\t Yes\n";
    machine.put("proc/driver/nvidia/gpus/0000:02:00.0/information", excluded);
    assert_eq!(machine.found(), [""; 0]);
    let machine = with("");
    machine.gpu(1, H100);
    machine.contained();
    assert_eq!(machine.found(), [""; 0]);
}

/// What the program says itself, unless the driver's files say why it fails.
#[test]
fn a_program_that_fails() {
    let machine = Machine::with(&[H100]);
    let fails = |why: &str| machine.put("gpulock/unread", format!("/gpulock/nvidia-smi.xml\t{why}\n"));
    fails(
        "nvidia-smi failed, exit status: 15: Unable to determine the device handle for GPU0000:01:00.0: GPU is lost.",
    );
    assert_eq!(machine.found(), ["error gpu-not-answering"]);
    assert!(machine.doctor(&[]).out.contains("look for its Xid faults"));
    fails("nvidia-smi failed, exit status: 14: <?xml version=\"1.0\" ?>");
    assert_eq!(machine.found(), [""; 0]);
    // What does not explain it does not hide it.
    fails(
        "nvidia-smi failed, exit status: 255: Unable to determine the device handle for GPU0000:01:00.0: Unknown Error",
    );
    machine.pci("0000:0c:00.0", "0x10de", "22a3", "068000");
    let found = machine.found();
    assert_eq!(found, ["error gpu-not-answering", "error fabric-manager-missing"]);
    machine.remove("sys/bus/pci/devices/0000:0c:00.0");
    fails("nvidia-smi is not on PATH");
    assert_eq!(machine.found(), [""; 0]);
    fails("nvidia-smi failed, exit status: 18: Failed to initialize NVML: Driver/library version mismatch");
    machine.module("570.86.10", true);
    assert_eq!(machine.found(), ["error driver-module-mismatch"]);
}

#[test]
fn facts_that_no_file_shows() {
    let machine = with(
        "<persistence_mode>Enabled</persistence_mode><mig_mode><current_mig>Disabled</current_mig></mig_mode>\
         <temperature><gpu_temp>41 C</gpu_temp></temperature><gpu_power_readings><instant_power_draw>120.5 W\
         </instant_power_draw><current_power_limit>700.00 W</current_power_limit></gpu_power_readings>\
         <ecc_mode><current_ecc>Enabled</current_ecc></ecc_mode>",
    );
    assert_eq!(machine.found(), [""; 0]);
    assert_eq!(machine.line("power and heat"), ("ok".into(), "41 C, 120.5 W of 700.00 W".into()));
    assert_eq!(machine.line("memory errors"), ("ok".into(), "ECC on 1 of 1".into()));
    assert_eq!(machine.line("persistence"), ("ok".into(), "persistence mode is on".into()));
    assert_eq!(machine.line("MIG"), ("ok".into(), "off".into()));
}

#[test]
fn faults_that_no_file_shows() {
    for (fields, found) in [
        (
            "<ecc_errors><volatile><dram_uncorrectable>2</dram_uncorrectable></volatile></ecc_errors>",
            "error gpu-memory-errors",
        ),
        (
            "<remapped_rows><remapped_row_pending>Yes</remapped_row_pending></remapped_rows>",
            "warning gpu-memory-errors",
        ),
        ("<remapped_rows><remapped_row_failure>Yes</remapped_row_failure></remapped_rows>", "error gpu-memory-errors"),
        (
            "<clocks_event_reasons><clocks_event_reason_hw_thermal_slowdown>Active\
             </clocks_event_reason_hw_thermal_slowdown></clocks_event_reasons>",
            "warning gpu-throttled",
        ),
        ("<mig_mode><current_mig>Enabled</current_mig></mig_mode>", "error mig-empty"),
        (
            "<ecc_errors><volatile><sram_uncorrectable_parity>0</sram_uncorrectable_parity><sram_uncorrectable_secded>1\
             </sram_uncorrectable_secded></volatile></ecc_errors>",
            "error gpu-memory-errors",
        ),
        (
            "<ecc_errors><volatile><double_bit><device_memory>0</device_memory><total>1</total></double_bit></volatile>\
             </ecc_errors>",
            "error gpu-memory-errors",
        ),
        ("<retired_pages><pending_retirement>Yes</pending_retirement></retired_pages>", "warning gpu-memory-errors"),
        ("<temperature><gpu_temp>GPU is lost</gpu_temp></temperature>", "error gpu-not-answering"),
        ("<clocks>GPU requires reset</clocks>", "error gpu-not-answering"),
        ("<gpu_recovery_action>Reset</gpu_recovery_action>", "error gpu-not-answering"),
        ("<compute_mode>Prohibited</compute_mode>", "error gpu-hidden"),
        ("<fabric><state>In Progress</state></fabric>", "warning fabric-manager-missing"),
    ] {
        assert_eq!(with(fields).found(), [found], "{fields}");
    }
    let switched = with("<fabric><state>Not Started</state></fabric>");
    switched.pci("0000:0c:00.0", "0x10de", "22a3", "068000");
    switched.put("proc/900/comm", "nv-fabricmanage\n");
    assert_eq!(switched.found(), ["error fabric-manager-missing"]);
    for fields in [
        "<gpu_recovery_action>None</gpu_recovery_action><fabric><state>Completed</state><status>Success</status></fabric>",
        "<fabric><state>N/A</state></fabric><retired_pages><pending_retirement>No</pending_retirement></retired_pages>",
        "<fan_speed>[Unknown Error]</fan_speed><compute_mode>Exclusive_Process</compute_mode>",
    ] {
        assert_eq!(with(fields).found(), [""; 0], "{fields}");
    }
    let machine = with(
        "<power_readings><power_draw>ERR!</power_draw><power_limit>[Unknown Error]</power_limit></power_readings>",
    );
    assert_eq!(machine.line("power and heat"), ("ok".into(), "not told".into()));
    // Counts that are no counts any more.
    let most = u64::MAX;
    let machine = with(&format!(
        "<ecc_errors><volatile><dram_uncorrectable>{most}</dram_uncorrectable><sram_uncorrectable>{most}\
         </sram_uncorrectable></volatile></ecc_errors>"
    ));
    assert_eq!(machine.found(), ["error gpu-memory-errors"]);
    let machine = with("<mig_mode><current_mig>Enabled</current_mig></mig_mode>");
    machine.put("proc/driver/nvidia/capabilities/gpu0/mig/gi1/access", "");
    assert_eq!(machine.found(), [""; 0]);
}

#[test]
fn what_is_malformed_is_not_checked() {
    let bomb = "<!DOCTYPE nvidia_smi_log [<!ENTITY a \"&b;&b;&b;&b;\"><!ENTITY b \"&a;&a;\">]>\
                <nvidia_smi_log><gpu id=\"&a;\"/></nvidia_smi_log>";
    for (text, why) in [
        ("", "no XML"),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", "no XML"),
        ("<nvidia_smi_log><gpu id=\"0\">", "no XML"),
        ("<html/>", "<html>, not <nvidia_smi_log>"),
        ("\u{0}\u{1}\u{2}", "no XML"),
        (bomb, "no XML"),
    ] {
        let machine = Machine::with(&[H100]);
        machine.put("gpulock/nvidia-smi.xml", text);
        machine.doctor(&[]).code(0);
        let (state, said) = machine.line("power and heat");
        assert!(state == "not checked" && said.contains(why), "{text}: {said}");
    }
    // Without a field it is as if nobody had asked for it.
    assert_eq!(with("<temperature/><ecc_mode><current_ecc>N/A</current_ecc></ecc_mode>").found(), [""; 0]);
}
