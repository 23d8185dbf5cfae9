//! METADATA and RECORD: beside the wheel, by range requests, after a whole download.

use gpulock::python::Catalog;
use gpulock::registry::{OVERLAP, Search};

use super::server::{Reply, Seen, Server, html, ranged, reply};
use super::wheels::{Made, hex, noise, recipe};
use super::{client, only_wheel};

/// How a server hands wheels out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Files {
    Ranges,
    /// Ranges, but not from the end.
    NoSuffix,
    Whole,
}

/// An index with one wheel of package `x`. `anchor` are further attributes.
pub fn index(made: &Made, files: Files, anchor: &str) -> Server {
    let (made, anchor) = (made.clone(), anchor.to_owned());
    Server::start(move |seen| answer(seen, &made, files, &anchor))
}

fn answer(seen: &Seen, made: &Made, files: Files, anchor: &str) -> Reply {
    if seen.path.ends_with('/') {
        return html(format!("<a href=\"{}#sha256={}\" {anchor}>x</a>", made.file, made.sha256));
    }
    if seen.path.ends_with(".metadata") {
        return reply(200, "application/octet-stream", made.metadata.clone());
    }
    let suffix = seen.headers.get("range").is_some_and(|range| range.starts_with("bytes=-"));
    match files {
        Files::Ranges => ranged(seen, &made.bytes),
        Files::NoSuffix if !suffix => ranged(seen, &made.bytes),
        Files::NoSuffix => reply(200, "application/zip", made.bytes.clone()).header("Accept-Ranges", "bytes"),
        Files::Whole => reply(200, "application/zip", made.bytes.clone()),
    }
}

fn large() -> Made {
    recipe("x", "1.0").file("x/lib/data.bin", noise(6 << 20)).file("x/lib/liby.so", noise(100)).make()
}

fn facts(server: &Server, cache: &std::path::Path) -> (usize, Vec<String>) {
    let client = client(&server.url, cache);
    let wheel = only_wheel(&client, "x");
    let metadata = client.metadata(&wheel).unwrap();
    assert_eq!(metadata.requires_python.as_ref().unwrap().to_string(), ">=3.9");
    assert_eq!(metadata.extras.len(), 1);
    let libraries = client.libraries(&wheel).unwrap();
    assert_eq!(libraries[0].sha256, hex(b"\x7fELF library"));
    assert_eq!(libraries[0].size, 12);
    (metadata.requires.len(), libraries.into_iter().map(|library| library.path).collect())
}

#[test]
fn by_range_requests() {
    let server = index(&large(), Files::Ranges, "");
    let folder = tempfile::tempdir().unwrap();
    let (requires, libraries) = facts(&server, folder.path());
    assert_eq!((requires, libraries), (2, vec!["x/lib/libx.so.1".into(), "x/lib/liby.so".into()]));
    assert_eq!(server.count(".whl"), 1, "the tail has both");
    // Another process knows it all already.
    facts(&server, folder.path());
    assert_eq!(server.seen().len(), 2);
}

#[test]
fn zip64_and_a_directory_beyond_the_tail() {
    let many = (0..6000).fold(recipe("x", "1.0"), |made, i| made.file(&format!("x/a/long/folder/name/{i}.py"), ""));
    let made = super::wheels::Recipe { zip64: true, ..many }.file("x/b.bin", noise(1 << 20)).make();
    let server = index(&made, Files::Ranges, "");
    let folder = tempfile::tempdir().unwrap();
    facts(&server, folder.path());
    assert!((2..=4).contains(&server.count(".whl")), "{}", server.count(".whl"));
}

#[test]
fn members_far_from_the_end() {
    // The .dist-info first, as some tools write it: RECORD here is what it says, not what is in the archive.
    let info = recipe("x", "1.0");
    let metadata = info.metadata.clone();
    let hash = "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU";
    let first = super::wheels::Recipe { files: vec![], record: Some(format!("a.so,{hash},7\n")), ..info };
    let made = first.make_info_first(noise(8 << 20));
    let server = index(&made, Files::Ranges, "");
    let folder = tempfile::tempdir().unwrap();
    let client = client(&server.url, folder.path());
    let wheel = only_wheel(&client, "x");
    assert_eq!(client.metadata(&wheel).unwrap().requires.len(), 2, "{metadata}");
    assert_eq!(client.libraries(&wheel).unwrap()[0].size, 7);
    assert_eq!(server.count(".whl"), 2);
    assert!(client.traffic().bytes < 512 << 10);
}

#[test]
fn beside_the_wheel() {
    let made = large();
    let server =
        index(&made, Files::Ranges, &format!("data-core-metadata=\"sha256={}\"", hex(made.metadata.as_bytes())));
    let folder = tempfile::tempdir().unwrap();
    facts(&server, folder.path());
    assert_eq!(server.count(".metadata"), 1);
    assert_eq!(server.count(".whl"), 1, "for RECORD");
}

#[test]
fn beside_the_wheel_but_not_there() {
    let made = recipe("x", "1.0").make();
    let server = Server::start(move |seen| {
        if seen.path.ends_with(".metadata") {
            return reply(404, "", "");
        }
        answer(seen, &made, Files::Ranges, "data-dist-info-metadata=true")
    });
    let folder = tempfile::tempdir().unwrap();
    facts(&server, folder.path());
}

#[test]
fn ranges_but_not_from_the_end() {
    let server = index(&large(), Files::NoSuffix, "");
    let folder = tempfile::tempdir().unwrap();
    facts(&server, folder.path());
    assert_eq!(server.count(".whl"), 2);
}

