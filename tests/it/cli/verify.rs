//! What `gpulock verify` takes from the manifest and from its own variables.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::check::venv::Venv;
use crate::cli::program::{GOOD, Place, Ran};

/// The job's variables are those of `[env]`; a flag wins over them.
#[test]
fn variables_of_the_manifest_are_the_jobs() {
    let venv = Venv::with_torch();
    let path = venv.path().display().to_string();
    let place = Place::empty();
    let verify = ["verify", path.as_str(), "--fail-on", "warning"];
    place.put("gpulock.toml", GOOD);
    place.run(&verify).code(0);
    place.put("gpulock.toml", format!("{GOOD}[env]\nPYTORCH_ALLOC_CONF = \"expandable_segments:True\"\n"));
    let ran = place.run(&verify).code(1);
    assert!(ran.out.contains("warning[env-variable-renamed]: PYTORCH_ALLOC_CONF has no effect"), "{}", ran.out);

    let folder =
        venv.beside("usr/local/cuda/lib64/stubs/libcuda.so.1", &crate::link::fixture::Elf::library("libcuda.so.1"));
    let kernels = crate::check::venv::module("_C").needed(&["libcuda.so.1"]);
    venv.install("ext", "1.0", &["torch"], &[("ext/_C.abi3.so", kernels)]);
    place.put("gpulock.toml", format!("{GOOD}[env]\nLD_LIBRARY_PATH = \"{folder}\"\n"));
    let ran = place.run(&verify).code(1);
    assert!(ran.out.contains("error[cuda-stub-linked]"), "{}", ran.out);
    place.run(&[&verify[..], &["--set-env", "LD_LIBRARY_PATH=/nowhere"]].concat()).code(0);
}

/// A variable may hold any bytes, and so may its name.
#[test]
fn variables_that_are_no_utf_8() {
    let place = Place::empty();
    for arguments in [&["verify", "--", "/bin/sh", "-c", "echo ran"][..], &["doctor"]] {
        let plain = place.run(arguments);
        let mut command = place.command(arguments);
        let bytes = OsStr::from_bytes(b"a\xffb");
        let ran = Ran::of(command.env(bytes, "x").env("LD_LIBRARY_PATH", bytes).output().unwrap());
        assert_eq!((ran.code, &ran.out), (plain.code, &plain.out), "{ran:?}");
        assert!(matches!(ran.code, Some(0..=3)) && !ran.err.contains("panicked"), "{ran:?}");
    }
}
