//! The smallest CUDA stack of the default index that this machine's Python runs, locked offline, exported, installed by
//! pip with hashes, imported, and compared with the lock library by library.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::known::{self, Build, download, packages, text};
use super::run::{self, files, folder, gb, gpulock, stdout, succeed, timed};

/// Offline lock of a build for `python`, as JSON.
fn lock(folder: &Path, build: &Build, python: &str) -> String {
    let platform = format!("linux-{}", std::env::consts::ARCH);
    let file = format!("{}.lock", build.torch);
    let torch = format!("=={}", build.torch);
    stdout(gpulock(folder, &folder.join("cache")).args([
        "resolve",
        "--offline",
        "--quiet",
        "--format",
        "json",
        "--gpu",
        "A100",
        "--driver",
        "595",
        "--platform",
        &platform,
        "--python",
        python,
        "--torch",
        &torch,
        "--lock",
        &file,
    ]))
}

/// The stack to install: the one that GPULOCK_TEST_TORCH names, else the one with the smallest download.
fn choose(folder: &Path, python: &str) -> (String, Value) {
    let platform = format!("linux-{}", std::env::consts::ARCH);
    let wanted = std::env::var("GPULOCK_TEST_TORCH").ok();
    let builds = known::builds(&platform).into_iter().filter(|build| {
        numbers_from_2(&build.torch)
            && build.pythons.iter().any(|one| one == python)
            && wanted.as_ref().is_none_or(|wanted| *wanted == build.torch)
    });
    let locks = builds.map(|build| {
        let target = known::target(&lock(folder, &build, python));
        println!("torch {}: {} to download", build.torch, gb(download(&target)));
        (build.torch, target)
    });
    locks.min_by_key(|(_, target)| download(target)).expect("a torch with CUDA for this Python")
}

fn numbers_from_2(torch: &str) -> bool {
    known::numbers(torch)[0] >= 2
}

fn digest(path: &Path) -> std::io::Result<(String, u64)> {
    let (mut file, mut hash, mut size) = (File::open(path)?, Sha256::new(), 0);
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => {
                hash.update(&buffer[..read]);
                size += read as u64;
            }
        }
    }
    Ok((hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect(), size))
}

/// Bytes on disk of a folder; a file with two names counts once.
fn on_disk(folder: &Path) -> u64 {
    let seen: BTreeMap<(u64, u64), u64> = files(folder)
        .iter()
        .map(|path| fs::symlink_metadata(path).unwrap())
        .map(|data| ((data.dev(), data.ino()), data.blocks() * 512))
        .collect();
    seen.values().sum()
}

/// The version that cuDNN gives of itself (8500, 91002) for the one in the lock.
fn cudnn_number(version: &str) -> u64 {
    let parts = known::numbers(version);
    let major = if parts[0] >= 9 { 10_000 } else { 1_000 };
    u64::from(parts[0] * major + parts[1] * 100 + parts[2])
}

/// What torch says of itself, beside what the lock says.
fn import(python: &Path, stack: &Value) {
    let code = "import json, torch; print(json.dumps([torch.__version__, torch.version.cuda, \
                torch.backends.cudnn.version(), '.'.join(map(str, torch.cuda.nccl.version()))]))";
    let (said, took) = timed(|| stdout(run::python(python).args(["-W", "ignore", "-c", code])));
    println!("import torch: {said} in {took:.1?}");
    let said: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    assert_eq!(said[0], format!("{}+{}", text(stack, "torch"), text(stack, "variant")));
    assert_eq!(said[1], stack["cuda"]);
    assert_eq!(said[2], cudnn_number(text(stack, "cudnn")));
    assert_eq!(said[3], stack["nccl"]);
}

