//! Pythons that builds have wheels for.

use super::{asking, build, conflict};

/// Which of the things that were asked for fails: Python, not CUDA.
#[test]
fn py_01_no_wheel_for_python() {
    let ask = |python: &'static str, variant: Option<&'static str>| {
        asking("T1000", "528.49", move |r| {
            r.stack.python = crate::resolve::python(python);
            r.stack.variant = variant.map(str::to_owned);
        })
    };
    for variant in ["cu118", "cu121", "cu124"] {
        let (conflict, changes) = conflict(&ask("3.14", Some(variant)));
        let explanation = &conflict.explanation;
        assert!(explanation.contains("Python 3.14 allows only torch cu126 (2.9.0 to 2.14.1)"), "{explanation}");
        assert!(changes.iter().any(|change| change.starts_with("python <=3.1")), "{changes:?}");
        assert!(changes.contains(&"variant = \"cu126\" -> torch 2.14.1, cu126".to_owned()), "{changes:?}");
    }
    assert_eq!(build(&ask("3.14", None)), "2.14.1+cu126");
    assert_eq!(build(&ask("3.12", Some("cu124"))), "2.6.0+cu124");
}
