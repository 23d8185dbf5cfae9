//! Exports: made from the lock alone, refused where the lock does not know enough.

mod dockerfile;
mod files;
mod inside;
mod jobs;
mod machines;
mod tools;
mod values;

use std::collections::BTreeMap;

use gpulock::diag::{Class, Failure};
use gpulock::lock::Lock;
use gpulock::render::{Beside, Format, render};

use crate::lock::SAMPLE;

fn lock() -> Lock {
    Lock::parse(SAMPLE, "gpulock.lock").unwrap()
}

/// Whether a line of a requirements file names torch by an address that is `url`, in signs that no reader takes apart.
pub fn names_torch(line: &str, url: &str) -> bool {
    let decoded = |text: &str| percent_encoding::percent_decode_str(text).collect::<Vec<u8>>();
    let hash = format!(" --hash=sha256:{}", "4".repeat(64));
    line.strip_prefix("torch @ ").and_then(|line| line.strip_suffix(&*hash)).is_some_and(|written| {
        // RFC 3986 has no others, and quotes, blanks and braces are what pip looks for.
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/?#[]@!$&()*+,;=%".contains(c);
        written.chars().all(plain) && decoded(written) == decoded(url)
    })
}

#[test]
fn addresses_are_written_as_a_url_has_them() {
    let url = "https://files.invalid/a'b\"c\\d e${HOME}f{g}\u{e9}%2B+~";
    let text = SAMPLE.replace("{ index = \"pypi\", sha256 = \"4", "{ index = \"torch-cu129\", sha256 = \"4");
    let mut lock = Lock::parse(&text, "gpulock.lock").unwrap();
    lock.indexes.insert("torch-cu129".into(), url.into());
    let expected = "https://files.invalid/a%27b%22c%5Cd%20e$%7BHOME%7Df%7Bg%7D%C3%A9%2B+~";
    let text = render(Format::Requirements, &lock, Some("cluster"), &Beside::default()).unwrap();
    assert!(text.contains(&format!("\n--extra-index-url {expected}\n")), "{text}");
    for wheel in lock.wheels.values_mut() {
        wheel.url = Some(url.into());
    }
    let text = render(Format::Requirements, &lock, Some("cluster"), &Beside::default()).unwrap();
    assert!(text.contains(&format!("\ntorch @ {expected} \\\n")), "{text}");
    let text = render(Format::Pylock, &lock, Some("cluster"), &Beside::default()).unwrap();
    let document: toml_edit::DocumentMut = text.parse().expect("TOML");
    let packages = document["packages"].as_array_of_tables().unwrap();
    assert_eq!(packages.get(1).unwrap()["wheels"][0]["url"].as_str(), Some(url));
    let text = render(Format::Uv, &lock, Some("cluster"), &Beside { project: "demo", ..Beside::default() }).unwrap();
    let document: toml_edit::DocumentMut = text.parse().expect("TOML");
    assert!(document.to_string().contains("tool.uv"), "{document}");
    // What templates see is the same.
    let beside = Beside { lock_name: "gpulock.lock", ..Beside::default() };
    for format in gpulock::render::FILES.iter().filter(|format| ["conda", "apptainer"].contains(&format.name)) {
        let mut lock = lock.clone();
        lock.targets[0].image = files::lock().targets[0].image.clone();
        let text = render(Format::File(format), &lock, Some("cluster"), &beside).unwrap().replace("\\$", "$");
        assert!(text.contains(&format!("torch @ {expected} --hash")), "{text}");
        lock.wheels.values_mut().for_each(|wheel| wheel.url = None);
        let text = render(Format::File(format), &lock, Some("cluster"), &beside).unwrap().replace("\\$", "$");
        assert!(text.contains(&format!("--extra-index-url {expected}")), "{text}");
    }
}

fn of(format: Format, target: Option<&str>) -> Result<String, Failure> {
    render(format, &lock(), target, &Beside { project: "demo", ..Beside::default() })
}

#[test]
fn requirements_have_hashes_and_reasons() {
    let text = of(Format::Requirements, Some("cluster")).unwrap();
    let expected = format!(
        "# Written by `gpulock export requirements`; change gpulock.toml and export again.\n\
         # Lock: {}\n\
         # Target: cluster (linux-x86_64, Python 3.11, torch 2.8.0, cu128)\n\
         filelock==3.20.0 \\\n    --hash=sha256:{}\n    # needed by torch\n\
         torch==2.8.0 \\\n    --hash=sha256:{}\n    # needed by gpulock.toml\n",
        lock().digest(),
        "3".repeat(64),
        "4".repeat(64),
    );
    assert_eq!(text, expected);
}

#[test]
fn other_indexes_are_added_and_the_default_is_left_to_pip() {
    let text = SAMPLE.replace("{ index = \"pypi\", sha256 = \"4", "{ index = \"torch-cu129\", sha256 = \"4");
    let lock = Lock::parse(&text, "gpulock.lock").unwrap();
    let text = render(Format::Requirements, &lock, Some("cluster"), &Beside::default()).unwrap();
    let options: Vec<&str> = text.lines().filter(|line| line.starts_with("--")).collect();
    assert_eq!(options, ["--extra-index-url https://torch.invalid/whl/cu129"]);
}

