//! Images that mean harm, or are broken: each ends with one sentence, nothing is written, nothing goes on for ever.

use std::fs;
use std::io::{self, Cursor, Read};
use std::path::Path;

use gpulock::diag::{Class, Failure};
use gpulock::inventory::image::{Blob, Blobs, Image, ImageOptions};
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

/// Long ways are walked once for the entries that share them, and not without end for others.
#[test]
fn ways_through_many_links() {
    let mut layer = Layer::default().folder("d");
    for step in 0..250 {
        let next = if step < 249 { format!("l{}", step + 1) } else { "d".into() };
        layer = layer.link(&format!("l{step}"), &format!("{}{next}", "x/../".repeat(700)));
    }
    let (mut shared, mut turning) = (layer.clone(), layer);
    for number in 0..20 {
        shared = shared.file(&format!("l0/{number}.py"), "");
        turning = turning.file(&format!("l0/{number}.py"), "").link("turn", "nowhere");
    }
    let folder = tempfile::tempdir().unwrap();
    Made::of(&[shared]).layout(folder.path(), Packed::Zstd);
    let found = super::semantics::files(&layout(folder.path(), None).unwrap().root);
    assert_eq!(found.iter().filter(|line| line.starts_with("d/")).count(), 20, "{found:?}");
    assert_said(&refused(&[turning]), &["the links on the way to its entries lead through too many folders"]);
}

/// An entry makes thousands of them.
#[test]
fn folders_that_no_entry_names() {
    let deep = "a/".repeat(2000);
    let mut tar = Vec::new();
    for number in 0..251 {
        let whole = Layer::default().file(&format!("{number}/{deep}f"), "").tar();
        tar.extend_from_slice(&whole[..whole.len() - 1024]);
    }
    let folder = tempfile::tempdir().unwrap();
    Made { layers: vec![tar], start: json!({}), history: Vec::new() }.layout(folder.path(), Packed::Zstd);
    let said = said(layout(folder.path(), None));
    assert!(
        said.starts_with("image-too-large") && said.contains("in more than 500000 folders that are no entries"),
        "{said}"
    );
}

#[test]
fn names_that_take_all_memory() {
    let (path, target) = (format!("{}/", "p".repeat(250)).repeat(16), "t".repeat(4000));
    let one = Layer::default().link(&format!("{path}f"), &target).tar();
    let one = &one[..one.len() - 1024];
    let folder = tempfile::tempdir().unwrap();
    let tar = one.repeat(25_010);
    Made { layers: vec![tar], start: json!({}), history: Vec::new() }.layout(folder.path(), Packed::Zstd);
    let Err(failure) = layout(folder.path(), None) else { panic!("it is read") };
    let text = failure.to_string();
    assert!(text.contains("the names of its entries take more than 200 MB"), "{text}");
    assert!(failure.diagnostics[0].fix.as_ref().unwrap().contains("--max-unpacked"), "{text}");
}

/// Blobs whose layer goes on for as long as it is read.
struct Endless<'a> {
    config: &'a [u8],
    part: &'a [u8],
}

impl Blobs for Endless<'_> {
    fn open(&self, blob: &Blob) -> io::Result<Box<dyn Read + Send + '_>> {
        if blob.digest == format!("sha256:{}", sha256(self.config)) {
            return Ok(Box::new(self.config));
        }
        let parts = self.part.repeat((50 << 20) / self.part.len());
        let end = io::Error::other("it was read for ever");
        Ok(Box::new(Cursor::new(parts).chain(Fails(Some(end)))))
    }
}

struct Fails(Option<io::Error>);

impl Read for Fails {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(self.0.take().unwrap_or_else(|| io::Error::other("again")))
    }
}

#[test]
fn blobs_without_end_are_cut_at_their_size() {
    let digest = format!("sha256:{}", "1".repeat(64));
    let config = json!({"rootfs": {"diff_ids": [digest]}}).to_string();
    let read = |part: &[u8], size: Option<u64>, named: Option<&str>| {
        let config_size = config.len();
        let of_config = json!({"digest": format!("sha256:{}", sha256(config.as_bytes())), "size": config_size});
        let mut layer = json!({"digest": digest});
        if let Some(size) = size {
            layer["size"] = json!(size);
        }
        let top = json!({"config": of_config, "layers": [layer]}).to_string();
        let options = ImageOptions { most_unpacked: 10_000_000, ..options(None) };
        let blobs = Endless { config: config.as_bytes(), part };
        let read = Image::of_blobs("x", (top.as_bytes(), named), &blobs, &options);
        said(read.map(|image| Inventory::of_image(image, &Options::default())))
    };
    // Frames that are to be skipped, and members with nothing in them: nothing comes out of them, however many there are.
    let mut skipped = b"\x50\x2a\x4d\x18\0\0\x01\0".to_vec();
    skipped.resize(8 + (1 << 16), 0);
    for part in [&skipped[..], &Packed::Gzip.pack(b"")] {
        assert_said(&read(part, Some(300_000), None), &["does not end after the 300000 bytes that its manifest says"]);
        assert_said(&read(part, None, None), &["does not end after 10000000 bytes"]);
    }
    let larger = read(&skipped, Some(10_000_001), None);
    assert!(
        larger.starts_with("image-too-large") && larger.contains("has 10000001 bytes, more than 10000000"),
        "{larger}"
    );
    let other = format!("sha256:{}", "2".repeat(64));
    assert_said(&read(&skipped, None, Some(&other)), &["its manifest has the digest sha256:", &other]);
}

/// In a layout, too; a configuration as well.
#[test]
fn files_that_are_longer_than_their_descriptors() {
    let folder = tempfile::tempdir().unwrap();
    let made = Made::of(&[Layer::default().file("a.py", "a")]);
    made.layout(folder.path(), Packed::Plain);
    let config = folder.path().join("blobs/sha256").join(sha256(made.config().to_string().as_bytes()));
    let layer = folder.path().join("blobs/sha256").join(sha256(&made.layers[0]));
    for (path, blob) in [(config, "sha256:"), (layer, "layer sha256:")] {
        let before = fs::read(&path).unwrap();
        fs::write(&path, [&before[..], b" "].concat()).unwrap();
        assert_said(&said(layout(folder.path(), None)), &[blob, "does not end after the", "that its manifest says"]);
        fs::write(&path, before).unwrap();
    }
    assert!(layout(folder.path(), None).is_ok());
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
