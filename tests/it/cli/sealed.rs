//! The hash of its own content that a lock carries: an edit of any kind is found by `check` and `--locked`, without network.

use gpulock::lock::Lock;

use super::program::{GOOD, Place};
use crate::check::venv::Venv;

/// A lock with everything that a lock may have.
fn full() -> Place {
    let place = Place::with(&format!("{GOOD}\n[image]\nflavor = \"slim\"\n\n[env]\nNCCL_DEBUG = \"WARN\"\n"));
    place.run(&["resolve", "--offline", "-q"]).code(0);
    place
}

/// From the first of `from` on, `to` in its place.
fn edit(place: &Place, from: &str, to: &str) {
    let lock = place.lock();
    assert!(lock.contains(from), "the lock has no {from}");
    place.put("gpulock.lock", lock.replacen(from, to, 1));
}

/// The text between two others.
fn between<'t>(text: &'t str, before: &str, after: &str) -> &'t str {
    text.split_once(before).unwrap().1.split_once(after).unwrap().0
}

#[test]
fn every_edit_is_found() {
    let lock = full().lock();
    let library = between(&lock, "libtorch_cuda.so\" = { sha256 = \"", "\"");
    let size = between(&lock, "libtorch_cuda.so\" = ", " }").rsplit_once("size = ").unwrap().1;
    let package = lock.lines().find(|line| line.contains("{ name = \"mpmath\"")).unwrap();
    for (from, to) in [
        ("given = \"580\"", "given = \"570\""),
        ("floor = \"525.60.13\"", "floor = \"520\""),
        ("native = \"570.26\"", "native = \"560\""),
        ("tier = \"native\"", "tier = \"minor-version\""),
        ("name = \"A100\"", "name = \"H100\""),
        ("sm = \"sm_80\"", "sm = \"sm_86\""),
        ("value = \"WARN\"", "value = \"INFO\""),
        ("name = \"NCCL_DEBUG\"", "name = \"NCCL_DEBUGS\""),
        ("flavor = \"slim\"", "flavor = \"base\""),
        ("url = \"https://", "url = \"https://other."),
        ("variant = \"cu128\"", "variant = \"cu129\""),
        (package, ""),
        (library, &"0".repeat(64)),
        (size, "1"),
    ] {
        let place = full();
        edit(&place, from, to);
        // Who needs a package that is gone is found before anything is judged.
        if from == package {
            edit(&place, "\"mpmath-", "\"x\" = 1 #");
            assert_eq!(place.run(&["check"]).code, Some(2));
            continue;
        }
        let ran = place.run(&["check"]).code(1);
        let says =
            "error[lock-edited]: gpulock.lock was edited since `gpulock resolve` wrote it, or merged line by line";
        assert!(ran.out.contains(says), "{from} -> {to}: {}", ran.out);
        let line = place.lock().lines().position(|line| line.starts_with("content = ")).unwrap() + 1;
        assert!(ran.out.contains(&format!("--> gpulock.lock:{line}:1")), "{}", ran.out);
        assert!(ran.out.contains("run `gpulock resolve`"), "{}", ran.out);
        place.refuses(&["resolve", "--locked"], 1).says(&["error[lock-edited]"]);
        place.refuses(&["resolve", "--offline", "--check"], 1).says(&["error[lock-stale]"]);
        // A resolve makes it whole, and the same as it was.
        place.run(&["resolve", "--offline", "-q"]).code(0);
        assert_eq!(place.lock(), full().lock(), "{from} -> {to}");
    }
}

/// The form of the file does not count: comments, order, ends of lines.
#[test]
fn what_is_no_edit() {
    let place = full();
    let lock = place.lock();
    for other in
        [lock.replace('\n', "\r\n"), format!("# a comment\n{lock}\n\n"), lock.replacen("\"WARN\"", "'WARN'", 1)]
    {
        assert_ne!(other, lock);
        place.put("gpulock.lock", other);
        assert!(place.run(&["check", "--matrix-age", "99999"]).code(0).out.ends_with("\nclean\n"));
        place.run(&["resolve", "--locked"]).code(0);
        place.run(&["resolve", "--offline", "--check"]).code(0);
    }
}

