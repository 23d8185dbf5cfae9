//! JSON as programs see it: the frozen fields of version 1.

pub mod findings;

use gpulock::diag::{Diagnostic, Evidence, Failure};
use gpulock::lock::Lock;
use gpulock::report::json;
use gpulock::resolve::{Conflict, Fact, Gives, Repair};
use serde_json::{Value, json};

fn read(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn the_lock_has_its_frozen_fields() {
    let lock = read(&json::lock(&Lock::parse(crate::lock::SAMPLE, "gpulock.lock").unwrap()));
    assert_eq!(lock["schema"], "gpulock.lock/1");
    let target = &lock["targets"][0];
    assert_eq!(target["name"], "cluster");
    assert_eq!(target["platform"], "linux-x86_64");
    assert_eq!(target["gpus"], json!([{ "name": "RTX 5090", "sm": "sm_120", "code": "sass", "from": "sm_120" }]));
    let driver = json!({ "given": "570.124.06", "floor": "525.60.13", "native": "570.26", "tier": "native" });
    assert_eq!(target["driver"], driver);
    let stack = json!({
        "python": "3.11", "torch": "2.8.0", "variant": "cu128", "cuda": "12.8", "cudnn": "9.10.2.21", "nccl": "2.27.3",
    });
    assert_eq!(target["stack"], stack);
    let torch = &target["packages"][1];
    assert_eq!(torch["name"], "torch");
    assert_eq!(torch["index"], "pypi");
    assert_eq!(torch["file"], "torch-2.8.0-cp311-cp311-manylinux_2_28_x86_64.whl");
    assert_eq!((&torch["size"], &torch["pending"]), (&json!(888_000_000), &json!(false)));
    assert_eq!(torch["libraries"][0]["path"], "torch/lib/libc10.so");
    let pending = &lock["targets"][1]["packages"][1];
    assert_eq!((&pending["pending"], &pending["index"]), (&json!(true), &json!("torch-cu129")));
    assert!(pending.get("sha256").is_none());
}

#[test]
fn a_conflict_has_its_frozen_fields() {
    let gives = |torch: &str, variant: &str| Gives { torch: torch.into(), variant: Some(variant.into()), cuda: None };
    let mut conflict = Conflict {
        target: "cluster".into(),
        explanation: "because".into(),
        facts: vec![Fact { claim: "claim".into(), source: "source".into() }],
        repairs: vec![Repair {
            change: "driver >= 525.60.13".into(),
            gives: gives("2.8.0", "cu128"),
            at_bound: Some(("525.60.13".parse().unwrap(), gives("2.7.1", "cu126"))),
        }],
        warnings: Vec::new(),
    };
    let bounded = read(&json::conflicts(std::slice::from_ref(&conflict)));
    let at_bound = json!({ "driver": "525.60.13", "torch": "2.7.1", "variant": "cu126" });
    assert_eq!(bounded["repairs"][0]["at-bound"], at_bound);
    conflict.repairs[0].at_bound = None;
    let expected = json!({
        "schema": "gpulock.conflict/1", "target": "cluster", "explanation": "because",
        "facts": [{ "claim": "claim", "source": "source" }],
        "repairs": [{ "change": "driver >= 525.60.13", "gives": { "torch": "2.8.0", "variant": "cu128" } }],
    });
    assert_eq!(read(&json::conflicts(&[conflict])), expected);
}

#[test]
fn errors_are_data_too() {
    let problem = Diagnostic::error("x-y", "message", Evidence::observed("index", "404")).fix("do");
    let expected = json!({
        "schema": "gpulock.error/1",
        "errors": [{ "code": "x-y", "severity": "error", "message": "message", "fix": "do",
            "evidence": [{ "kind": "observed", "path": "index", "fact": "404" }] }],
    });
    assert_eq!(read(&json::failure(&Failure::no(problem))), expected);
}
