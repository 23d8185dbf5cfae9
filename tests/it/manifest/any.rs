//! Whatever a text holds, it is read or refused: nothing panics, and what is accepted can be written and read again.

use gpulock::diag::SourceText;
use gpulock::manifest::init::{Machines, Source, SystemPythons, propose};
use gpulock::manifest::pyproject::{UvPins, pin};
use gpulock::manifest::{parse, parse_pyproject, render};
use gpulock::report::human::{Style, failure};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Pieces of manifests, Dockerfiles and requirements, and what breaks parsers.
fn pieces() -> impl Strategy<Value = String> {
    let pieces = vec![
        "[stack]\n",
        "[target.a]\n",
        "[[index]]\n",
        "[packages]\n",
        "[checks]\n",
        "[env]\n",
        "[project]\n",
        "[tool.uv]\n",
        "[tool.gpulock.stack]\n",
        "torch = ",
        "'>=2.7,<2.9'",
        "gpus = ",
        "['A100']",
        "driver = ",
        "'570'",
        "cuda = ",
        "12.8",
        "name = 'x'",
        "url = 'https://a:b@c'",
        "dependencies = [",
        "'torch>=2', # c\n",
        "]",
        "{",
        "}",
        "\n",
        "\r\n",
        " ",
        "\t",
        "\\\n",
        "FROM nvidia/cuda:12.1.1-devel-ubuntu22.04",
        "FROM ",
        "RUN pip install ",
        "ENV ",
        "ARG ",
        "A=1",
        "${A:-",
        "$A",
        "\"",
        "'",
        "<<EOF\n",
        "EOF\n",
        "&&",
        ";",
        "#",
        "torch==2.3.0+cu121",
        "--extra-index-url ",
        "-r ",
        "é",
        "🦀",
        "\u{feff}",
        "\0",
        "=",
        "<<<<<<< a\n",
    ];
    prop_oneof![vec(select(pieces), 0..20).prop_map(|pieces| pieces.concat()), any::<String>()]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn manifests(text in pieces()) {
        match parse(&text, "gpulock.toml") {
            Ok(manifest) => {
                let written = render(&manifest);
                let again = parse(&written, "gpulock.toml")
                    .map_err(|refused| TestCaseError::fail(format!("{refused}\n{written}")))?;
                prop_assert_eq!(again.normalised(), manifest.normalised());
            }
            Err(refused) => {
                prop_assert!(!refused.diagnostics.is_empty());
                let _ = failure(&refused, Style { color: true, facts: true });
            }
        }
        let _ = parse_pyproject(&text, "pyproject.toml");
    }

    #[test]
    fn projects(text in pieces()) {
        let source = SourceText::new("x", &text);
        for source in [Source::Dockerfile(source), Source::Requirements(source), Source::Pyproject(source)] {
            if let Ok(proposal) = propose(&[source], &Machines { gpus: vec!["A100".into()], ..Machines::default() }, &SystemPythons::new()) {
                let written = render(&proposal.manifest);
                parse(&written, "gpulock.toml").map_err(|refused| TestCaseError::fail(format!("{refused}\n{written}")))?;
            }
        }
    }

    #[test]
    fn edits(text in pieces()) {
        let pins = UvPins {
            dependencies: [("torch".parse().unwrap(), "torch".into())].into(),
            constraints: [("torch".parse().unwrap(), "2.8.0".parse().unwrap())].into(),
            sources: [("torch".parse().unwrap(), Some("x".into()))].into(),
            indexes: [("x".into(), "https://x.invalid".into())].into(),
            environment: "sys_platform == 'linux'".into(),
            requires_python: "==3.11.*".into(),
        };
        if let Ok(once) = pin(&text, "pyproject.toml", "x", &pins) {
            let twice = pin(&once, "pyproject.toml", "x", &pins)
                .map_err(|refused| TestCaseError::fail(format!("{refused}\n{once}")))?;
            prop_assert_eq!(once, twice);
        }
    }
}
