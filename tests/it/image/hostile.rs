//! Images that mean harm, or are broken: each ends with one sentence, nothing is written, nothing goes on for ever.

use std::fs;
use std::path::Path;

use gpulock::diag::{Class, Failure};
use gpulock::inventory::image::{Image, ImageOptions};
use gpulock::inventory::{Inventory, Options};
use serde_json::json;

use super::make::{Layer, Made, Packed, header, sha256};
use super::{archive, layout, options, put};

/// What reading a layout of these layers says.
#[track_caller]
fn refused(layers: &[Layer]) -> String {
    let folder = tempfile::tempdir().unwrap();
    Made::of(layers).layout(folder.path(), Packed::Gzip);
    said(layout(folder.path(), None))
}

#[track_caller]
fn said(read: Result<Inventory, Failure>) -> String {
    let Err(failure) = read else { panic!("it is read") };
    assert_eq!(failure.class, Class::Unanswerable);
    let [problem] = &failure.diagnostics[..] else { panic!("{failure}") };
    assert!(problem.fix.is_some() && !problem.evidence.is_empty());
    format!("{}: {}", problem.code, problem.message)
}

#[track_caller]
fn assert_said(said: &str, parts: &[&str]) {
    assert!(said.starts_with("image-unreadable: ") && parts.iter().all(|part| said.contains(part)), "{said}");
}

/// An archive with one blob in a layout replaced, found by a part of its text.
fn with_changed(layers: &[Layer], packed: Packed, change: impl Fn(&mut Vec<u8>)) -> String {
    let folder = tempfile::tempdir().unwrap();
    let made = Made::of(layers);
    made.layout(folder.path(), packed);
    let path = folder.path().join("blobs/sha256").join(sha256(&packed.pack(&made.layers[0])));
    let mut bytes = fs::read(&path).unwrap();
    change(&mut bytes);
    fs::write(&path, bytes).unwrap();
    said(layout(folder.path(), None))
}

#[test]
fn entries_that_no_disk_takes() {
    let base = || Layer::default().file("a/x.py", "x1");
    assert_said(
        &refused(&[base().hard("h", "nowhere")]),
        &["layer 1", "entry h", "a link to nowhere, which is not there"],
    );
    assert_said(&refused(&[base().hard("h", "a")]), &["a hard link to the folder a"]);
    assert_said(&refused(&[base().hard("h", "h")]), &["not there"]);
    assert_said(&refused(&[base().hard("h", "../../../etc/passwd")]), &["../../../etc/passwd, which is not there"]);
    assert_said(&refused(&[base().link("l", "m").link("m", "l").file("l/n", "")]), &["circle"]);
    assert_said(&refused(&[base().file("a/x.py/n", "")]), &["lies in x.py, which is no folder"]);
    assert_said(&refused(&[base().link("/", "/etc")]), &["root of the image is no folder"]);
    assert_said(&refused(&[base().file(&"n".repeat(256), "")]), &["a name of more than 255 bytes"]);
    assert_said(&refused(&[base().file(&"n/".repeat(3000), "")]), &["a path of more than 4096 bytes"]);
    assert_said(&refused(&[base().entry(b'V', "volume", "", 0, b"")]), &["unknown type 'V'"]);
    // Each link twice over the next: more steps than there are seconds.
    let mut layer = Layer::default().folder("l64");
    for step in 0..64 {
        layer = layer.link(&format!("l{step}"), &format!("l{0}/../l{0}", step + 1));
    }
    assert_said(&refused(&[layer.file("l0/n", "")]), &["entry l0/n", "circle"]);
}

/// Nothing of the machine is seen through links, whatever they name.
#[test]
fn links_stay_inside() {
    let folder = tempfile::tempdir().unwrap();
    let layer = Layer::default()
        .link("etc", "/etc")
        .link("out", "../../../../../../etc")
        .link("usr/lib/python3/dist-packages", "/usr/lib/python3/dist-packages")
        .link("lib64", "/usr/lib64")
        .link("loop", "loop");
    Made::of(&[layer]).layout(folder.path(), Packed::Plain);
    let inventory = layout(folder.path(), None).unwrap();
    assert_eq!((inventory.libraries().len(), inventory.packages.len()), (0, 0));
    assert!(inventory.root.read(Path::new("/out/passwd"), 1 << 20).is_err());
    assert!(inventory.root.read(Path::new("/etc/passwd"), 1 << 20).is_err());
}

