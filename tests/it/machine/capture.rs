//! A machine in a file: what is in it, and files that are none.

use std::fs;
use std::io::Write;

use super::tree::{H100, Machine, RTX_5090};
use crate::cli::program::{Place, Ran};

fn captured(machine: &Machine, place: &Place) -> Ran {
    machine.doctor_in(place, &["--capture", "machine.tar"])
}

/// The lines of a report, without where they were read.
fn lines(ran: &Ran) -> Vec<String> {
    let states = ["  ok ", "  problem ", "  not checked "];
    ran.out.lines().filter(|line| states.iter().any(|state| line.starts_with(state))).map(str::to_owned).collect()
}

#[test]
fn a_file_says_what_the_machine_said() {
    let machine = Machine::with(&[RTX_5090, H100]);
    machine.module("565.57.01", false);
    machine.put("usr/local/cuda-12.8/version.json", r#"{"cuda": {"version": "12.8.1"}}"#);
    machine.link("usr/local/cuda", "cuda-12.8");
    machine.put("gpulock/variables", "NCCL_DEBUG=INFO\nCUDA_VISIBLE_DEVICES=0,1\n");
    machine.put("proc/812/comm", "nvidia-persiste\n");
    machine.put("proc/813/comm", "secret-program\n");
    machine.put("gpulock/unread", "/dev/kmsg\tpermission denied\n");
    machine.remove("dev/kmsg");
    machine.put(
        "gpulock/nvidia-smi.xml",
        "<nvidia_smi_log><gpu id=\"00000000:01:00.0\"><product_name>NVIDIA GeForce RTX 5090</product_name><serial>4711\
         </serial><temperature><gpu_temp>31 C</gpu_temp></temperature></gpu></nvidia_smi_log>",
    );
    machine.put("proc/self/mounts", "//nas/a /a cifs password=hunter2 0 0\nshm /dev/shm tmpfs rw,size=65536k 0 0\n");
    let place = Place::empty();
    let first = captured(&machine, &place).code(1);
    let again = place.run(&["doctor", "machine.tar"]).code(1);
    assert_eq!(lines(&first), lines(&again));
    let headings =
        |ran: &Ran| ran.out.lines().filter(|line| line.contains("]: ")).map(str::to_owned).collect::<Vec<_>>();
    assert!(headings(&first).len() > 3 && headings(&first) == headings(&again), "{}\n{}", first.out, again.out);
    // It is said what is in it, and nothing else is.
    assert!(
        first.err.contains("wrote machine.tar") && first.err.contains("/proc/driver/nvidia/version: "),
        "{}",
        first.err
    );
    let bytes = String::from_utf8_lossy(&fs::read(place.path("machine.tar")).unwrap()).into_owned();
    for secret in ["4711", "secret-program", "hunter2", "GPU-secret", "0x8086"] {
        assert!(!bytes.contains(secret), "{secret}");
    }
    // The same machine gives the same file.
    let copy = bytes;
    captured(&machine, &place);
    assert_eq!(String::from_utf8_lossy(&fs::read(place.path("machine.tar")).unwrap()), copy);
}

/// Folders that are named by a way that goes back, as installers put them into variables.
#[test]
fn ways_that_go_back() {
    let machine = Machine::with(&[H100]);
    machine.put("opt/old/lib/libcuda.so.535.54.03", "");
    machine.link("opt/old/lib/libcuda.so.1", "libcuda.so.535.54.03");
    machine.put("opt/old/bin/tool", "");
    machine.link("opt/tool", "old/bin");
    machine.link("opt/new", "old");
    for way in ["/opt/old/bin/../lib", "/opt/tool/../lib", "/../opt/old/lib", "/opt/tool/../../new/lib"] {
        machine.put("gpulock/variables", format!("LD_LIBRARY_PATH={way}\n"));
        let place = Place::empty();
        let first = captured(&machine, &place).code(1);
        assert!(first.out.contains("error[driver-module-mismatch]"), "{way}: {}", first.out);
        let again = place.run(&["doctor", "machine.tar"]).code(1);
        assert_eq!(lines(&first), lines(&again), "{way}");
    }
}

/// Values of the shell's own variables: those of GPUs, and none that is a secret.
#[test]
fn variables_of_this_process() {
    let place = Place::empty();
    let mut command = place.command(&["doctor", "--capture", "a.tar"]);
    command.env("NCCL_SOCKET_IFNAME", "eth7").env("AWS_SECRET_ACCESS_KEY", "k3y").env("CUDA_X", "https://u:pa55@host/");
    let ran = Ran::of(command.output().unwrap());
    assert!(ran.err.contains("/gpulock/variables: "), "{}", ran.err);
    let bytes = String::from_utf8_lossy(&fs::read(place.path("a.tar")).unwrap()).into_owned();
    assert!(bytes.contains("NCCL_SOCKET_IFNAME=eth7") && !bytes.contains("k3y") && !bytes.contains("pa55"));
    assert!(!bytes.contains("AWS_SECRET"));
}

/// What a variable is for GPUs alone does not say that it is no secret.
#[test]
fn variables_that_are_secrets() {
    let place = Place::empty();
    let secrets = ["NVIDIA_API_KEY", "TORCH_HUB_TOKEN", "MASTER_PASSWORD", "CUDA_Secret_x", "NCCL_AUTH"];
    let mut command = place.command(&["doctor", "--capture", "a.tar"]);
    command.envs(secrets.map(|name| (name, "hunter2"))).env("NVIDIA_VISIBLE_DEVICES", "all");
    Ran::of(command.output().unwrap());
    let bytes = String::from_utf8_lossy(&fs::read(place.path("a.tar")).unwrap()).into_owned();
    assert!(!bytes.contains("hunter2") && bytes.contains("NVIDIA_VISIBLE_DEVICES=all"), "{bytes}");
    secrets.iter().for_each(|name| assert!(bytes.contains(&format!("{name}=***\n")), "{name}: {bytes}"));
}

/// Of a line of the log what the driver says: not whose machine it is, and not whose program.
#[test]
fn lines_of_the_log() {
    let machine = Machine::with(&[H100]);
    machine.remove("dev/kmsg");
    let line = "NVRM: Xid (PCI:0000:01:00): 31, pid=4242, name=secret.py, Ch 00000008, MMU Fault";
    machine.put("var/log/kern.log", format!("Nov 1 10:00:00 alices-laptop kernel: [ 1.2] {line}\n"));
    let place = Place::empty();
    let first = captured(&machine, &place).code(0);
    let again = place.run(&["doctor", "machine.tar"]).code(0);
    assert_eq!(lines(&first), lines(&again));
    assert!(again.out.contains("Xid 31") && again.out.contains("MMU Fault"), "{}", again.out);
    let bytes = String::from_utf8_lossy(&fs::read(place.path("machine.tar")).unwrap()).into_owned();
    assert!(!bytes.contains("secret.py") && !bytes.contains("alices-laptop"), "{bytes}");
}

#[test]
fn links_lead_nowhere_else() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("version"), "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.1.1  x\n").unwrap();
    let machine = Machine::with(&[H100]);
    machine.remove("proc/driver/nvidia/version");
    machine.remove("sys/module");
    machine.link("proc/driver/nvidia/version", outside.path().join("version").to_str().unwrap());
    assert!(!machine.doctor(&[]).out.contains("570.1.1"));
}

