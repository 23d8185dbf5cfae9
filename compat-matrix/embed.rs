//! Build script: embeds this directory in the program.
//!
//! Facts (TOML) go in twice: as MessagePack, which is what a run reads, and as they are, for `gpulock matrix check` to
//! point into. The snapshot goes in as it is, with an index of its lines: the version of each and its length in bytes.
//! Everything is a slice in the binary, so what a run does not read stays on disk.

use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("compat-matrix");
    let out = env::var("OUT_DIR").expect("cargo sets it");
    println!("cargo::rerun-if-changed={}", root.display());

    let mut files = Vec::new();
    collect(&root, "", &mut files);
    files.sort();

    let mut list = String::from("pub static EMBEDDED: &[Embedded] = &[\n");
    for (i, path) in files.iter().enumerate() {
        let full = root.join(path);
        let full_text = full.display().to_string();
        let text = fs::read_to_string(&full).unwrap_or_else(|error| panic!("{full_text}: {error}"));
        let (packed, lines) = if path.ends_with(".toml") {
            let value: serde_json::Value =
                toml_edit::de::from_str(&text).unwrap_or_else(|error| panic!("{full_text}: {error}"));
            let packed_file = format!("{out}/{i}.msgpack");
            let packed = rmp_serde::to_vec(&value).expect("TOML has nothing that MessagePack lacks");
            fs::write(&packed_file, packed).expect("the output folder can be written");
            (format!("include_bytes!({packed_file:?})"), String::new())
        } else {
            (String::from("&[]"), index(&text).unwrap_or_else(|| panic!("{full_text}: a line without version")))
        };
        writeln!(
            list,
            "Embedded {{ path: {path:?}, text: include_str!({full_text:?}), packed: {packed}, lines: {lines:?} }},"
        )
        .expect("a string takes everything");
    }
    list.push_str("];\n");
    // What a lock names its facts by; taken here, since a run reads only some of them.
    let mut hash = Sha256::new();
    for path in &files {
        let text = fs::read(root.join(path)).expect("read before");
        hash.update(path);
        hash.update([0]);
        hash.update(text.len().to_le_bytes());
        hash.update(text);
    }
    let hex = hash.finalize().iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
    writeln!(list, "pub static DIGEST: &str = \"sha256:{hex}\";").expect("a string takes everything");
    fs::write(format!("{out}/embedded.rs"), list).expect("the output folder can be written");
}

/// The version of each line and the length of that line, with its end.
fn index(text: &str) -> Option<String> {
    let entry = |line: &str| {
        let (version, _) = line.strip_prefix(r#"{"version":""#)?.split_once('"')?;
        Some(format!("{version} {}\n", line.len()))
    };
    text.split_inclusive('\n').map(entry).collect()
}

fn collect(root: &Path, below: &str, files: &mut Vec<String>) {
    let folder = root.join(below);
    for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let entry = entry.expect("a readable folder");
        let name = entry.file_name().into_string().expect("names in UTF-8");
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        if entry.file_type().expect("a readable entry").is_dir() {
            collect(root, &path, files);
        } else if name.ends_with(".toml") || name.ends_with(".jsonl") {
            files.push(path);
        }
    }
}