#[test]
fn blobs_that_are_not_what_they_are_said_to_be() {
    let layers = [Layer::default().file("a.py", &"content ".repeat(1000))];
    for packed in [Packed::Plain, Packed::Gzip, Packed::Zstd] {
        let cut = with_changed(&layers, packed, |bytes| bytes.truncate(bytes.len() - 20));
        assert_said(&cut, &["layer sha256:"]);
        let longer = with_changed(&layers, packed, |bytes| bytes.push(1));
        assert_said(&longer, &["layer sha256:"]);
    }
    let other = with_changed(&layers, Packed::Plain, |bytes| bytes[600] ^= 1);
    assert_said(&other, &["its content has the digest sha256:", "not the one that it is named by"]);
    let folder = tempfile::tempdir().unwrap();
    let noise = Made { layers: vec![vec![b'x'; 5000]], start: json!({}), history: Vec::new() };
    noise.layout(folder.path(), Packed::Gzip);
    assert_said(&said(layout(folder.path(), None)), &["no tar archive"]);
    let xz = with_changed(&layers, Packed::Plain, |bytes| bytes[..6].copy_from_slice(b"\xfd7zXZ\0"));
    assert_said(&xz, &["compressed in a way that layers are not"]);
}

#[test]
fn headers_that_claim_too_much() {
    let huge = |kind: u8| {
        let mut header = header(kind, "huge.so", 0o755, u64::MAX / 4);
        header.set_cksum();
        Layer::default().block(header.as_bytes(), b"\x7fELF")
    };
    assert_said(&refused(&[huge(b'0')]), &["ends early"]);
    for kind in [b'L', b'K', b'x', b'g'] {
        assert_said(&refused(&[huge(kind)]), &["a long name or a pax header of 4611686018427387903 bytes"]);
    }
    let pax = |records: &[(&str, &str)]| refused(&[Layer::default().pax(records).file("s.py", "abc")]);
    assert_said(&pax(&[("size", "99999999999999999999999")]), &["a number in a pax header"]);
    assert_said(&pax(&[("size", "18446744073709551615")]), &["an entry of 18446744073709551615 bytes"]);
    assert_said(&pax(&[("GNU.sparse.map", "0,9"), ("GNU.sparse.size", "3")]), &["overlap or lie outside"]);
    assert_said(&pax(&[("GNU.sparse.map", "2,1,0,2"), ("GNU.sparse.size", "3")]), &["overlap or lie outside"]);
    assert_said(&pax(&[("GNU.sparse.map", "0,1"), ("GNU.sparse.size", "3")]), &["not as long as"]);
    assert_said(&pax(&[("GNU.sparse.map", "0"), ("GNU.sparse.size", "3")]), &["map of a sparse file is damaged"]);
    assert_said(&pax(&[("GNU.sparse.major", "1"), ("GNU.sparse.realsize", "3")]), &["longer than the file"]);
}

#[test]
fn bombs_have_a_limit() {
    let read = |most_unpacked: u64, layer: Layer, packed: Packed| {
        let folder = tempfile::tempdir().unwrap();
        Made::of(&[layer]).layout(folder.path(), packed);
        let options = ImageOptions { most_unpacked, ..options(None) };
        Image::of_layout("oci:bomb", folder.path(), &options)
            .map(|image| Inventory::of_image(image, &Options::default()))
    };
    let zeros = || Layer::default().bytes("zeros.so", 0o755, &vec![0; 50 << 20]);
    for packed in [Packed::Gzip, Packed::Zstd] {
        let said = said(read(10_000_000_000, zeros(), packed).and_then(|_| read(10_000_000, zeros(), packed)));
        assert!(said.starts_with("image-too-large: oci:bomb is not read on: more than 0 GB unpacked"), "{said}");
    }
    // A sparse file is counted as large as it says it is.
    let sparse = Layer::default()
        .pax(&[("GNU.sparse.map", "0,4"), ("GNU.sparse.size", "900000000000"), ("GNU.sparse.name", "s.so")])
        .bytes("s", 0o755, b"\x7fELF");
    assert!(said(read(1_000_000_000, sparse, Packed::Gzip)).starts_with("image-too-large"));
}

#[test]
fn a_hundred_thousand_entries() {
    let mut layer = Layer::default();
    let one = Layer::default().file("n", "").tar()[..512].to_vec();
    for _ in 0..1000 {
        layer = layer.block(&one, b"");
    }
    let tar = layer.tar();
    let many: Vec<u8> = tar[..512_000].repeat(100);
    let folder = tempfile::tempdir().unwrap();
    let made = Made { layers: vec![many], start: json!({}), history: Vec::new() };
    made.layout(folder.path(), Packed::Zstd);
    assert_eq!(super::semantics::files(&layout(folder.path(), None).unwrap().root), ["n (0)"]);
}