#[test]
fn pip_is_told_to_ask_an_index_without_tls() {
    let text = SAMPLE.replace("{ index = \"pypi\", sha256 = \"4", "{ index = \"torch-cu129\", sha256 = \"4");
    for (url, trusted) in [
        ("http://torch.invalid:8080/whl", Some("torch.invalid")),
        ("http://user@10.0.0.1/whl", Some("10.0.0.1")),
        ("http://[fd00::1]:80/whl", Some("[fd00::1]")),
        ("http://localhost:3141/whl", None),
        ("http://127.0.0.2/whl", None),
        ("http://[::1]:80/whl", None),
        ("https://torch.invalid/whl", None),
    ] {
        let mut lock = Lock::parse(&text, "gpulock.lock").unwrap();
        lock.indexes.insert("torch-cu129".into(), url.into());
        lock.targets[0].image = files::lock().targets[0].image.clone();
        let beside = Beside { lock_name: "gpulock.lock", ..Beside::default() };
        let of = |format| render(format, &lock, Some("cluster"), &beside).unwrap();
        let dockerfile = gpulock::render::dockerfile::render;
        let files = [
            of(Format::Requirements),
            of(Format::File(values::format("conda"))),
            of(Format::File(values::format("apptainer"))),
            dockerfile(&lock, &lock.targets[0], "gpulock.lock", Default::default()).unwrap(),
        ];
        for text in files {
            let told = text.lines().find_map(|line| line.split_once("--trusted-host "));
            let told = told.map(|(_, host)| host.trim_end_matches(['\'', '"', '\\', ' ']));
            assert_eq!(told, trusted, "{url}\n{text}");
        }
    }
}

#[test]
fn a_file_that_no_index_lists_is_named_by_its_address() {
    let text = SAMPLE.replace("size = 888000000,", "url = \"https://files.invalid/torch.whl\",");
    let lock = Lock::parse(&text, "gpulock.lock").unwrap();
    let text = render(Format::Requirements, &lock, Some("cluster"), &Beside::default()).unwrap();
    assert!(text.contains("\ntorch @ https://files.invalid/torch.whl \\\n    --hash=sha256:4"));
}

#[test]
fn what_needs_hashes_refuses_pending_artefacts() {
    for format in [Format::Requirements, Format::Pylock] {
        let refused = of(format, Some("edge")).unwrap_err();
        assert_eq!((refused.class, refused.diagnostics[0].code), (Class::No, "pending-artefact"));
        assert!(format!("{refused:?}").contains("pending: torch 2.13.0+cu129"));
    }
    assert!(of(Format::Constraints, Some("edge")).unwrap().ends_with("filelock==3.20.0\ntorch==2.13.0+cu129\n"));
    assert!(of(Format::Uv, Some("edge")).unwrap().contains("torch==2.13.0+cu129"));
}

#[test]
fn a_target_is_chosen() {
    let none = of(Format::Constraints, None).unwrap_err();
    assert_eq!(none.class, Class::Unanswerable);
    assert!(format!("{none:?}").contains("--target cluster | edge"));
    let near = of(Format::Constraints, Some("clutser")).unwrap_err();
    assert!(format!("{near:?}").contains("did you mean `cluster`?"));
}

#[test]
fn pylock_needs_addresses() {
    let refused = of(Format::Pylock, Some("cluster")).unwrap_err();
    assert_eq!((refused.class, refused.diagnostics[0].code), (Class::Unanswerable, "wheel-without-address"));
    let torch = "torch-2.8.0-cp311-cp311-manylinux_2_28_x86_64.whl";
    let beside = Beside {
        addresses: BTreeMap::from([(torch.to_owned(), "https://me:secret@files.invalid/a/torch.whl".to_owned())]),
        wheel_folder: Some("wheels"),
        ..Beside::default()
    };
    let text = render(Format::Pylock, &lock(), Some("cluster"), &beside).unwrap();
    assert!(!text.contains("secret"));
    let document: toml_edit::DocumentMut = text.parse().expect("TOML");
    assert_eq!(document["lock-version"].as_str(), Some("1.0"));
    assert_eq!(document["created-by"].as_str(), Some("gpulock"));
    assert_eq!(document["requires-python"].as_str(), Some("==3.11.*"));
    let packages = document["packages"].as_array_of_tables().unwrap();
    let wheel = |at: usize| &packages.get(at).unwrap()["wheels"][0];
    assert_eq!(wheel(0)["path"].as_str(), Some("wheels/filelock-3.20.0-py3-none-any.whl"));
    assert_eq!(wheel(1)["url"].as_str(), Some("https://files.invalid/a/torch.whl"));
    assert_eq!(wheel(1)["name"].as_str(), Some(torch));
    assert_eq!(wheel(1)["hashes"]["sha256"].as_str(), Some("4".repeat(64).as_str()));
}
