//! `gpulock doctor` on the real user-space driver of Debian, unpacked into a tree: its version is that of the package.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::run::{folder, gpulock, network, succeed};

const PACKAGES: [&str; 2] = ["libcuda1", "libnvidia-ml1"];

/// Fetches packages of the component non-free from wherever this machine gets its own; `None` where it has no apt.
fn fetched(folder: &Path) -> Option<Vec<PathBuf>> {
    let sources = fs::read_to_string("/etc/apt/sources.list.d/debian.sources").ok()?;
    let non_free = |line: &str| match line.strip_prefix("Components:") {
        Some(_) => "Components: non-free".to_owned(),
        None => line.to_owned(),
    };
    let sources: Vec<String> = sources.lines().map(non_free).collect();
    fs::write(folder.join("debian.sources"), sources.join("\n") + "\n").unwrap();
    fs::create_dir_all(folder.join("lists/partial")).unwrap();
    let apt = |arguments: &[&str]| {
        let options = [
            format!("Dir::Etc::sourcelist={}", folder.join("debian.sources").display()),
            "Dir::Etc::sourceparts=/dev/null".to_owned(),
            format!("Dir::State::lists={}", folder.join("lists").display()),
            "Dir::Cache::pkgcache=".to_owned(),
            "Dir::Cache::srcpkgcache=".to_owned(),
            "APT::Sandbox::User=root".to_owned(),
        ];
        let mut command = Command::new("apt-get");
        command.current_dir(folder).args(options.iter().flat_map(|option| ["-o", option])).args(arguments);
        succeed(&mut command);
    };
    apt(&["-q", "update"]);
    apt(&[&["-q", "download"], &PACKAGES[..]].concat());
    let files = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    Some(files.filter(|path| path.extension().is_some_and(|end| end == "deb")).collect())
}

#[test]
fn network_the_driver_of_debian() {
    if !network() {
        return;
    }
    let folder = folder();
    let Some(packages) = fetched(folder.path()) else {
        println!("skipped: this is no Debian");
        return;
    };
    assert_eq!(packages.len(), PACKAGES.len());
    let root = folder.path().join("root");
    for package in &packages {
        succeed(Command::new("dpkg-deb").arg("-x").arg(package).arg(&root));
    }
    // `libcuda1_535.261.03-1~deb12u1_amd64.deb`
    let name = packages[0].file_name().unwrap().to_str().unwrap();
    let version = name.split('_').nth(1).unwrap().split('-').next().unwrap();
    println!("driver {version}");
    let put = |path: &str, text: String| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let line = |version: &str| format!("NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Wed Feb 26 2025\n");
    for (file, text) in [("vendor", "0x10de\n"), ("device", "0x20b0\n"), ("class", "0x030200\n")] {
        put(&format!("sys/bus/pci/devices/0000:01:00.0/{file}"), text.to_owned());
    }
    ["nvidiactl", "nvidia-uvm", "nvidia0"].iter().for_each(|node| put(&format!("dev/{node}"), String::new()));
    put("proc/driver/nvidia/version", line(version));
    let doctor = |code: i32, words: &[&str]| {
        let output =
            gpulock(folder.path(), &folder.path().join("cache")).args(["doctor", "--sysroot", "root"]).output();
        let output = output.unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(code), "{text}");
        words.iter().for_each(|word| assert!(text.contains(word), "{word}: {text}"));
    };
    // Unpacked alone, no loader finds it; the package's own script makes the links.
    doctor(
        1,
        &[&format!("libcuda.so.1 of {version}, where the loader does not look"), "error[driver-libraries-missing]"],
    );
    let lib = format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    for name in ["libcuda.so.1", "libnvidia-ml.so.1"] {
        symlink(format!("nvidia/current/{name}"), root.join(&lib).join(name)).unwrap();
    }
    doctor(0, &[&format!("ok           libraries: libcuda.so.1 of {version}")]);
    put("proc/driver/nvidia/version", line("470.82.01"));
    doctor(1, &["error[driver-module-mismatch]: the kernel module is 470.82.01", &format!("are of {version}")]);
}