#[test]
fn manifests_that_lead_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let index = |index: &serde_json::Value| {
        fs::write(folder.path().join("index.json"), index.to_string()).unwrap();
        said(layout(folder.path(), None))
    };
    fs::create_dir_all(folder.path().join("blobs/sha256")).unwrap();
    let blob = |bytes: &[u8]| {
        let digest = sha256(bytes);
        fs::write(folder.path().join("blobs/sha256").join(&digest), bytes).unwrap();
        json!({"digest": format!("sha256:{digest}"), "size": bytes.len()})
    };
    assert_said(&index(&json!({})), &["names neither layers nor other manifests"]);
    assert_said(&index(&json!([])), &["its manifest is none"]);
    assert_said(&index(&json!({"manifests": []})), &["there is no image in it"]);
    assert_said(&index(&json!({"manifests": [{"digest": "sha256:../../../etc/passwd"}]})), &["no sha256 digest"]);
    // A digest that names itself cannot be made; one that is claimed is found out.
    let own = format!("sha256:{}", "0".repeat(64));
    fs::write(
        folder.path().join("blobs/sha256").join("0".repeat(64)),
        json!({"manifests": [{"digest": own}]}).to_string(),
    )
    .unwrap();
    assert_said(&index(&json!({"manifests": [{"digest": own}]})), &["has the digest"]);
    let mut nested = blob(b"{\"manifests\": []}");
    for _ in 0..6 {
        nested = blob(json!({"manifests": [nested]}).to_string().as_bytes());
    }
    assert_said(&index(&json!({"manifests": [nested]})), &["lead to indexes more than 4 times"]);
    let deep = "[".repeat(100_000);
    fs::write(folder.path().join("index.json"), &deep).unwrap();
    assert_said(&said(layout(folder.path(), None)), &["its manifest is none"]);
    fs::write(folder.path().join("index.json"), " ".repeat(5 << 20)).unwrap();
    assert_said(&said(layout(folder.path(), None)), &["more than 4194304 bytes"]);
    let config = blob(&b" ".repeat(5 << 20));
    assert_said(&index(&json!({"config": config, "layers": []})), &["more than 4194304 bytes"]);
    let config = blob(b"{\"rootfs\": {\"diff_ids\": []}}");
    let missing = json!({"digest": own});
    assert_said(&index(&json!({"config": config, "layers": [missing]})), &["1 layers, its configuration 0"]);
    let two = json!([{"digest": own, "platform": {"os": "linux", "architecture": "s390x"}}, {"digest": format!("sha256:{}", "1".repeat(64)), "platform": {"os": "linux", "architecture": "arm64"}}]);
    assert_said(&index(&json!({"manifests": two})), &["not for linux/amd64, but for linux/s390x, linux/arm64"]);
}

#[test]
fn archives_that_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let read = |bytes: &[u8]| said(archive(&put(folder.path(), "x.tar", bytes)));
    assert_said(&read(b""), &["neither index.json nor manifest.json"]);
    assert_said(&read(&[1; 5000]), &["no tar archive"]);
    let list = json!([{"Config": "c.json", "RepoTags": null, "Layers": ["l"]}]).to_string();
    assert_said(&read(&Layer::default().file("manifest.json", &list).tar()), &["c.json is missing"]);
    let circle = Layer::default().file("manifest.json", &list).link("c.json", "d.json").link("d.json", "c.json");
    assert_said(&read(&circle.tar()), &["circle"]);
    let made = Made::of(&[Layer::default().file("a.py", "a")]);
    assert!(archive(&put(folder.path(), "y.tar", &made.saved().tar())).is_ok());
    let mut wrong = made.saved().tar();
    let at = wrong.windows(4).position(|part| part == b"a.py").unwrap();
    wrong[at + 512] = b'b';
    assert_said(&read(&wrong), &["layer 0/layer.tar", "has the digest"]);
    let cut = made.saved().tar();
    assert_said(&read(&cut[..cut.len() - 2000]), &["ends early"]);
    assert_said(&read(&Packed::Gzip.pack(&cut)[..300]), &["it ends early"]);
    assert!(archive(&put(folder.path(), "z.tar.gz", &Packed::Gzip.pack(&cut))).is_ok());
}

#[test]
fn files_of_apptainer_that_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let read = |bytes: &[u8]| {
        let path = put(folder.path(), "x.sif", bytes);
        said(Image::of_sif("sif:x", &path, &options(None)).map(|image| Inventory::of_image(image, &Options::default())))
    };
    assert_said(&read(b""), &["neither a SIF file nor a squashfs"]);
    assert_said(&read(&[b'x'; 1000]), &["neither a SIF file nor a squashfs"]);
    assert_said(&read(&[b"hsqs".as_slice(), &[0xff; 1000]].concat()), &["it is cut short"]);
    let mut sif = vec![0; 4096];
    sif[32..41].copy_from_slice(b"SIF_MAGIC");
    assert_said(&read(&sif), &["no root filesystem that is a squashfs"]);
    sif[88..96].copy_from_slice(&u64::MAX.to_le_bytes());
    assert_said(&read(&sif), &["it says that it has 18446744073709551615 parts"]);
    sif[88..96].copy_from_slice(&3_u64.to_le_bytes());
    sif[96..104].copy_from_slice(&u64::MAX.to_le_bytes());
    assert_said(&read(&sif), &["beyond its end"]);
    sif[96..104].copy_from_slice(&4090_u64.to_le_bytes());
    assert_said(&read(&sif), &["beyond its end"]);
}