#[test]
fn a_lock_of_an_earlier_release_has_none() {
    let place = full();
    let (whole, text) = (place.lock(), Lock::parse(&place.lock(), "gpulock.lock").unwrap().to_text());
    assert!(text.contains("revision = 1\n") && !text.contains("content = "), "{text}");
    place.put("gpulock.lock", &text);
    let ran = place.run(&["check", "--matrix-age", "99999"]).code(0);
    assert!(ran.out.contains("warning[lock-edited]: gpulock.lock has no hash of what it holds"), "{}", ran.out);
    assert!(ran.out.contains("run `gpulock resolve` once"), "{}", ran.out);
    assert_eq!(place.run(&["check", "--fail-on", "warning"]).code, Some(1));
    place.run(&["resolve", "--locked"]).code(0).says(&["warning[lock-edited]"]);
    place.refuses(&["resolve", "--offline", "--check"], 1).says(&["a hash of what it holds, which it lacks"]);
    let ran = place.run(&["resolve", "--offline"]).code(0);
    assert!(ran.out.contains("wrote gpulock.lock\n  a hash of what it holds, which it lacks"), "{}", ran.out);
    assert_eq!(place.lock(), whole);
    // What a later one added may be part of its hash.
    edit(&place, "revision = 2\n", "revision = 7\nnovelty = true\n");
    assert!(place.run(&["check", "--matrix-age", "99999"]).code(0).out.ends_with("\nclean\n"));
    // A revision that has a hash is not without one.
    place.put("gpulock.lock", text.replace("revision = 1\n", "revision = 2\n"));
    place.refuses(&["check"], 2).says(&["`content` is missing"]);
    place.put("gpulock.lock", whole.replace("revision = 2\n", "revision = 1\n"));
    place.refuses(&["check"], 2).says(&["`content`"]);
}

/// What somebody wrote into a lock is not taken over by the next resolve.
#[test]
fn a_resolve_trusts_no_edit() {
    let place =
        Place::with(&format!("{GOOD}\n[target.b]\ngpus = ['H100']\ndriver = '580'\n\n[image]\nflavor = \"slim\"\n"));
    place.run(&["resolve", "--offline", "-q"]).code(0);
    let whole = place.lock();
    let digest = format!("\", digest = \"sha256:{}\"", "0".repeat(64));
    let image = between(&whole, "ref = \"", "\"").to_owned();
    edit(&place, &format!("ref = \"{image}\""), &format!("ref = \"{image}{digest}"));
    place.refuses(&["resolve", "--offline", "--target", "b"], 1).says(&["error[lock-edited]", "leave out --target"]);
    place.run(&["resolve", "--offline", "-q"]).code(0);
    assert_eq!(place.lock(), whole);
}

#[test]
fn a_stale_lock_says_in_what() {
    for (from, to, says) in [
        ("\"580\"", "\"570\"", "seen: gpulock.toml:7: driver of target a: the lock was made for 580, not 570"),
        ("\"A100\"", "\"H100\"", "gpus of target a: the lock was made for A100, not H100"),
        ("\"2.8.0\"", "\"2.7.1\"", "torch ==2.7.1 is asked for, and target a has 2.8.0"),
        ("\"3.11\"", "\"3.12\"", "python 3.12 is asked for, and target a has 3.11"),
        ("\"WARN\"", "\"INFO\"", "NCCL_DEBUG of [env] is not the lock's"),
        ("NCCL_DEBUG = \"WARN\"", "", "NCCL_DEBUG is not in [env] any more"),
        ("\"slim\"", "\"base\"", "flavor base is asked for in [image], and the lock has slim"),
        ("[target.a]", "[target.b]", "target b is new"),
        ("[env]", "[packages]\neinops = '*'\n[env]", "einops * is asked for, and target a has none"),
        ("torch = \"2.8.0\"", "torch = \">=2.8,<2.9\"", "in what a lock does not hold"),
    ] {
        let place = full();
        let manifest = place.text("gpulock.toml");
        assert!(manifest.contains(from));
        place.put("gpulock.toml", manifest.replacen(from, to, 1));
        place.refuses(&["resolve", "--locked"], 1).says(&["error[lock-stale]", says]);
        let ran = place.run(&["check"]).code(1);
        assert!(ran.out.contains("error[lock-stale]") && ran.out.contains(says), "`{says}` is not in\n{}", ran.out);
    }
}

