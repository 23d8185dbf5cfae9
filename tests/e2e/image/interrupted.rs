//! Runs that end before they are done: nothing of them is left.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::image_made::make::{Layer, Made, Packed};
use crate::run::{files, folder, gpulock};

/// A layer that takes a while: libraries that are none, and much of them.
fn large() -> Layer {
    let mut layer = Layer::default();
    let mut noise = vec![0_u8; 4 << 20];
    let mut state = 1_u64;
    for byte in &mut noise {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *byte = (state >> 56) as u8;
    }
    noise[..4].copy_from_slice(b"\x7fELF");
    for number in 0..30 {
        layer = layer.bytes(&format!("usr/lib/lib{number}.so"), 0o755, &noise);
    }
    layer.file("etc/os-release", "ID=debian\n")
}

fn left(folder: &Path) -> Vec<PathBuf> {
    files(folder)
        .into_iter()
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".new-")))
        .collect()
}

#[test]
fn killed_at_any_time_nothing_half_stays() {
    let folder = folder();
    let (cache, temporary) = (folder.path().join("cache"), folder.path().join("tmp"));
    fs::create_dir_all(&temporary).unwrap();
    fs::create_dir_all(&cache).unwrap();
    Made::of(&[large(), Layer::default().file("a.py", "a")]).layout(&folder.path().join("made"), Packed::Gzip);
    let run = || {
        let mut command = gpulock(folder.path(), &cache);
        command.args(["verify", "oci:made", "--format", "json"]).env("TMPDIR", &temporary);
        command
    };
    for (turn, signal) in ["INT", "KILL", "TERM"].into_iter().cycle().take(12).enumerate() {
        let mut child = run().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(30 * turn as u64 + 5));
        // It may be done already.
        let _ = std::process::Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
        child.wait().unwrap();
        assert!(files(&temporary).is_empty(), "left in TMPDIR after {signal}: {:?}", files(&temporary));
    }
    let expected = run().output().unwrap();
    assert!(left(&cache).is_empty(), "{:?}", left(&cache));
    // What the cache has is whole: it says the same, and the same as without any.
    assert_eq!(run().output().unwrap().stdout, expected.stdout);
    fs::remove_dir_all(&cache).unwrap();
    assert_eq!(run().output().unwrap().stdout, expected.stdout);
}

/// An archive with a million entries is read, in bounded time.
#[test]
fn a_million_entries() {
    let folder = folder();
    let one = Layer::default().file("n", "").tar()[..512].repeat(1_000_000);
    let made = Made { layers: vec![[one, vec![0; 1024]].concat()], start: serde_json::json!({}), history: Vec::new() };
    made.layout(&folder.path().join("made"), Packed::Zstd);
    let mut command = gpulock(folder.path(), &folder.path().join("cache"));
    let output = command.args(["verify", "oci:made"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
}
