//! A real environment in a real image: the same verdict however it is packed, wherever it comes from.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{has, skopeo};
use crate::buildah::Buildah;
use crate::registry_server::RegistryServer;
use crate::run::{self, folder, gpulock, python, succeed, timed};

const FLAGS: [&str; 6] = ["--gpu", "RTX 4090", "--driver", "550.54.15", "--format", "json"];
/// Of an image on CUDA 12.8, for a driver of CUDA 12.4.
const REQUIRE: &str = "cuda>=12.8 brand=tesla,driver>=535,driver<536";

/// What `verify` says but for the subject, and which layers it names.
fn verdict(folder: &Path, subject: &str, more: &[&str], code: i32) -> (String, bool) {
    let (output, took) = timed(|| {
        let mut command = gpulock(folder, &folder.join("cache"));
        command.args(["verify", subject]).args(FLAGS).args(more).output().unwrap()
    });
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{subject}: {said}{}", String::from_utf8_lossy(&output.stdout));
    let mut report: Value = serde_json::from_slice(&output.stdout).unwrap();
    println!("{subject}: {took:.2?}");
    report["subject"] = json!(null);
    let mut layers = false;
    for finding in report["findings"].as_array_mut().unwrap() {
        let evidence = finding["evidence"].as_array_mut().unwrap();
        let before = evidence.len();
        evidence.retain(|one| !one["path"].as_str().is_some_and(|path| path.starts_with("layer ")));
        layers |= evidence.len() < before;
    }
    (serde_json::to_string_pretty(&report).unwrap(), layers)
}

