//! For every torch release on the default index, the GPU stack that gpulock locks offline is the one that uv picks for
//! the same pins from the live index as it was when the snapshot was taken.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::known::{self, Build, packages, text};
use super::run::{self, folder, gpulock, timed};

/// Versions by package.
type Picked = BTreeMap<String, String>;

/// The lock's packages; standard error where there is no lock.
fn ours(folder: &Path, build: &Build, python: &str, vision: bool) -> Result<Picked, String> {
    let torch = format!("=={}", build.torch);
    let _ = fs::remove_file(folder.join("gpulock.lock"));
    let mut command = gpulock(folder, &folder.join("cache"));
    command.args(["resolve", "--offline", "--quiet", "--format", "json", "--gpu", "sm_80", "--driver", "595"]);
    command.args(["--platform", "linux-x86_64", "--python", python, "--torch", &torch]);
    if vision {
        command.args(["--torchvision", "*"]);
    }
    let output = command.output().unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let target = known::target(&String::from_utf8(output.stdout).unwrap());
    Ok(packages(&target).iter().map(|one| (text(one, "name").into(), text(one, "version").into())).collect())
}

/// What uv picks for `asked`; standard error where it finds nothing.
fn uvs(folder: &Path, asked: &str, python: &str) -> Result<Picked, String> {
    fs::write(folder.join("requirements.in"), asked).unwrap();
    let mut uv = run::uv().expect("looked for before");
    uv.current_dir(folder).args(["pip", "compile", "requirements.in", "--no-annotate", "--no-header", "--quiet"]);
    uv.args(["--python-version", python, "--python-platform", "x86_64-manylinux_2_28", "--no-python-downloads"]);
    // As the lock: from the same uploads, and nothing is built.
    uv.args(["--exclude-newer", &known::exclude_newer(), "--only-binary", ":all:"]);
    let output = uv.output().unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let text = String::from_utf8(output.stdout).unwrap();
    let pins = text.lines().filter_map(|line| line.split_once("=="));
    Ok(pins.map(|(name, version)| (name.to_owned(), version.split(' ').next().unwrap().to_owned())).collect())
}

/// What differs: `name: ours, uv's`.
fn differences(ours: &Picked, uvs: &Picked, gpu: bool) -> Vec<String> {
    let names: BTreeSet<&String> = ours.keys().chain(uvs.keys()).collect();
    let show = |version: Option<&String>| version.map_or("none", String::as_str).to_owned();
    names
        .into_iter()
        .filter(|name| known::is_gpu(name) == gpu && ours.get(*name) != uvs.get(*name))
        .map(|name| format!("{name}: gpulock {}, uv {}", show(ours.get(name)), show(uvs.get(name))))
        .collect()
}

/// How a build compares.
#[derive(Default)]
struct Comparison {
    gpu: Vec<String>,
    others: Vec<String>,
    remark: &'static str,
}

fn compare(folder: &Path, build: &Build, python: &str) -> Comparison {
    let (ours, asked, remark) = match ours(folder, build, python, true) {
        Ok(ours) => {
            let asked = format!("torch=={}\ntorchvision=={}\n", ours["torch"], ours["torchvision"]);
            (ours, asked, "")
        }
        Err(refusal) => {
            // Then uv must find none either, and torch alone is compared.
            let asked = format!("torch=={}\n", build.torch);
            if uvs(folder, &format!("{asked}torchvision\n"), python).is_ok() {
                return Comparison { gpu: vec![format!("only gpulock refuses: {refusal}")], ..Comparison::default() };
            }
            match self::ours(folder, build, python, false) {
                Ok(ours) => (ours, asked, "(both find no torchvision for it)"),
                Err(refusal) => return Comparison { gpu: vec![refusal], ..Comparison::default() },
            }
        }
    };
    match uvs(folder, &asked, python) {
        Ok(uvs) => Comparison { gpu: differences(&ours, &uvs, true), others: differences(&ours, &uvs, false), remark },
        Err(refusal) => Comparison { gpu: vec![format!("only uv refuses: {refusal}")], ..Comparison::default() },
    }
}

#[test]
fn network_uv_agreement() {
    if !run::network() {
        return;
    }
    let Some(mut uv) = run::uv() else { return };
    println!("{}, --exclude-newer {}", run::stdout(uv.arg("--version")), known::exclude_newer());
    let folder = folder();
    let builds = known::builds("linux-x86_64");
    let builds = builds.iter().filter(|build| known::numbers(&build.torch)[0] >= 2);
    let (mut agree, mut differ, mut others, mut releases) = (0, 0, 0, BTreeSet::new());
    // The newest Python of each release; all of them take four times as long.
    let pythons = if std::env::var_os("GPULOCK_TEST_ALL_PYTHONS").is_some() { usize::MAX } else { 1 };
    println!("torch    python  GPU stack");
    let ((), took) = timed(|| {
        for build in builds {
            releases.insert(&build.torch);
            for python in build.pythons.iter().rev().take(pythons) {
                let found = compare(folder.path(), build, python);
                let verdict = if found.gpu.is_empty() { "agree" } else { "DIFFER" };
                println!("{:<8} {python:<7} {verdict} {}{}", build.torch, found.remark, found.gpu.join("; "));
                if !found.others.is_empty() {
                    println!("         other packages: {}", found.others.join("; "));
                }
                agree += usize::from(found.gpu.is_empty());
                differ += usize::from(!found.gpu.is_empty());
                others += usize::from(!found.others.is_empty());
            }
        }
    });
    let count = releases.len();
    println!("{count} releases: {agree} agree, {differ} differ; other packages differ in {others}; {took:.1?}");
    assert!(count >= 28, "every release from 2.0.0");
    assert_eq!(differ, 0);
}