/// Entries of a tar archive: path, kind, what a link names, content.
fn tar(entries: &[(&str, tar::EntryType, &str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, kind, target, content) in entries {
        let mut header = tar::Header::new_gnu();
        // Written as they are: the writer of the crate refuses what leads outside.
        let name = &mut header.as_mut_bytes()[..path.len()];
        name.copy_from_slice(path.as_bytes());
        header.as_mut_bytes()[157..157 + target.len()].copy_from_slice(target.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        header.set_cksum();
        builder.append(&header, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

#[test]
fn hostile_archives() {
    use tar::EntryType::{Char, Link, Regular, Symlink};
    let version = b"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  x\n";
    let place = Place::empty();
    fs::write(place.path("passwd"), "root").unwrap();
    let before = place.all();
    for entries in [
        vec![("../../passwd", Regular, "", &b"x"[..]), ("/passwd", Regular, "", b"x")],
        vec![("proc/driver/nvidia/version", Symlink, "../../../../../../etc/hostname", b"")],
        vec![
            ("proc/driver/nvidia", Symlink, "/proc/driver/nvidia", b""),
            ("proc/driver/nvidia/version", Regular, "", version),
        ],
        vec![("a", Symlink, "/", b""), ("a/../../b", Regular, "", b"x")],
        vec![("dev/kmsg", Char, "", b""), ("proc/sys/kernel/osrelease", Char, "", b"")],
        vec![("proc/2/comm", Link, "nothing/there", b"")],
        vec![("proc/\x1b[2J/x", Regular, "", b"x")],
    ] {
        let bytes = tar(&entries);
        fs::write(place.path("a.tar"), &bytes).unwrap();
        let ran = place.run(&["doctor", "a.tar"]);
        assert!(matches!(ran.code, Some(1..=3)), "{ran:?}");
        assert!(!ran.out.contains('\x1b') && !ran.err.contains("panicked"), "{ran:?}");
        fs::remove_file(place.path("a.tar")).unwrap();
        assert!(place.all() == before);
    }
}

#[test]
fn what_is_no_capture() {
    let place = Place::empty();
    let good = tar(&[("proc/2/comm", tar::EntryType::Regular, "", b"kthreadd\n")]);
    let other = tar(&[("notes.txt", tar::EntryType::Regular, "", b"x")]);
    let cut_between_entries = good[..1024].to_vec();
    for bytes in [
        b"no archive".to_vec(),
        good[..700].to_vec(),
        vec![0xff; 5000],
        Vec::new(),
        vec![0; 10_240],
        other,
        cut_between_entries,
    ] {
        fs::write(place.path("a.tar"), &bytes).unwrap();
        place.run(&["doctor", "a.tar"]).code(2).says(&["a.tar is no captured machine", "--capture"]);
    }
    place.run(&["doctor", "none.tar"]).code(2).says(&["none.tar cannot be read"]);
    place.run(&["doctor", "--sysroot", "none"]).code(2).says(&["none cannot be read as a folder"]);
    fs::create_dir(place.path("folder")).unwrap();
    place.run(&["doctor", "folder"]).code(2);
}

/// Ten gigabytes of zeros: as a sparse file, and packed into little.
#[test]
fn zeros_without_end() {
    let place = Place::empty();
    let size: u64 = 10 << 30;
    let mut header = tar::Header::new_gnu();
    header.set_path("zeros").unwrap();
    header.set_mode(0o644);
    header.set_size(size);
    header.set_cksum();
    let plain = fs::File::create(place.path("a.tar")).unwrap();
    (&plain).write_all(header.as_bytes()).unwrap();
    plain.set_len(size + 2048).unwrap();
    place.run(&["doctor", "a.tar"]).code(2).says(&["unpacks to more than 256 MB"]);
    fs::remove_file(place.path("a.tar")).unwrap();
    let mut packed = zstd::Encoder::new(fs::File::create(place.path("b.tar")).unwrap(), 1).unwrap();
    packed.write_all(header.as_bytes()).unwrap();
    let zeros = vec![0; 1 << 20];
    for _ in 0..300 {
        packed.write_all(&zeros).unwrap();
    }
    packed.finish().unwrap();
    place.run(&["doctor", "b.tar"]).code(2).says(&["unpacks to more than 256 MB"]);
}
