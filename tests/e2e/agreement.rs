//! For every torch release on the default index, the GPU stack that gpulock locks offline is the one that uv picks for
//! the same pins from the live index as it was when the snapshot was taken.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::known::{self, Build, packages, text};
use super::run::{self, folder, gpulock, timed};

/// Versions by package.
type Picked = BTreeMap<String, String>;

fn ours(folder: &Path, build: &Build, python: &str) -> Result<Picked, String> {
    let torch = format!("=={}", build.torch);
    let _ = fs::remove_file(folder.join("gpulock.lock"));
    let mut command = gpulock(folder, &folder.join("cache"));
    command.args(["resolve", "--offline", "--quiet", "--format", "json", "--gpu", "sm_80", "--driver", "595"]);
    command.args(["--platform", "linux-x86_64", "--python", python, "--torch", &torch, "--torchvision", "*"]);
    let output = command.output().unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let target = known::target(&String::from_utf8(output.stdout).unwrap());
    Ok(packages(&target).iter().map(|one| (text(one, "name").into(), text(one, "version").into())).collect())
}

fn uvs(folder: &Path, ours: &Picked, python: &str) -> Result<Picked, String> {
    let pins = format!("torch=={}\ntorchvision=={}\n", ours["torch"], ours["torchvision"]);
    fs::write(folder.join("requirements.in"), pins).unwrap();
    let mut uv = run::uv().expect("looked for before");
    uv.current_dir(folder).args(["pip", "compile", "requirements.in", "--no-annotate", "--no-header", "--quiet"]);
    uv.args(["--python-version", python, "--python-platform", "x86_64-manylinux_2_28"]);
    uv.args(["--exclude-newer", &known::exclude_newer()]);
    // As in the lock: nothing is built.
    uv.args(["--only-binary", ":all:"]);
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
    let names: std::collections::BTreeSet<&String> = ours.keys().chain(uvs.keys()).collect();
    let show = |version: Option<&String>| version.map_or("none", String::as_str).to_owned();
    names
        .into_iter()
        .filter(|name| known::is_gpu(name) == gpu && ours.get(*name) != uvs.get(*name))
        .map(|name| format!("{name}: gpulock {}, uv {}", show(ours.get(name)), show(uvs.get(name))))
        .collect()
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
    let (mut agree, mut gpu, mut rest, mut releases) = (0, 0, 0, 0);
    println!("torch    python  GPU stack");
    let ((), took) = timed(|| {
        for build in builds {
            releases += 1;
            for python in build.pythons.iter().rev() {
                let outcome =
                    ours(folder.path(), build, python).map_err(|error| format!("gpulock: {error}")).and_then(|ours| {
                        let uvs = uvs(folder.path(), &ours, python).map_err(|error| format!("uv: {error}"))?;
                        Ok((ours, uvs))
                    });
                let (serious, other) = match outcome {
                    Ok((ours, uvs)) => (differences(&ours, &uvs, true), differences(&ours, &uvs, false)),
                    Err(error) => (vec![error], Vec::new()),
                };
                let verdict = if serious.is_empty() { "agree" } else { "DIFFER" };
                println!("{:<8} {:<7} {verdict} {}", build.torch, python, serious.join("; "));
                if !other.is_empty() {
                    println!("         other packages: {}", other.join("; "));
                }
                agree += usize::from(serious.is_empty());
                gpu += usize::from(!serious.is_empty());
                rest += usize::from(!other.is_empty());
            }
        }
    });
    println!("{releases} releases: {agree} agree, {gpu} differ; {rest} with other packages that differ; {took:.1?}");
    assert!(releases >= 28, "every release from 2.0.0");
    assert_eq!(gpu, 0);
}
