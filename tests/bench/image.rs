//! `gpulock verify` of an image, its layers new and known, beside `skopeo copy` of it to a folder of layers and their
//! decompression by `gzip -d` and `zstd -d`. Prints times, memory and the ratio; asserts nothing about them.
//!
//! GPULOCK_BENCH_IMAGE: an OCI layout with one image. GPULOCK_BENCH_GPU and GPULOCK_BENCH_DRIVER: A100 and 570 by default.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use wait4::Wait4;

/// Time of a command that must end, and the most memory that it had, in bytes.
fn sample(command: &mut Command) -> (Duration, u64) {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let start = Instant::now();
    let done = command.spawn().expect("the program starts").wait4().expect("a child to wait for");
    assert!(done.status.code().is_some_and(|code| code < 2), "{command:?}: {}", done.status);
    (start.elapsed(), done.rusage.maxrss)
}

fn shown((time, memory): (Duration, u64)) -> String {
    format!("{:8.2} s {:6} MB", time.as_secs_f64(), memory >> 20)
}

fn main() {
    let Some(image) = std::env::var_os("GPULOCK_BENCH_IMAGE").map(PathBuf::from) else {
        println!("GPULOCK_BENCH_IMAGE names no OCI layout");
        return;
    };
    let set = |name: &str, usual: &str| std::env::var(name).unwrap_or_else(|_| usual.to_owned());
    let (gpu, driver) = (set("GPULOCK_BENCH_GPU", "A100"), set("GPULOCK_BENCH_DRIVER", "570"));
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let subject = format!("oci:{}", image.display());
    let verify = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpulock"));
        command.args(["verify", &subject, "--gpu", &gpu, "--driver", &driver, "--cache-dir"]);
        sample(command.arg(folder.path().join("cache")))
    };
    let (new, known) = (verify(), verify());
    println!("verify, new layers    {}", shown(new));
    println!("verify, known layers  {}", shown(known));
    let to = folder.path().join("layers");
    let copy = sample(
        Command::new("skopeo")
            .args(["--insecure-policy", "copy", "--quiet", &subject])
            .arg(format!("dir:{}", to.display())),
    );
    println!("skopeo copy           {}", shown(copy));
    let mut unpacking = Duration::ZERO;
    for layer in fs::read_dir(&to).unwrap().map(|entry| entry.unwrap().path()) {
        if let Some(mut command) = decompressor(&layer) {
            unpacking += sample(command.arg(&layer)).0;
        }
    }
    println!("their decompression   {:8.2} s", unpacking.as_secs_f64());
    println!("ratio                 {:8.2}", new.0.as_secs_f64() / (copy.0 + unpacking).as_secs_f64());
}

/// What unpacks a layer to nowhere.
fn decompressor(layer: &Path) -> Option<Command> {
    let mut magic = [0; 4];
    fs::File::open(layer).ok()?.read_exact(&mut magic).ok()?;
    let program = match magic {
        [0x1f, 0x8b, ..] => "gzip",
        [0x28, 0xb5, 0x2f, 0xfd] => "zstd",
        _ => return None,
    };
    let mut command = Command::new(program);
    command.arg("-dc");
    Some(command)
}
