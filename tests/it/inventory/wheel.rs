//! Wheels as subjects.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::{library, names, read};
use gpulock::inventory::{Inventory, Options, SubjectKind};

const METADATA: (&str, &[u8]) = ("x-1.0.dist-info/METADATA", b"Metadata-Version: 2.1\nName: x\nVersion: 1.0\n");

fn wheel(folder: &Path, members: &[(&str, &[u8])]) -> PathBuf {
    let path = folder.join("x-1.0-py3-none-any.whl");
    let mut zip = ZipWriter::new(std::fs::File::create(&path).unwrap());
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, content) in members {
        let mode = if name.ends_with("tool") { 0o755 } else { 0o644 };
        zip.start_file(*name, options.unix_permissions(mode)).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap();
    path
}

fn refused(path: &Path) -> String {
    let failure = Inventory::read(path, &Options::default()).unwrap_err();
    failure.diagnostics[0].message.clone()
}

#[test]
fn its_libraries_lie_as_pip_would_install_them() {
    let folder = tempfile::tempdir().unwrap();
    let bytes: Vec<Vec<u8>> = ["a", "b", "c", "t"].iter().map(|mark| library(mark)).collect();
    let record = "x/liba.so,,\nx/tool,,\nx/b.so,,\n../../libc.so,,\n";
    let path = wheel(
        folder.path(),
        &[
            ("x/", b""),
            ("x/liba.so", &bytes[0]),
            ("x/big.txt", &[b'x'; 1000]),
            ("x/tool", &bytes[3]),
            ("x-1.0.data/platlib/x/b.so", &bytes[1]),
            ("x-1.0.data/data/lib/libc.so", &bytes[2]),
            METADATA,
            ("x-1.0.dist-info/RECORD", record.as_bytes()),
        ],
    );
    let inventory = read(&path);
    assert_eq!(inventory.subject.kind, SubjectKind::Wheel);
    assert_eq!(names(&inventory), ["lib/libc.so", "x/b.so", "x/liba.so", "x/tool"]);
    assert!(inventory.libraries().iter().all(|library| library.package == Some(0)));
    assert_eq!((inventory.packages[0].name.as_str(), inventory.packages[0].version.as_str()), ("x", "1.0"));
    let unpacked = inventory.subject.path.clone();
    assert!(unpacked.exists() && !unpacked.join("lib/python3/site-packages/x/big.txt").exists());
    drop(inventory);
    assert!(!unpacked.exists(), "it vanishes");
}

#[test]
fn no_member_leads_out() {
    let folder = tempfile::tempdir().unwrap();
    let outside = folder.path().join("outside.so");
    let absolute = |kind: &str| format!("x-1.data/{kind}/{}", outside.display());
    let names = ["../x.so", "x/../../y.so", "/etc/x.so", "x\\..\\y.so", "x-1.data/data/../../../z.so"];
    let absolute = ["data", "purelib", "platlib", "scripts"].map(absolute);
    for name in names.into_iter().chain(absolute.iter().map(String::as_str)) {
        let path = wheel(folder.path(), &[METADATA, (name, b"x")]);
        assert!(refused(&path).contains("leads out of it"), "{name}: {}", refused(&path));
        assert!(!outside.exists(), "{name}");
    }
}

#[test]
fn damaged_wheels_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.whl");
    for content in [&b""[..], b"text", b"PK\x05\x06"] {
        std::fs::write(&path, content).unwrap();
        assert!(refused(&path).contains("it is no sound zip archive"), "{}", refused(&path));
    }
    assert!(refused(&wheel(folder.path(), &[("x/a.so", b"x")])).ends_with("it has no .dist-info/METADATA"));
    let twice = wheel(folder.path(), &[METADATA, ("x/a.so", b"x"), ("x-1.0.data/purelib/x/a.so", b"y")]);
    assert!(refused(&twice).contains("two members"), "{}", refused(&twice));
    let below = wheel(folder.path(), &[METADATA, ("x/a.so", b"x"), ("x/a.so/b.so", b"y")]);
    assert!(refused(&below).contains("two members"), "{}", refused(&below));
    let long = wheel(folder.path(), &[METADATA, (&format!("x/{}.so", "a".repeat(300)), b"x")]);
    assert!(refused(&long).contains("no file can have the name"), "{}", refused(&long));
    let whole = std::fs::read(wheel(folder.path(), &[METADATA, ("x/a.so", b"some content to be damaged")])).unwrap();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0xff;
        std::fs::write(&path, &damaged).unwrap();
        // An answer, whichever.
        let _ = Inventory::read(&path, &Options::default());
        std::fs::write(&path, &whole[..at]).unwrap();
        refused(&path);
    }
}

/// 1 GiB of zeros in a megabyte.
#[test]
fn bombs_are_not_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let path = wheel(folder.path(), &[METADATA, ("x/bomb.so", &[7; 5000])]);
    let mut bytes = std::fs::read(&path).unwrap();
    let claimed = (1_u32 << 30).to_le_bytes();
    let places: Vec<usize> =
        bytes.windows(4).enumerate().filter(|(_, w)| *w == 5000_u32.to_le_bytes()).map(|(at, _)| at).collect();
    // The unpacked size, in the directory at the end: the last of the four places.
    let at = *places.last().unwrap();
    bytes[at..at + 4].copy_from_slice(&claimed);
    std::fs::write(&path, bytes).unwrap();
    assert!(refused(&path).contains("claim to hold"), "{}", refused(&path));
}

#[test]
fn hundreds_of_thousands_of_members_are_not_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..100_001).map(|i| format!("{i}.so")).collect();
    let members: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b""[..])).chain([METADATA]).collect();
    let path = wheel(folder.path(), &members);
    assert!(refused(&path).contains("more than 100000"), "{}", refused(&path));
}