/// CTranslate2 with cuDNN of PyPI on Debian 12, a second cuDNN in its `/usr/lib`, and what NVIDIA's images require: as
/// root filesystem, as every kind of archive, and from a registry.
#[test]
fn network_root_one_image_in_all_its_forms() {
    if !run::network() || !["skopeo", "buildah", "mksquashfs"].into_iter().all(has) {
        return;
    }
    let Some(registry) = RegistryServer::start(&json!({})) else { return };
    let buildah = Buildah::new(&registry.address);
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    crate::build::base::system(&buildah, folder.path());
    // Wheels as they are, installed where Debian's Python looks.
    let site = at("site");
    let wheels = ["ctranslate2==4.6.0", "nvidia-cudnn-cu12==9.5.1.17"];
    succeed(
        python(Path::new("python3"))
            .args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"])
            .arg(&site)
            .args(wheels),
    );
    succeed(
        python(Path::new("python3"))
            .args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"])
            .arg(at("other"))
            .arg("nvidia-cudnn-cu12==9.1.0.70"),
    );
    buildah.image("localhost/made", crate::build::base::SYSTEM, |container| {
        succeed(
            buildah.command(&["add", "--quiet", container]).arg(&site).arg("/usr/local/lib/python3.11/dist-packages"),
        );
        succeed(
            buildah
                .command(&["add", "--quiet", container])
                .arg(at("other/nvidia/cudnn/lib/libcudnn.so.9"))
                .arg("/usr/lib/x86_64-linux-gnu"),
        );
        buildah.run(&["config", "--env", &format!("NVIDIA_REQUIRE_CUDA={REQUIRE}"), container]);
    });
    let container = buildah.run(&["from", "--pull-never", "localhost/made"]);
    let root = buildah.run(&["mount", &container]);
    for (name, more) in [("root.gzip", &[][..]), ("root.zstd", &["-comp", "zstd"])] {
        let mut command = Command::new("mksquashfs");
        command.env("PATH", format!("{}:/usr/sbin", std::env::var("PATH").unwrap()));
        succeed(command.arg(&root).arg(at(name)).args(["-no-progress", "-quiet", "-no-xattrs"]).args(more));
    }
    fs::write(at("made.sif"), sif(&fs::read(at("root.gzip")).unwrap())).unwrap();
    let environment = [format!("NVIDIA_REQUIRE_CUDA={REQUIRE}")];
    let environment: Vec<&str> = environment.iter().flat_map(|one| ["--set-env", one]).collect();
    let (expected, named) = verdict(folder.path(), &root, &environment, 1);
    assert!(!named);
    for code in ["image-driver-floor", "second-cudnn-in-image"] {
        assert!(expected.contains(code), "{code}: {expected}");
    }
    for subject in ["sif:root.gzip", "sif:root.zstd", "sif:made.sif"] {
        assert_eq!(verdict(folder.path(), subject, &environment, 1).0, expected, "{subject}");
    }
    let oci = format!("oci:{}:latest", at("oci").display());
    buildah.run(&["push", "--quiet", "localhost/made", &oci]);
    let copy =
        |more: &[&str], to: &str| succeed(skopeo(folder.path(), &["copy", "--quiet"]).args(more).args([&oci, to]));
    copy(&[], &format!("docker-archive:{}:made:latest", at("docker.tar").display()));
    copy(&[], &format!("oci-archive:{}", at("oci.tar").display()));
    copy(&["--dest-compress-format", "zstd", "--dest-compress"], &format!("oci:{}:latest", at("zstd").display()));
    copy(&["--dest-decompress"], &format!("oci:{}:latest", at("plain").display()));
    copy(&["--dest-tls-verify=false"], &format!("docker://{}/made:latest", registry.address));
    let remote = format!("registry:{}/made:latest", registry.address);
    let mut subjects =
        vec!["oci:oci", "oci:oci", "oci:oci:latest", "image:docker.tar", "image:oci.tar", "oci:zstd", "oci:plain"];
    subjects.push(&remote);
    for subject in subjects {
        let (report, named) = verdict(folder.path(), subject, &[], 1);
        assert_eq!(report, expected, "{subject}");
        assert!(named, "{subject} names no layer");
    }
    // From the registry alone, nothing kept before.
    fs::remove_dir_all(at("cache")).unwrap();
    assert_eq!(verdict(folder.path(), &remote, &[], 1).0, expected);
    buildah.run(&["rm", &container]);
    let shown = run::stdout(gpulock(folder.path(), &at("cache")).args(["inspect", &remote]));
    assert!(shown.contains("NVIDIA_REQUIRE_CUDA asks for cuda>=12.8 (driver 570.26), or R535"), "{shown}");
    println!("{shown}");
}

/// A SIF file with a definition and a squashfs as the system that is started.
fn sif(squashfs: &[u8]) -> Vec<u8> {
    const DATA: usize = 4096;
    let mut file = b"#!/usr/bin/env run-singularity\n".to_vec();
    file.resize(32, 0);
    file.extend_from_slice(b"SIF_MAGIC\0");
    file.extend_from_slice(b"01\0");
    file.extend_from_slice(b"02\0");
    file.resize(64, 7);
    // Made, changed, free and all descriptors, where they are and how long; where data is and how long.
    for number in [1, 1, 0, 2, 128, 2 * 585, DATA, squashfs.len()] {
        file.extend_from_slice(&(number as u64).to_le_bytes());
    }
    for (kind, at, size, extra) in [(0x4001_u32, DATA, 0, [0_u32, 0]), (0x4004, DATA, squashfs.len(), [1, 2])] {
        let start = file.len();
        file.extend_from_slice(&kind.to_le_bytes());
        file.push(1);
        [1_u32, 1, 0].iter().for_each(|number| file.extend_from_slice(&number.to_le_bytes()));
        [at, size, size, 1, 1, 0, 0].iter().for_each(|number| file.extend_from_slice(&(*number as u64).to_le_bytes()));
        file.resize(start + 201, 0);
        extra.iter().for_each(|number| file.extend_from_slice(&number.to_le_bytes()));
        file.resize(start + 585, 0);
    }
    file.resize(DATA, 0);
    file.extend_from_slice(squashfs);
    file
}
