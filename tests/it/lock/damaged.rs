//! Locks that cannot be used: each says what is wrong, where, and what to do.

use gpulock::diag::{Class, Failure};
use gpulock::lock::{Lock, REVISION, Seal};
use gpulock::report::human::{Style, failure};

use super::SAMPLE;

fn refuse(text: &str) -> Failure {
    let refused = Lock::parse(text, "gpulock.lock").expect_err(text);
    assert_eq!(refused.class, Class::Unanswerable);
    assert!(refused.diagnostics.iter().all(|problem| problem.fix.as_ref().is_some_and(|fix| fix.contains("gpulock"))));
    refused
}

/// Asserts that `text` is refused with `code` and `words`.
fn says(text: &str, code: &str, words: &[&str]) {
    let refused = refuse(text);
    let shown = failure(&refused, Style::default());
    if std::env::var_os("SHOW").is_some() {
        println!("{shown}");
    }
    assert!(refused.diagnostics.iter().any(|problem| problem.code == code), "{shown}");
    words.iter().for_each(|word| assert!(shown.contains(word), "`{word}` is not in\n{shown}"));
}

#[test]
fn merge_conflicts_are_explained() {
    let conflict = SAMPLE
        .replace("inputs = ", "<<<<<<< HEAD\ninputs = \"sha256:9\"\n||||||| base\n=======\n>>>>>>> branch\ninputs = ");
    says(
        &conflict,
        "merge-conflict",
        &[
            "gpulock.lock has unresolved merge conflicts: lines 4 to 8",
            "--> gpulock.lock:4:1",
            "--> gpulock.lock:8:1",
            "take either side of each conflict, then run `gpulock resolve`",
        ],
    );
    says(&conflict.replace('\n', "\r\n"), "merge-conflict", &["lines 4 to 8"]);
    says(&format!("{conflict}<<<<<<< HEAD\n"), "merge-conflict", &["lines 4 to 8, from"]);
}

#[test]
fn a_newer_version_is_refused_in_exact_words() {
    let newer = SAMPLE.replace("version = 1\n", "version = 2\n") + "[invented]\n";
    let refused = refuse(&newer);
    assert_eq!(refused.diagnostics[0].message, "gpulock.lock has version 2; this gpulock reads version 1");
    assert_eq!(refused.diagnostics.len(), 1);
    says(&newer, "lock-too-new", &["gpulock.lock:2:11", "use a newer gpulock"]);
    says(&SAMPLE.replace("version = 1\n", "version = 0\n"), "lock-broken", &["version 0, which never was"]);
    says("a = 1\n", "lock-incomplete", &["not a lock of gpulock"]);
}

#[test]
fn a_newer_revision_may_add() {
    let with = |revision: u64| {
        SAMPLE
            .replace("revision = 0", &format!("revision = {revision}"))
            .replace("variant = ", "novelty = \"x\"\nvariant = ")
            .replace("size = 1 }", "size = 1, mode = \"x\" }")
    };
    let newer = Lock::parse(&with(REVISION + 1), "gpulock.lock").unwrap();
    assert_eq!(newer.seal, Seal::Unknown);
    assert_eq!(Lock { seal: Seal::Absent, ..newer }, Lock::parse(SAMPLE, "gpulock.lock").unwrap());
    for known in 0..=REVISION {
        says(&with(known), "unknown-key", &["unknown key `novelty` in [[target]]", "unknown key `mode`"]);
    }
    let early = SAMPLE.replace("variant = ", "image = { os = \"debian12\", flavor = \"slim\" }\nvariant = ");
    says(&early, "unknown-key", &["unknown key `image` in [[target]]"]);
}

#[test]
fn an_image_is_a_whole_one() {
    let with = |image: &str| {
        SAMPLE.replace("revision = 0", "revision = 1").replacen("variant = ", &format!("{image}\nvariant = "), 1)
    };
    let whole = "image = { os = \"debian12\", flavor = \"slim\", ref = \"python:3.11-slim-bookworm\" }";
    assert!(Lock::parse(&with(whole), "gpulock.lock").is_ok());
    let broken = |from: &str, to: &str, code: &str, what: &str| says(&with(&whole.replace(from, to)), code, &[what]);
    broken("os = \"debian12\", ", "", "lock-incomplete", "`os` is missing in `image`");
    broken("\"slim\"", "\"slin\"", "lock-broken", "is none of slim, base, runtime, devel");
    broken("bookworm\"", "bookworm\\nRUN x\"", "lock-broken", "is not the name of an image");
    broken("ref =", "digest =", "lock-broken", "is not `sha256:` and a hash");
    let digest = format!("digest = \"sha256:{}\" }}", "1".repeat(64));
    broken("ref = \"python:3.11-slim-bookworm\" }", &digest, "lock-dangling", "an image that is not named");
    let twice = "env = [{ name = \"A\", value = \"1\" }, { name = \"A\", value = \"2\" }]";
    says(&with(twice), "lock-broken", &["variable `A` stands twice"]);
    says(
        &with("env = [{ name = \"A B\", value = \"1\" }]"),
        "lock-broken",
        &["not the name of an environment variable"],
    );
}

