//! What variables of the manifest are in a container of the image: what the image needs stays.

use gpulock::diag::Class;
use gpulock::lock::{Lock, Tier};
use gpulock::render::Options;

use super::dockerfile::{all_pairs, lock as on, text as dockerfile};
use super::files::{options, with};
use super::values::format;

/// A lock for an older driver, whose stack runs with cuda-compat.
fn forward(flavor: &str) -> Lock {
    let mut lock = on(flavor, "ubuntu22.04");
    let driver = &mut lock.targets[0].driver;
    driver.tier = Some(Tier::Forward);
    driver.given = Some("470.57.02".into());
    lock
}

/// Every file of a lock that a container of its image is made or started by.
fn containers(lock: &Lock) -> Vec<String> {
    let exported = ["apptainer", "compose", "devcontainer", "k8s", "env", "slurm"];
    let exported = exported.iter().map(|name| with(format(name), lock, options()).unwrap());
    std::iter::once(dockerfile(lock).unwrap()).chain(exported).collect()
}

#[test]
fn cuda_compat_and_the_environment_stay_in_the_paths() {
    let set = |lock: &mut Lock, value: &str| {
        lock.targets[0].env.insert("LD_LIBRARY_PATH".into(), value.into());
        lock.targets[0].env.insert("PATH".into(), "/opt/tools:/usr/bin".into());
    };
    for flavor in ["base", "runtime", "devel"] {
        let mut lock = forward(flavor);
        for (given, inside) in [
            ("/opt/own", "/usr/local/cuda/compat:/opt/own"),
            ("", "/usr/local/cuda/compat"),
            ("/usr/local/cuda/compat:/a", "/usr/local/cuda/compat:/a"),
        ] {
            set(&mut lock, given);
            for text in containers(&lock) {
                let set = |name: &str, value: &str| {
                    let quoted = [format!("\"{value}\""), format!("'{value}'"), format!("={value}\n")];
                    let lines =
                        text.split_inclusive('\n').filter(|line| line.contains(name) || line.contains("value:"));
                    let lines: String = lines.filter(|line| !line.contains("--set-env")).collect();
                    assert!(quoted.iter().any(|quoted| lines.contains(&**quoted)), "{name} {value}\n{text}");
                };
                set("LD_LIBRARY_PATH", inside);
                set("PATH", "/opt/venv/bin:/opt/tools:/usr/bin");
            }
        }
        // Without cuda-compat the value is the user's.
        lock.targets[0].driver.tier = Some(Tier::Native);
        set(&mut lock, "/opt/own");
        assert!(containers(&lock).iter().all(|text| !text.contains("compat:/opt/own")));
    }
    // Outside of a container there is no such folder.
    let mut lock = forward("base");
    set(&mut lock, "/opt/own");
    for text in ["conda", "slurm"].map(|name| with(format(name), &lock, Options::default()).unwrap()) {
        assert!(text.contains("/opt/own") && !text.contains("/opt/venv") && !text.contains("compat"), "{text}");
    }
}

#[test]
fn what_runs_with_cuda_compat_has_it() {
    let text = dockerfile(&forward("devel")).unwrap();
    assert!(text.contains("\nFROM toolkit AS runtime\n"), "{text}");
    assert_eq!(text.matches("LD_LIBRARY_PATH=\"/usr/local/cuda/compat:").count(), 2);
    let text = dockerfile(&on("devel", "ubuntu22.04")).unwrap();
    assert!(text.contains("\nFROM python AS runtime\n"), "{text}");
    // The driver that such a lock runs from is the one that it was made for.
    let lock = forward("base");
    assert_eq!(all_pairs(&dockerfile(&lock).unwrap(), "LABEL")["gpulock.driver.floor"], "470.57.02");
    let text = with(format("apptainer"), &lock, Options::default()).unwrap();
    assert!(text.contains("\n    gpulock.driver.floor 470.57.02\n"), "{text}");
}

#[test]
fn extensions_are_compiled_with_the_variables_of_the_manifest() {
    let mut lock = on("devel", "ubuntu22.04");
    let stage = |lock: &Lock| {
        let text = dockerfile(lock).unwrap();
        let build = text.split(" AS build\n").nth(1).unwrap().split("\nFROM ").next().unwrap();
        let pairs = all_pairs(build, "ENV");
        (pairs["CUDA_HOME"].clone(), pairs["TORCH_CUDA_ARCH_LIST"].clone())
    };
    assert_eq!(stage(&lock), ("/usr/local/cuda".into(), "12.0".into()));
    let own = [("CUDA_HOME", "/opt/my \"cuda\""), ("TORCH_CUDA_ARCH_LIST", "9.0+PTX")];
    lock.targets[0].env.extend(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(stage(&lock), ("/opt/my \"cuda\"".into(), "9.0+PTX".into()));
}

#[test]
fn conda_names_the_abi_of_its_python() {
    let mut lock = on("slim", "debian12");
    for (python, abi) in [("3.7", "3.7.* *_cp37m"), ("3.8", "3.8.* *_cp38"), ("3.13t", "3.13.* *_cp313t")] {
        lock.targets[0].python = python.parse().unwrap();
        let text = with(format("conda"), &lock, options()).unwrap();
        assert!(text.contains(&format!("python_abi {abi}\"")), "{text}");
    }
}

#[test]
fn kubernetes_gives_the_gpus() {
    let mut lock = on("slim", "debian12");
    lock.targets[0].env.insert("NVIDIA_VISIBLE_DEVICES".into(), "all".into());
    let refused = with(format("k8s"), &lock, options()).unwrap_err();
    assert_eq!((refused.class, refused.diagnostics[0].code), (Class::No, "env-value"));
    assert!(refused.to_string().contains("the device plugin sets it"), "{refused}");
}