#[test]
fn a_server_without_ranges() {
    let server = index(&large(), Files::Whole, "");
    let folder = tempfile::tempdir().unwrap();
    facts(&server, folder.path());
    assert_eq!(server.count(".whl"), 2, "the first answer shows that there are no ranges, the second is the file");
    let small = index(&recipe("x", "1.0").make(), Files::Whole, "");
    facts(&small, tempfile::tempdir().unwrap().path());
    assert_eq!(small.count(".whl"), 1);
}

#[test]
fn a_whole_file_is_checked() {
    for made in [large(), recipe("x", "1.0").make()] {
        for files in [Files::Whole, Files::Ranges] {
            let wrong = Made { sha256: "0".repeat(64), ..made.clone() };
            let server = index(&wrong, files, "");
            let folder = tempfile::tempdir().unwrap();
            let client = client(&server.url, folder.path());
            let answer = client.metadata(&only_wheel(&client, "x"));
            if files == Files::Ranges && made.bytes.len() > 1 << 20 {
                // Only parts were seen, which proves nothing.
                answer.unwrap();
                continue;
            }
            let failure = answer.unwrap_err();
            assert_eq!(failure.diagnostics[0].code, "hash-mismatch");
            assert!(failure.diagnostics[0].message.contains("test"));
        }
    }
}

#[test]
fn metadata_beside_the_wheel_is_checked() {
    let server = index(&large(), Files::Ranges, &format!("data-core-metadata=\"sha256={}\"", "1".repeat(64)));
    let folder = tempfile::tempdir().unwrap();
    let client = client(&server.url, folder.path());
    let failure = client.metadata(&only_wheel(&client, "x")).unwrap_err();
    assert_eq!(failure.diagnostics[0].code, "hash-mismatch");
}

#[test]
fn metadata_that_disagrees() {
    for (from, to) in [("Name: x", "Name: y"), ("Version: 1.0", "Version: 1.0+cu126"), ("Version: 1.0", "Version: 1.1")]
    {
        let mut recipe = recipe("x", "1.0");
        recipe.metadata = recipe.metadata.replace(from, to);
        let made = recipe.make();
        for anchor in ["", "data-core-metadata=true"] {
            let server = index(&made, Files::Ranges, anchor);
            let folder = tempfile::tempdir().unwrap();
            let client = client(&server.url, folder.path());
            let failure = client.metadata(&only_wheel(&client, "x")).unwrap_err();
            assert_eq!(failure.diagnostics[0].code, "metadata-mismatch");
            assert!(failure.to_string().contains(to.split(' ').next_back().unwrap()), "{failure}");
        }
    }
}

#[test]
fn not_a_wheel() {
    let junk = Made {
        file: "x-1.0-py3-none-any.whl".into(),
        bytes: noise(5 << 20),
        sha256: "0".into(),
        metadata: String::new(),
    };
    let short = Made { bytes: noise(100), ..junk.clone() };
    let empty = Made { bytes: vec![], ..junk.clone() };
    let mut broken = large();
    let half = broken.bytes.len() / 2;
    broken.bytes.drain(half..half + 1000);
    let record = recipe("x", "1.0");
    let bad_record = super::wheels::Recipe { record: Some("x.so,md5=1,1\n".into()), ..record }.make();
    for made in [junk, short, empty, broken, bad_record] {
        let made = Made { sha256: "0".into(), ..made };
        for files in [Files::Ranges, Files::Whole] {
            let server = index(&made, files, "");
            let folder = tempfile::tempdir().unwrap();
            let client = client(&server.url, folder.path());
            let failure = client.libraries(&only_wheel(&client, "x")).unwrap_err();
            assert!(["wheel-unreadable", "index-bad-answer"].contains(&failure.diagnostics[0].code), "{failure:?}");
            assert!(server.count(".whl") <= 18, "{}", server.count(".whl"));
        }
    }
}

#[test]
fn a_member_that_is_too_large_is_refused() {
    // 20 MB of zeros pack into 20 kB.
    let mut bomb = recipe("x", "1.0");
    bomb.metadata += &"\0".repeat(20 << 20);
    let server = index(&bomb.make(), Files::Ranges, "");
    let folder = tempfile::tempdir().unwrap();
    let client = client(&server.url, folder.path());
    let failure = client.metadata(&only_wheel(&client, "x")).unwrap_err();
    assert!(failure.to_string().contains("larger than"), "{failure}");
}

#[test]
fn search_stops_when_it_has_found() {
    let mut data = noise(12 << 20);
    data[300_000..300_006].copy_from_slice(b"needle");
    // Across the border between two parts.
    let border = OVERLAP + (256 << 10) - 3;
    data[border..border + 6].copy_from_slice(b"border");
    let made = recipe("x", "1.0").file("x/lib/big.so", data).make();
    let size = made.bytes.len() as u64;
    let server = index(&made, Files::Ranges, "");
    let folder = tempfile::tempdir().unwrap();
    let client = client(&server.url, folder.path());
    let wheel = only_wheel(&client, "x");
    let search = |member: &str, pattern: &[u8]| {
        let before = client.traffic().bytes;
        let found = client
            .search_member(&wheel, member, &mut |part| part.windows(pattern.len()).any(|window| window == pattern));
        (found.unwrap(), client.traffic().bytes - before)
    };
    let (found, bytes) = search("lib/big.so", b"needle");
    assert_eq!(found, Search::Found);
    assert!(bytes < 2 << 20, "{bytes}");
    assert_eq!(search("x/lib/big.so", b"border").0, Search::Found);
    let (found, bytes) = search("big.so", b"not in there");
    assert_eq!(found, Search::NotFound);
    assert!(bytes + 1024 >= size && bytes < size + (1 << 20), "{bytes} of {size}");
    assert_eq!(search("ig.so", b"needle").0, Search::NoMember);
}
