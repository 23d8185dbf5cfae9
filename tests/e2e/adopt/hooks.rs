//! The hooks, run by pre-commit on real commits.

use std::fs;

use super::workshop::{Workshop, said};
use crate::run::{self, succeed, timed};

/// Each hook, with the gpulock on PATH: a sound commit passes, a drift is refused with its sentence.
#[test]
fn network_hooks_refuse_what_drifted() {
    if !run::network() {
        return;
    }
    let workshop = Workshop::open();
    succeed(workshop.pre_commit().arg("validate-manifest").arg(workshop.at("source/.pre-commit-hooks.yaml")));
    workshop.adopt(
        "      - id: gpulock-check-system\n        args: [--fail-on, warning]\n\
         \x20     - id: gpulock-resolve-system\n        args: [--check, --quiet, --offline]\n\
         \x20     - id: gpulock-dockerfile-system\n",
    );
    workshop.put("train.py", "print(1)\n");
    let (passed, text) = workshop.try_commit();
    assert!(passed && text.contains("gpulock check") && text.contains("no files to check"), "{text}");

    workshop.edit("Dockerfile", "USER 10001", "USER root");
    let (passed, text) = workshop.try_commit();
    assert!(!passed && text.contains("Dockerfile was changed since it was written"), "{text}");
    assert_eq!(text.matches("- exit code: 1").count(), 2, "the check and the Dockerfile's own hook: {text}");
    workshop.edit("Dockerfile", "USER root", "USER 10001");

    workshop.edit("gpulock.toml", "\"580\"", "\"570\"");
    let (passed, text) = workshop.try_commit();
    assert!(!passed && text.contains("gpulock.lock is not that of this manifest"), "{text}");
    assert!(text.contains("gpulock.lock would change"), "{text}");
    workshop.edit("gpulock.toml", "\"570\"", "\"580\"");

    // A lock that goes is in the list of no hook.
    fs::remove_file(workshop.at("repo/gpulock.lock")).unwrap();
    let (passed, text) = workshop.try_commit();
    assert!(!passed && text.contains("there is no lock"), "{text}");
}

/// The hook as most will have it: pre-commit builds it with cargo.
#[test]
fn network_hook_is_built_by_pre_commit() {
    if !run::network() {
        return;
    }
    let workshop = Workshop::open();
    workshop.adopt("      - id: gpulock-check\n");
    let (output, took) = timed(|| succeed(workshop.pre_commit().args(["run", "--all-files", "--verbose"])));
    println!("pre-commit builds and runs gpulock-check: {took:.1?}");
    assert!(said(&output).contains("2 files\n\nclean"), "{}", said(&output));
    workshop.edit("requirements.txt", "torch==2.8.0", "torch==2.7.0");
    let (passed, text) = workshop.try_commit();
    assert!(!passed && text.contains("requirements.txt was changed since it was written"), "{text}");
}
