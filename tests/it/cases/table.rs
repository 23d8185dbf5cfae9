//! The table of all cases: each is there once, and each test that it names exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use toml_edit::DocumentMut;

const TABLE: &str = include_str!("table.toml");
/// How many cases there are in each family.
const FAMILIES: [(&str, usize); 14] = [
    ("ABI", 6),
    ("ARCH", 7),
    ("CPU", 3),
    ("CTR", 6),
    ("DNN", 5),
    ("DRV", 4),
    ("EXEC", 1),
    ("GLIBC", 2),
    ("HOST", 2),
    ("LD", 4),
    ("MUSL", 1),
    ("NCCL", 2),
    ("PY", 1),
    ("VIS", 1),
];

/// The cases of one part of the table with what stands beside them.
fn part(name: &str) -> Vec<(String, String)> {
    let table: DocumentMut = TABLE.parse().unwrap();
    let part = table[name].as_table().unwrap();
    part.iter().map(|(id, value)| (id.to_owned(), value.as_str().unwrap().to_owned())).collect()
}

fn test_of(id: &str) -> String {
    id.to_lowercase().replace(['-', '.'], "_")
}

#[test]
fn each_case_is_there_once() {
    let cases: Vec<(String, String)> = part("covered").into_iter().chain(part("not-covered")).collect();
    let ids: BTreeSet<&str> = cases.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!((cases.len(), ids.len()), (45, 45));
    for (family, count) in FAMILIES {
        let of_family = ids.iter().filter(|id| id.split('-').next() == Some(family)).count();
        assert_eq!(of_family, count, "{family}");
    }
    assert!(cases.iter().all(|(_, beside)| !beside.is_empty()));
}

#[test]
fn each_test_is_named_like_its_case() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/cases");
    let mut tests = BTreeSet::new();
    for (id, file) in part("covered") {
        let text = fs::read_to_string(folder.join(format!("{file}.rs"))).unwrap();
        let test = test_of(&id);
        assert!(text.contains(&format!("#[test]\nfn {test}() {{")), "{file}.rs has no test {test}");
        assert!(tests.insert(test), "{id} twice");
    }
    for (id, _) in part("not-covered") {
        assert!(!tests.contains(&test_of(&id)), "{id} has a test");
    }
}
