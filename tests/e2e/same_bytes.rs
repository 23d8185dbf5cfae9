//! One manifest gives one lock: with a cold and a warm cache, once more, offline afterwards, and from two processes at
//! once.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use super::run::{self, files, folder, gpulock, succeed, timed};

/// Two kinds of machine, and packages that the snapshot does not have.
const MANIFEST: &str = r#"
[stack]
python = "3.11"
torch = ">=2.8,<2.10"
torchvision = "*"

[packages]
safetensors = "*"
tqdm = "*"

[target.old]
gpus = ["A100"]
driver = "550.54.15"

[target.new]
gpus = ["RTX 5090", "H100"]
driver = "580.65.06"
"#;

fn project(at: &Path) {
    fs::create_dir_all(at).unwrap();
    fs::write(at.join("gpulock.toml"), MANIFEST).unwrap();
}

fn resolve(at: &Path, cache: &Path, more: &[&str]) -> String {
    let (_, took) = timed(|| succeed(gpulock(at, cache).arg("resolve").args(more)));
    println!("{} {}: {took:.2?}", at.file_name().unwrap().to_string_lossy(), more.join(" "));
    assert_eq!(files(at), [at.join("gpulock.lock"), at.join("gpulock.toml")], "nothing else is left");
    fs::read_to_string(at.join("gpulock.lock")).unwrap()
}

#[test]
fn network_same_bytes() {
    if !run::network() {
        return;
    }
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let (cache, other_cache) = (at("cache"), at("other-cache"));
    for name in ["cold", "warm", "offline", "together"] {
        project(&at(name));
    }
    let lock = resolve(&at("cold"), &cache, &[]);
    assert!(lock.contains("tqdm-") && !lock.contains("pending"), "{lock}");
    assert_eq!(resolve(&at("cold"), &cache, &[]), lock, "over itself");
    assert_eq!(resolve(&at("cold"), &cache, &["--upgrade"]), lock, "--upgrade");
    assert_eq!(resolve(&at("warm"), &cache, &[]), lock, "warm cache");
    assert_eq!(resolve(&at("offline"), &cache, &["--offline"]), lock, "offline");

    // Two at once, one folder and one cold cache.
    for round in 0..2 {
        let start = || {
            let mut command = gpulock(&at("together"), &other_cache);
            command.arg("resolve").stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        };
        for process in [start(), start()] {
            let output = process.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        assert_eq!(fs::read_to_string(at("together/gpulock.lock")).unwrap(), lock, "two at once, round {round}");
        assert_eq!(files(&at("together")).len(), 2);
        fs::remove_file(at("together/gpulock.lock")).unwrap();
    }
    assert_eq!(resolve(&at("together"), &other_cache, &["--offline"]), lock, "the cache of two at once");
}