#[test]
fn every_cut_is_noticed() {
    says("", "lock-incomplete", &["gpulock.lock is empty"]);
    // The last line feed carries nothing; without any earlier byte something is missing.
    for cut in 0..SAMPLE.len() - 1 {
        if Lock::parse(&SAMPLE[..cut], "gpulock.lock").is_ok() {
            panic!("a lock that ends after byte {cut} is accepted:\n{}", &SAMPLE[..cut]);
        }
    }
}

#[test]
fn missing_keys_are_named() {
    for (line, key) in [
        ("name = \"cluster\"\n", "`name` is missing in [[target]]"),
        ("torch = \"2.8.0\"\n", "`torch` is missing in [[target]]"),
        (
            "matrix = \"sha256:2222222222222222222222222222222222222222222222222222222222222222\"\n",
            "`matrix` is missing",
        ),
        ("sm = \"sm_120\", ", "`sm` is missing in an entry of `gpus`"),
        ("driver = {}\n", "`driver` is missing"),
        ("url = \"https://pypi.invalid/simple\"\n", "`url` is missing in [[index]]"),
    ] {
        let cut = SAMPLE.replacen(line, "", 1);
        assert_ne!(cut, SAMPLE, "{line}");
        says(&cut, "lock-incomplete", &[key]);
    }
}

#[test]
fn references_must_lead_somewhere() {
    let without = |line: &str| {
        let cut: String = SAMPLE.lines().filter(|l| !l.starts_with(line)).map(|l| format!("{l}\n")).collect();
        assert_ne!(cut, SAMPLE);
        cut
    };
    says(&without("\"filelock"), "lock-dangling", &["filelock 3.20.0 is the wheel", "no line in [wheel]"]);
    says(&without("\"torch/lib"), "lock-incomplete", &["'s 1 shared libraries the lock lists 0"]);
    says(&without("\"torch-2.8.0"), "lock-dangling", &["libraries of `torch-2.8.0"]);
    says(&SAMPLE.replace("name = \"torch-cu129\"", "name = \"other\""), "lock-dangling", &["index `torch-cu129`"]);
}

#[test]
fn contradictions_are_found() {
    let other = SAMPLE.replace("version = \"3.20.0\"", "version = \"3.21.0\"");
    says(&other, "lock-broken", &["is not the file name of a wheel of filelock 3.21.0"]);
    says(&SAMPLE.replace("\"edge\"", "\"cluster\""), "lock-broken", &["target `cluster` stands twice"]);
    says(&SAMPLE.replace("sha256 = \"3333", "sha256 = \"33"), "lock-broken", &["is not a SHA-256"]);
    says(&SAMPLE.replace("torch/lib/libc10.so", "../../etc/passwd"), "lock-broken", &["not a path below"]);
    says(&SAMPLE.replace("tier = \"native\"", "tier = \"maybe\""), "lock-broken", &["none of native, minor-version"]);
    says(&SAMPLE.replace("size = 15000", "size = -1"), "wrong-type", &["whole number"]);
    says(&SAMPLE.replace("[wheel]", "[wheel"), "broken-toml", &["gpulock.lock is not valid TOML"]);
}

#[test]
fn names_and_addresses_are_words() {
    for (good, bad) in [
        ("name = \"cluster\"", "name = \"t\\n--extra-index-url http://evil/\""),
        ("url = \"https://", "url = \"https://user:secret@"),
        ("url = \"https://", "url = \"https://x --trusted-host "),
        ("url = \"https://pypi.invalid/simple\"", "url = \"-r/etc/passwd\""),
        ("url = \"https://pypi", "url = \"file://pypi"),
        ("url = \"https://pypi", "url = \"HTTPS://pypi"),
        ("pypi.invalid/simple", "pypi.invalid/${HOME}"),
        ("pypi.invalid/simple", "pypi.invalid/a'b"),
        ("pypi.invalid/simple", "pypi.invalid/a\\\\b"),
    ] {
        let text = SAMPLE.replacen(good, bad, 1);
        assert_ne!(text, SAMPLE, "{good}");
        let failure = Lock::parse(&text, "gpulock.lock").unwrap_err();
        assert!(failure.diagnostics.iter().any(|d| d.code == "lock-broken"), "{failure:?}");
        assert!(!failure.to_string().contains("secret"));
    }
}