/// What is made of a lock says what was resolved, or is not made.
#[test]
fn nothing_is_made_of_an_edited_lock() {
    let place = full();
    place.put("pyproject.toml", "[project]\nname = 'p'\nversion = '1'\nrequires-python = '>=3.11'\n");
    place.run(&["dockerfile", "-q", "-o", "Dockerfile"]).code(0);
    place.run(&["export", "requirements", "-o", "requirements.txt"]).code(0);
    place.run(&["export", "slurm", "-o", "job.sh", "--", "true"]).code(0);
    edit(&place, "floor = \"525.60.13\"", "floor = \"520\"");
    let commands: [&[&str]; 6] = [
        &["dockerfile"],
        &["dockerfile", "--check"],
        &["export", "requirements"],
        &["export", "pylock", "--offline", "--wheels", "w"],
        &["export", "uv"],
        &["export", "k8s", "--image", "i", "--", "true"],
    ];
    for command in commands {
        place.refuses(command, 1).says(&["error[lock-edited]", "run `gpulock resolve`"]);
    }
    // Nor is it said of each file that it is to be written anew from that lock.
    let ran = place.run(&["check", "--matrix-age", "99999"]).code(1);
    assert!(ran.out.contains("lock-edited") && !ran.out.contains("error[file-stale]"), "{}", ran.out);
    let says = "skipped, gpulock.lock was edited: run `gpulock resolve` first: file-stale";
    assert!(ran.out.contains(says) && !ran.out.contains("write it anew: `gpulock dockerfile"), "{}", ran.out);
    // What an environment has, it has all the same.
    let venv = Venv::with_torch();
    let path = venv.path().display().to_string();
    let verify = ["verify", "--lock", "gpulock.lock", &path];
    assert!(place.run(&verify).err.contains("warning[lock-edited]"));
    place.run(&["resolve", "--offline", "-q"]).code(0);
    assert!(!place.run(&verify).err.contains("lock-edited"));
    place.run(&["dockerfile", "--check"]).code(0);
}

#[test]
fn a_lock_without_its_manifest() {
    let place = full();
    std::fs::remove_file(place.path("gpulock.toml")).unwrap();
    let ran = place.run(&["check", "--matrix-age", "99999"]).code(0);
    let says = "warning[lock-stale]: gpulock.lock is here without the manifest that it was made for";
    assert!(ran.out.contains(says) && ran.out.contains("--manifest FILE"), "{}", ran.out);
    place.run(&["check", "--fail-on", "warning"]).code(1);
}

/// Without its hash, a lock is still held against what is known.
#[test]
fn what_is_known_is_compared_without_a_hash() {
    let place = full();
    let text = Lock::parse(&place.lock(), "gpulock.lock").unwrap().to_text();
    let url = between(&text, "url = \"", "\"").to_owned();
    for (from, to, says) in [
        ("floor = \"525.60.13\"", "floor = \"450\"", "the oldest driver of a is 450, and it is 525.60.13"),
        ("native = \"570.26\"", "native = \"450\"", "the native driver of a is 450, and it is 570.26"),
        (&*url, "https://evil.example/simple", &*format!("is at https://evil.example/simple, and it is at {url}")),
    ] {
        assert!(text.contains(from), "{from}");
        place.put("gpulock.lock", text.replacen(from, to, 1));
        let ran = place.run(&["check", "--matrix-age", "99999"]).code(1);
        assert!(ran.out.contains("error[lock-edited]") && ran.out.contains(says), "`{says}` is not in\n{}", ran.out);
    }
}
