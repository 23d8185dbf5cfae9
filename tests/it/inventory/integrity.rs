//! Files against what was recorded.

use std::path::PathBuf;

use sha2::{Digest, Sha256};

use super::write;
use gpulock::inventory::Root;
use gpulock::inventory::integrity::{Expected, Verdict, verify};

#[test]
fn each_file_has_its_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::new(folder.path().canonicalize().unwrap());
    let large: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
    write(folder.path(), "large", &large);
    write(folder.path(), "other", "other");
    write(folder.path(), "grown", "grown!");
    std::fs::create_dir(folder.path().join("folder")).unwrap();
    let expect = |path: &str, size: Option<u64>, content: &[u8]| Expected {
        path: PathBuf::from(path),
        size,
        sha256: Sha256::digest(content).into(),
    };
    let files = [
        expect("/gone", None, b""),
        expect("/large", Some(3_000_000), &large),
        expect("/other", None, b"othEr"),
        expect("/grown", Some(5), b"grown"),
        expect("/folder", None, b""),
    ];
    for jobs in [Some(1), Some(3), None] {
        let verdicts = verify(&root, &files, jobs);
        assert_eq!(verdicts[..2], [Verdict::Missing, Verdict::Same]);
        assert_eq!(verdicts[2], Verdict::Content(Sha256::digest(b"other").into()));
        assert_eq!(verdicts[3], Verdict::Size(6));
        assert_eq!(verdicts[4], Verdict::Unreadable("it is a folder, not a regular file".into()));
    }
}
