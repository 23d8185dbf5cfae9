//! An index laid out as the torch index is, served by a real nginx beside a default index that nginx serves from the
//! snapshot: the lock takes torch and torchvision from the one and all else from the other, and says the same offline
//! when nginx is gone.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::known::{self, packages, text};
use super::nginx::{Nginx, Site, page};
use super::run::{self, folder, gpulock, succeed};
use super::wheels::{Made, recipe};

fn snapshot() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("compat-matrix/snapshot")
}

/// Releases of a package in the snapshot.
fn releases(package: &str) -> Vec<Value> {
    let text = fs::read_to_string(snapshot().join(format!("{package}.jsonl"))).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A small wheel with the name of a real one and the dependencies of PyPI's build of that release.
fn wheel(package: &str, version: &str, variant: &str, tag: &str) -> Made {
    let release = releases(package).into_iter().find(|release| text(release, "version") == version).unwrap();
    let requires = release["requires"][0].as_array().unwrap();
    let requires: String = requires.iter().map(|one| format!("Requires-Dist: {}\n", one.as_str().unwrap())).collect();
    let version = format!("{version}+{variant}");
    let mut made = recipe(package, &version);
    made.metadata = format!(
        "Metadata-Version: 2.1\nName: {package}\nVersion: {version}\nRequires-Python: >=3.9\n{requires}\nText\n"
    );
    let mut made = made.file(&format!("{package}/lib/lib{package}_cuda.so"), variant.as_bytes()).make();
    made.file = format!("{package}-{version}-{tag}-{tag}-manylinux_2_28_x86_64.whl");
    made
}

/// `/whl/cu126` with what is made here, `/simple` with what the snapshot has (its pages; the wheels are not there).
fn site(made: &[(&str, Made)]) -> Site {
    let mut site = Site::new();
    let mut links: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for (package, made) in made {
        let href = format!("/whl/cu126/{}", made.file);
        links.entry(package).or_default().push((href, made.sha256.clone(), made.file.clone()));
        site.insert(format!("whl/cu126/{}", made.file), made.bytes.clone());
    }
    for (package, links) in links {
        site.insert(format!("whl/cu126/{package}/index.html"), page(package, &links));
    }
    for entry in fs::read_dir(snapshot()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(package) = name.strip_suffix(".jsonl") else { continue };
        let releases = releases(package);
        let wheels = releases.iter().flat_map(|release| release["wheels"].as_array().unwrap());
        let links: String = wheels
            .map(|wheel| {
                let (file, sha256) = (text(wheel, "file"), text(wheel, "sha256"));
                let python = wheel["python"].as_str().unwrap_or_default().replace('>', "&gt;").replace('<', "&lt;");
                let yanked = if wheel["yanked"] == true { " data-yanked=\"\"" } else { "" };
                format!(
                    "<a href=\"/files/{}#sha256={sha256}\" data-requires-python=\"{python}\"{yanked}>{file}</a>\n",
                    file.replace('+', "%2B")
                )
            })
            .collect();
        site.insert(format!("simple/{package}/index.html"), format!("<!DOCTYPE html>\n{links}").into_bytes());
    }
    site
}

#[test]
fn nginx_torch_index() {
    let made = [
        ("torch", wheel("torch", "2.6.0", "cu126", "cp311")),
        ("torch", wheel("torch", "2.7.1", "cu126", "cp311")),
        ("torch", wheel("torch", "2.7.1", "cu126", "cp312")),
        ("torchvision", wheel("torchvision", "0.22.1", "cu126", "cp311")),
    ];
    let Some(nginx) = Nginx::start(&site(&made), "", |_| String::new()) else { return };
    let host = format!("http://127.0.0.1:{}", nginx.port);
    let folder = folder();
    let manifest = format!(
        "[stack]\npython = \"3.11\"\ntorch = \"*\"\ntorchvision = \"*\"\n\n\
         [target.cluster]\ngpus = [\"A100\"]\ndriver = \"570.124.06\"\n\n\
         [[index]]\nname = \"torch-cu126\"\nurl = \"{host}/whl/cu126\"\npackages = [\"torch\", \"torchvision\"]\n"
    );
    let project = |name: &str| {
        let at = folder.path().join(name);
        fs::create_dir(&at).unwrap();
        fs::write(at.join("gpulock.toml"), &manifest).unwrap();
        at
    };
    let cache = folder.path().join("cache");
    let mirror = format!("pypi={host}/simple");
    let command = |at: &Path, arguments: &[&str]| {
        let mut command = gpulock(at, &cache);
        for proxy in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "GPULOCK_MIRROR"] {
            command.env_remove(proxy);
        }
        command.args(arguments).args(["--mirror", &mirror]);
        command
    };

    let online = project("online");
    let json = run::stdout(&mut command(&online, &["resolve", "--format", "json"]));
    let target = known::target(&json);
    let [_, (_, torch), _, (_, vision)] = &made;
    for (name, made) in [("torch", torch), ("torchvision", vision)] {
        let package = packages(&target).iter().find(|package| package["name"] == name).unwrap();
        assert_eq!((text(package, "index"), text(package, "file")), ("torch-cu126", &*made.file));
        assert_eq!(text(package, "sha256"), made.sha256);
        let libraries = package["libraries"].as_array().unwrap();
        assert!(libraries.iter().any(|one| one["path"] == format!("{name}/lib/lib{name}_cuda.so")), "{libraries:?}");
    }
    assert_eq!(text(&target["stack"], "torch"), "2.7.1");
    assert_eq!(text(&target["stack"], "variant"), "cu126");
    let others = packages(&target).iter().filter(|package| !text(package, "name").starts_with("torch"));
    assert!(others.clone().count() >= 20);
    for package in others {
        assert_eq!(text(package, "index"), "pypi", "{package}");
        assert_eq!(text(package, "sha256").len(), 64);
        assert!(package["size"].is_u64(), "whatever the page of a mirror lacks: {package}");
    }
    let log = nginx.log();
    assert!(log.contains("/whl/cu126/torch-2.7.1%2Bcu126-cp311"), "{log}");
    assert!(!log.contains("/files/"), "the snapshot knows these wheels: {log}");

    drop(nginx);
    let offline = project("offline");
    succeed(&mut command(&offline, &["resolve", "--offline"]));
    let lock = |at: &Path| fs::read_to_string(at.join("gpulock.lock")).unwrap();
    assert_eq!(lock(&offline), lock(&online));
    assert!(lock(&online).contains(&format!("{host}/whl/cu126")));
    assert!(!lock(&online).contains(&format!("{host}/simple")), "a mirror stays out of the lock");

    let requirements = run::stdout(&mut command(&offline, &["export", "requirements"]));
    assert!(requirements.contains(&format!("--extra-index-url {host}/whl/cu126")), "{requirements}");
    assert!(requirements.contains("torch==2.7.1+cu126 \\\n"), "{requirements}");
    assert!(requirements.contains(&format!("--hash=sha256:{}", torch.sha256)), "{requirements}");
}
