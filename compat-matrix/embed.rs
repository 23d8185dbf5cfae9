//! Build script: embeds this directory in the program.
//!
//! Facts (TOML) go in twice: as MessagePack, which is what a run reads, and as they are, deflated, for `gpulock matrix
//! check` to point into. The snapshot goes in line by line, the long ones deflated (half of the whole), with an index: the
//! version of each line and its length in bytes, and once more as it is embedded where that is deflated.
//! Everything is a slice in the binary, so what a run does not read stays on disk.

use flate2::Compression;
use flate2::write::DeflateEncoder;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::{env, fs};

/// Bytes of a line of the snapshot from which on it is deflated. A resolve reads few of these.
const LONG: usize = 4096;

fn main() {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("compat-matrix");
    let out = env::var("OUT_DIR").expect("cargo sets it");
    println!("cargo::rerun-if-changed={}", root.display());

    let mut files = Vec::new();
    collect(&root, "", &mut files);
    files.sort();

    let mut list = format!("pub static EMBEDDED: [Embedded; {}] = [\n", files.len());
    for (i, path) in files.iter().enumerate() {
        let full = root.join(path);
        let full_text = full.display().to_string();
        let text = fs::read_to_string(&full).unwrap_or_else(|error| panic!("{full_text}: {error}"));
        let embed = |kind: &str, bytes: &[u8]| {
            let file = format!("{out}/{i}.{kind}");
            fs::write(&file, bytes).expect("the output folder can be written");
            format!("include_bytes!({file:?})")
        };
        let (text, packed, lines) = if path.ends_with(".toml") {
            let value: serde_json::Value =
                toml_edit::de::from_str(&text).unwrap_or_else(|error| panic!("{full_text}: {error}"));
            let packed = rmp_serde::to_vec(&value).expect("TOML has nothing that MessagePack lacks");
            (embed("deflated", &deflated(&text)), embed("msgpack", &packed), String::new())
        } else {
            let (bytes, lines) = index(&text).unwrap_or_else(|| panic!("{full_text}: a line without version"));
            (embed("lines", &bytes), String::from("&[]"), lines)
        };
        writeln!(list, "Embedded::new({path:?}, {text}, {packed}, {lines:?}),").expect("a string takes everything");
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

/// The lines as they are embedded, and what there is of each: its version, its length with its end, and where it is
/// deflated, the length of that.
fn index(text: &str) -> Option<(Vec<u8>, String)> {
    let (mut bytes, mut lines) = (Vec::new(), String::new());
    for line in text.split_inclusive('\n') {
        let (version, _) = line.strip_prefix(r#"{"version":""#)?.split_once('"')?;
        write!(lines, "{version} {}", line.len()).expect("a string takes everything");
        if line.len() < LONG {
            bytes.extend(line.as_bytes());
        } else {
            let deflated = deflated(line);
            write!(lines, " {}", deflated.len()).expect("a string takes everything");
            bytes.extend(deflated);
        }
        lines.push('\n');
    }
    Some((bytes, lines))
}

fn deflated(text: &str) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes()).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
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