/// Every library of the lock is there with its hash and size.
fn same_libraries(site: &Path, target: &Value) {
    let mut wrong = Vec::new();
    let (mut count, mut bytes) = (0, 0);
    let ((), took) = timed(|| {
        for package in packages(target) {
            for library in package["libraries"].as_array().unwrap() {
                let path = text(library, "path");
                count += 1;
                match digest(&site.join(path)) {
                    Err(error) => wrong.push(format!("{path}: {error}")),
                    Ok((sha256, size)) => {
                        bytes += size;
                        if sha256 != text(library, "sha256") || Some(size) != library["size"].as_u64() {
                            wrong.push(format!("{path}: {size} bytes, sha256 {sha256}; the lock has {library}"));
                        }
                    }
                }
            }
        }
    });
    println!("{count} libraries of the lock, {}: hashed in {took:.1?}, {} differ", gb(bytes), wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 20 && bytes > 1 << 30, "a CUDA stack has more libraries");
}

/// No library of the GPU stack is on disk that the lock lacks.
fn no_other_libraries(site: &Path, target: &Value) {
    let locked: BTreeSet<PathBuf> = packages(target)
        .iter()
        .flat_map(|package| package["libraries"].as_array().unwrap())
        .map(|library| site.join(text(library, "path")))
        .collect();
    let is_library = |path: &&PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.ends_with(".so")
            || name.split(".so.").nth(1).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let folders = ["torch", "functorch", "torchvision", "nvidia", "triton", "cuda"].map(|name| site.join(name));
    let there: Vec<PathBuf> =
        folders.iter().filter(|folder| folder.is_dir()).flat_map(|folder| files(folder)).collect();
    let extra: Vec<&PathBuf> = there.iter().filter(is_library).filter(|path| !locked.contains(*path)).collect();
    assert!(extra.is_empty(), "not in the lock: {extra:?}");
}

#[test]
fn network_install() {
    if !run::network() {
        return;
    }
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let python =
        stdout(run::python(Path::new("python3")).args(["-c", "import sys; print('%d.%d' % sys.version_info[:2])"]));
    let ((torch, target), took) = timed(|| choose(folder.path(), &python));
    let bytes = download(&target);
    println!(
        "chosen: torch {torch} for Python {python}, {} packages, {} (in {took:.1?})",
        packages(&target).len(),
        gb(bytes)
    );

    let file = format!("{torch}.lock");
    succeed(gpulock(folder.path(), &at("cache")).args([
        "export",
        "requirements",
        "--lock",
        &file,
        "-o",
        "requirements.txt",
    ]));
    let requirements = fs::read_to_string(at("requirements.txt")).unwrap();
    assert_eq!(requirements.matches("--hash=sha256:").count(), packages(&target).len());

    succeed(run::python(Path::new("python3")).args(["-m", "venv"]).arg(at("venv")));
    let venv = at("venv").join("bin/python");
    // pip unpacks and downloads in TMPDIR, which may be too small.
    fs::create_dir(at("tmp")).unwrap();
    let mut pip = run::python(&venv);
    pip.env("TMPDIR", at("tmp")).args(["-m", "pip", "install", "--require-hashes", "-r"]).arg(at("requirements.txt"));
    let (output, took) = timed(|| succeed(&mut pip));
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    let fetched = output.lines().filter(|line| line.trim_start().starts_with("Downloading")).count();
    println!("pip install --require-hashes: {took:.1?}, {fetched} files downloaded, the rest cached");
    println!("disk: venv {}", gb(on_disk(&at("venv"))));
    println!("pip check: {}", stdout(run::python(&venv).args(["-m", "pip", "check"])));

    let listed = stdout(run::python(&venv).args(["-m", "pip", "list", "--format", "json"]));
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let normal = |name: &str| name.to_lowercase().replace(['_', '.'], "-");
    let listed: BTreeMap<String, &str> =
        listed.as_array().unwrap().iter().map(|one| (normal(text(one, "name")), text(one, "version"))).collect();
    for package in packages(&target) {
        let name = text(package, "name");
        assert_eq!(listed.get(name), Some(&text(package, "version")), "{name}");
    }
    import(&venv, &target["stack"]);
    let site = stdout(run::python(&venv).args(["-c", "import sysconfig; print(sysconfig.get_path('platlib'))"]));
    same_libraries(Path::new(&site), &target);
    no_other_libraries(Path::new(&site), &target);
}
