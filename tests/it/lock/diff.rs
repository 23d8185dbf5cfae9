//! What moved between two locks.

use gpulock::lock::{Floor, Lock, LockDiff, Moved, Presence};
use gpulock::report::diff;

use super::SAMPLE;

fn between(edit: impl Fn(&str) -> String) -> LockDiff {
    let new = edit(SAMPLE);
    assert_ne!(new, SAMPLE);
    LockDiff::new(&Lock::parse(SAMPLE, "old.lock").unwrap(), &Lock::parse(&new, "new.lock").unwrap())
}

fn moved(what: &str, was: Option<&str>, is: Option<&str>) -> Moved {
    Moved { what: what.into(), was: was.map(str::to_owned), is: is.map(str::to_owned) }
}

#[test]
fn equal_locks_do_not_differ() {
    let lock = Lock::parse(SAMPLE, "gpulock.lock").unwrap();
    let none = LockDiff::new(&lock, &lock);
    assert!(none.is_empty());
    assert_eq!(diff::human(&none), "no difference in what is installed\n");
    // Another manifest or matrix that gives the same is none.
    assert!(between(|text| text.replace("sha256:2222", "sha256:2223")).is_empty());
}

#[test]
fn the_driver_floor_rises_and_falls() {
    let higher = between(|text| text.replace("floor = \"525.60.13\"", "floor = \"580.65.06\""));
    let floor = higher.targets[0].driver.as_ref().unwrap();
    assert_eq!((higher.targets.len(), floor.rises()), (1, Some(true)));
    assert!(diff::human(&higher).contains("driver floor 525.60.13 -> 580.65.06: machines with an older one drop out"));
    let lower = between(|text| text.replace("floor = \"525.60.13\"", "floor = \"450.80.02\""));
    assert!(diff::human(&lower).contains("driver floor 525.60.13 -> 450.80.02: older ones will do"));
    let unknown = between(|text| text.replace("floor = \"525.60.13\", ", ""));
    assert_eq!(unknown.targets[0].driver, Some(Floor { was: "525.60.13".parse().ok(), is: None }));
    assert!(diff::human(&unknown).contains("driver floor 525.60.13 -> unknown\n"));
}

#[test]
fn gpus_come_go_and_are_served_by_other_code() {
    let ptx =
        between(|text| text.replace("code = \"sass\", from = \"sm_120\"", "code = \"ptx\", from = \"compute_90\""));
    let (was, is) = ("sm_120 runs sm_120 code", "sm_120 runs compute_90, compiled by the driver");
    assert_eq!(ptx.targets[0].gpus, [moved("RTX 5090", Some(was), Some(is))]);
    let other = between(|text| text.replace("RTX 5090", "RTX 5080"));
    assert_eq!(other.targets[0].gpus, [moved("RTX 5080", None, Some(was)), moved("RTX 5090", Some(was), None)]);
}

#[test]
fn packages_move_by_version_or_by_file() {
    let version = between(|text| text.replace("3.20.0", "3.21.0"));
    assert_eq!(version.targets[0].packages, [moved("filelock", Some("3.20.0"), Some("3.21.0"))]);
    let file = between(|text| text.replace(&"4".repeat(64), &"5".repeat(64)));
    let [package] = &file.targets[0].packages[..] else { panic!("{file:?}") };
    assert!(package.what == "torch" && package.is.as_ref().unwrap().contains("sha256:5555"), "{package:?}");
    let nccl = between(|text| text.replace("nccl = \"2.27.3\"\n", ""));
    assert_eq!(nccl.targets[0].facts, [moved("NCCL", Some("2.27.3"), None)]);
}

#[test]
fn targets_come_and_go() {
    let old = Lock::parse(SAMPLE, "old.lock").unwrap();
    let mut new = old.clone();
    new.targets.remove(0);
    let gone = LockDiff::new(&old, &new);
    assert_eq!((gone.targets.len(), gone.targets[0].presence), (1, Presence::Removed));
    assert!(diff::human(&gone).starts_with("target cluster is gone\n"));
    let back = LockDiff::new(&new, &old);
    assert_eq!((back.targets.len(), back.targets[0].presence), (1, Presence::Added));
    assert!(diff::markdown(&back).starts_with("### target cluster is new\n"));
    assert!(diff::human(&back).contains("    torch added: 2.8.0\n"));
}

#[test]
fn a_pull_request_has_a_table() {
    let old = Lock::parse(SAMPLE, "old.lock").unwrap();
    let new = SAMPLE.replace("floor = \"525.60.13\"", "floor = \"580.65.06\"");
    let mut new = Lock::parse(&new.replace("cudnn = \"9.10.2.21\"", "cudnn = \"9.11.0\""), "new.lock").unwrap();
    new.indexes.insert("pypi".into(), "https://py|pi.invalid/simple".into());
    let text = LockDiff::new(&old, &new);
    assert_eq!(
        diff::markdown(&text),
        "### target cluster\n\n**driver floor 525.60.13 -\\> 580.65.06: machines with an older one drop out**\n\n\
         | stack | was | is |\n|---|---|---|\n| cuDNN | `9.10.2.21` | `9.11.0` |\n\n\
         - index `pypi` https://pypi.invalid/simple -\\> https://py\\|pi.invalid/simple\n"
    );
}
