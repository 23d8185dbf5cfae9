//! The real pip and uv take the exports, from indexes on loopback: two of them, with other files of one version in each.
//!
//! Skipped, with a line that says so, where `python3 -m pip` or uv (on PATH or named by GPULOCK_TEST_UV) is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Cursor, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::thread;

use gpulock::digest::sha256;
use gpulock::lock::{Artefact, DriverSupport, Lock, Package, Target, Wheel};
use gpulock::render::{Beside, Format, render};
use zip::write::SimpleFileOptions;

/// Files by path, served over HTTP until the test ends.
type Site = BTreeMap<String, Vec<u8>>;

/// A wheel of one module: its file name and bytes.
fn wheel(name: &str, version: &str, requires: &[&str], mark: &str) -> (String, Vec<u8>) {
    let stem = format!("{}-{version}", name.replace('-', "_"));
    let requires: String = requires.iter().map(|one| format!("Requires-Dist: {one}\n")).collect();
    let files = [
        (format!("{}.py", name.replace('-', "_")), format!("mark = {mark:?}\n")),
        (
            format!("{stem}.dist-info/METADATA"),
            format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}"),
        ),
        (
            format!("{stem}.dist-info/WHEEL"),
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n".into(),
        ),
        (format!("{stem}.dist-info/RECORD"), String::new()),
    ];
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (path, text) in files {
        archive.start_file(path, SimpleFileOptions::default()).unwrap();
        archive.write_all(text.as_bytes()).unwrap();
    }
    (format!("{stem}-py3-none-any.whl"), archive.finish().unwrap().into_inner())
}

fn answer(site: &Site, mut stream: TcpStream) -> std::io::Result<()> {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte)? == 1 {
        request.push(byte[0]);
    }
    let request = String::from_utf8_lossy(&request);
    let mut words = request.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default().replace("%2B", "+"));
    let (status, body) = match site.get(&path) {
        Some(body) => ("200 OK", body.as_slice()),
        None => ("404 Not Found", &b""[..]),
    };
    let kind = if path.ends_with('/') { "text/html" } else { "application/octet-stream" };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    if method != "HEAD" {
        stream.write_all(body)?;
    }
    Ok(())
}

/// Two indexes and the lock of what is to come from them.
struct Stage {
    lock: Lock,
    addresses: BTreeMap<String, String>,
    default_index: String,
}

fn stage() -> Stage {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let mut site = Site::new();
    let mut lock = Lock {
        inputs: sha256(b"inputs"),
        matrix: sha256(b"matrix"),
        indexes: ["pypi", "torch-cu129"].map(|name| (name.to_owned(), format!("{base}/{name}/"))).into(),
        ..Lock::default()
    };
    let mut packages = BTreeMap::new();
    let mut addresses = BTreeMap::new();
    for (index, name, version, requires, chosen) in [
        ("pypi", "torch", "2.13.0", &["gpu-math==1.0"][..], false),
        ("torch-cu129", "torch", "2.13.0+cu129", &["gpu-math==1.0", "gpu-only>=3", "shared==1.0"], true),
        ("torch-cu129", "torch", "2.14.0+cu129", &["gpu-math==1.0"], false),
        ("pypi", "gpu-math", "1.0", &[], true),
        ("torch-cu129", "gpu-math", "1.0", &[], false),
        ("torch-cu129", "gpu-only", "3.0", &[], true),
        ("torch-cu129", "gpu-only", "3.1", &[], false),
        ("pypi", "shared", "1.0", &[], false),
        ("torch-cu129", "shared", "1.0", &[], true),
    ] {
        let (file, bytes) = wheel(name, version, requires, index);
        let hash = sha256(&bytes);
        let hex = hash.trim_start_matches("sha256:").to_owned();
        let page = site.entry(format!("/{index}/{name}/")).or_default();
        page.extend(format!("<a href=\"{}#sha256={hex}\">{file}</a>\n", file.replace('+', "%2B")).bytes());
        if chosen {
            addresses.insert(file.clone(), format!("{base}/{index}/{name}/{}", file.replace('+', "%2B")));
            let needed_by = if name == "torch" { Package::MANIFEST } else { "torch" };
            packages.insert(
                name.parse().unwrap(),
                Package {
                    version: version.parse().unwrap(),
                    extras: BTreeSet::new(),
                    artefact: Artefact::Wheel(file.clone()),
                    needed_by: BTreeSet::from([needed_by.to_owned()]),
                },
            );
            let size = Some(bytes.len() as u64);
            let wheel = Wheel { index: index.into(), sha256: hex, size, url: None, libraries: BTreeMap::new() };
            lock.wheels.insert(file.clone(), wheel);
        }
        site.insert(format!("/{index}/{name}/{file}"), bytes);
    }
    lock.targets.push(Target {
        name: "cluster".into(),
        platform: if cfg!(target_arch = "aarch64") { "linux-aarch64" } else { "linux-x86_64" }.parse().unwrap(),
        glibc: None,
        python: python().unwrap_or_else(|| "3.11".into()).parse().unwrap(),
        torch: "2.13.0".parse().unwrap(),
        variant: "cu129".into(),
        cuda: None,
        cudnn: None,
        nccl: None,
        driver: DriverSupport::default(),
        gpus: Vec::new(),
        inferred: BTreeSet::new(),
        image: None,
        env: BTreeMap::new(),
        packages,
    });
    let site = Arc::new(site);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let site = Arc::clone(&site);
            // A client that hangs up early is its own affair.
            thread::spawn(move || drop(answer(&site, stream)));
        }
    });
    Stage { lock, addresses, default_index: format!("{base}/pypi/") }
}

