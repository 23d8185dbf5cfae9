//! What new users stumbled over.

use std::time::{Duration, Instant};

use super::program::{Place, Ran};

/// An address where nothing listens.
const NOWHERE: &str = "http://127.0.0.1:9/simple";

#[test]
fn a_mistyped_variant_asks_no_index() {
    let begun = Instant::now();
    let mirror = format!("pypi={NOWHERE}");
    let ask = ["resolve", "--mirror", &mirror, "--gpu", "A100", "--driver", "580.65.06", "--variant"];
    for (variant, meant) in [("cu182", "(did you mean cu128?)"), ("cu999", "variant = \"cu132\"")] {
        let ran = Place::empty().refuses(&[&ask[..], &[variant]].concat(), 1);
        ran.says(&[&format!("no torch variant {variant}"), "cu126, cu128", meant]);
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    // An index of the manifest may have it.
    let place = Place::with(&format!(
        "[stack]\nvariant = 'cu999'\n[target.a]\ngpus = ['A100']\n[[index]]\nname = 'own'\nurl = '{NOWHERE}'\n\
         packages = ['torch']\n"
    ));
    let ran = place.command(&["resolve"]).env("GPULOCK_HTTP_TIMEOUT", "1").output().unwrap();
    Ran::of(ran).code(2).says(&["index `own` could not be read", "--mirror own=URL", "--offline", "--allow-pending"]);
}

#[test]
fn a_mistyped_format_is_answered_with_the_list() {
    let ran = Place::locked().refuses(&["export", "requirement"], 2);
    ran.says(&["requirements, constraints, pylock, uv", "similar value exists: 'requirements'"]);
}

#[test]
fn several_gpus_from_the_environment() {
    let place = Place::empty();
    let show = |gpu: &str| {
        let ran = place.command(&["matrix", "show", "--torch", "2.8.0"]).env("GPULOCK_GPU", gpu).output().unwrap();
        Ran::of(ran)
    };
    let flags = place.run(&["matrix", "show", "--torch", "2.8.0", "--gpu", "A100", "--gpu", "RTX 5090"]).code(0);
    assert_eq!(show("A100,RTX 5090").code(0).out, flags.out);
    assert!(flags.out.contains("sm_80, sm_120"), "{}", flags.out);
    show("A100,RTX 9999").code(2).says(&["unknown GPU `RTX 9999`"]);
    // No build serves both of these.
    show("K80,RTX 5090").code(1);
}

#[test]
fn a_dockerfile_becomes_a_manifest_that_resolves() {
    let place = Place::empty();
    place.put(
        "Dockerfile",
        "FROM nvidia/cuda:12.1.1-cudnn8-devel-ubuntu22.04\nRUN apt-get update && apt-get install -y python3-pip\n\
         RUN pip3 install torch==2.1.0\n",
    );
    place.run(&["init", "--gpu", "A100", "--driver", "535.183.06"]).code(0).says(&["what ubuntu22.04 calls python3"]);
    let manifest = place.text("gpulock.toml");
    for line in ["python = \"3.10\"", "torch = \"==2.1.0\"", "cuda = \"12\""] {
        assert!(manifest.contains(line), "{manifest}");
    }
    let ran = place.run(&["resolve", "--offline"]).code(0);
    assert!(ran.out.contains("2.1.0 (cu121)") && ran.out.contains("cuDNN 8.9.2.26"), "{}", ran.out);
}

#[test]
fn a_floor_of_glibc_may_be_written_as_one() {
    let with = |glibc: &str| {
        let place = Place::with(&format!("[target.a]\ngpus = ['A100']\nglibc = '{glibc}'\n"));
        place.run(&["resolve", "--offline", "-q"]).code(0);
        place.lock()
    };
    assert_eq!(with("2.31"), with(">=2.31"));
}