impl Stage {
    fn export(&self, format: Format) -> String {
        let beside = Beside { project: "demo", addresses: self.addresses.clone(), ..Beside::default() };
        render(format, &self.lock, None, &beside).unwrap()
    }
}

/// `program` without what the surroundings configure.
fn clean(program: &str) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("PIP_") || text.starts_with("UV_") || text.to_lowercase().ends_with("_proxy") {
            command.env_remove(&name);
        }
    }
    command.envs([("PIP_CONFIG_FILE", "/dev/null"), ("UV_NO_CONFIG", "1"), ("PIP_DISABLE_PIP_VERSION_CHECK", "1")]);
    command
}

/// The minor version of the Python that has pip.
fn python() -> Option<String> {
    let code = "import pip, sys; print('%d.%d' % sys.version_info[:2])";
    let output = clean("python3").args(["-c", code]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn uv() -> Option<String> {
    let program = std::env::var("GPULOCK_TEST_UV").unwrap_or_else(|_| "uv".into());
    Command::new(&program).arg("--version").output().is_ok_and(|output| output.status.success()).then_some(program)
}

fn succeeded(output: &Output) {
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Asserts that each module is the one of the index that the lock names.
fn came_from_the_right_index(installed: &Path) {
    for (module, index) in
        [("torch", "torch-cu129"), ("gpu_math", "pypi"), ("gpu_only", "torch-cu129"), ("shared", "torch-cu129")]
    {
        let text = fs::read_to_string(installed.join(format!("{module}.py"))).unwrap();
        assert_eq!(text, format!("mark = {index:?}\n"), "{module}");
    }
    assert!(installed.join("torch-2.13.0+cu129.dist-info").is_dir());
}

#[test]
fn pip_installs_the_requirements() {
    if python().is_none() {
        println!("skipped: no python3 with pip");
        return;
    }
    let stage = stage();
    let folder = tempfile::tempdir().unwrap();
    let (file, installed) = (folder.path().join("requirements.txt"), folder.path().join("installed"));
    fs::write(&file, stage.export(Format::Requirements)).unwrap();
    let output = clean("python3")
        .args(["-m", "pip", "install", "--no-cache-dir", "--require-hashes", "--index-url", &stage.default_index])
        .args(["--target".as_ref(), installed.as_os_str(), "-r".as_ref(), file.as_os_str()])
        .output()
        .unwrap();
    succeeded(&output);
    came_from_the_right_index(&installed);
}

#[test]
fn uv_takes_every_export() {
    let Some((uv, _)) = uv().zip(python()) else {
        println!("skipped: no uv, or no python3");
        return;
    };
    let stage = stage();
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = clean(&uv);
        command.current_dir(folder.path()).env("UV_DEFAULT_INDEX", &stage.default_index);
        succeeded(&command.args(arguments).args(["--no-cache", "--python", "python3"]).output().unwrap());
    };
    let write = |name: &str, format| fs::write(folder.path().join(name), stage.export(format)).unwrap();
    write("pyproject.toml", Format::Uv);
    run(&["lock"]);
    let document: toml_edit::DocumentMut = fs::read_to_string(folder.path().join("uv.lock")).unwrap().parse().unwrap();
    let locked = document["package"].as_array_of_tables().unwrap().iter().map(|package| {
        let text = |item: &toml_edit::Item| item.as_str().unwrap_or_default().to_owned();
        (text(&package["name"]), text(&package["version"]))
    });
    let locked: BTreeSet<(String, String)> = locked.filter(|(name, _)| name != "demo").collect();
    let target = &stage.lock.targets[0];
    let expected: BTreeSet<(String, String)> =
        target.packages.iter().map(|(name, package)| (name.to_string(), package.version.to_string())).collect();
    assert_eq!(locked, expected);
    write("pylock.toml", Format::Pylock);
    run(&["pip", "install", "--target", "from-pylock", "-r", "pylock.toml"]);
    came_from_the_right_index(&folder.path().join("from-pylock"));
    write("constraints.txt", Format::Constraints);
    fs::write(folder.path().join("in.txt"), "gpu-only\n").unwrap();
    let index = stage.lock.indexes["torch-cu129"].clone();
    run(&["pip", "compile", "in.txt", "-c", "constraints.txt", "--index", &index, "-o", "out.txt"]);
    assert!(fs::read_to_string(folder.path().join("out.txt")).unwrap().contains("gpu-only==3.0"));
}
