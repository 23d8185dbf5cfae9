//! Which image of several is read, and what is no image.

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Mutex;

use gpulock::diag::Failure;
use gpulock::inventory::Inventory;
use gpulock::inventory::image::{Blob, Blobs, Choice, Image, ImageOptions};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::make::{Layer, Made, Packed, sha256};
use super::{archive, options, put};
use crate::cli::program::Place;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const NAME: &str = "org.opencontainers.image.ref.name";
const FULL: &str = "io.containerd.image.name";

/// A layout whose images are told apart by the variable `WHO`.
struct Several(TempDir);

impl Several {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn put(&self, bytes: &[u8], media: &str) -> Value {
        let (blobs, digest) = (self.0.path().join("blobs/sha256"), sha256(bytes));
        fs::create_dir_all(&blobs).unwrap();
        fs::write(blobs.join(&digest), bytes).unwrap();
        json!({"mediaType": media, "digest": format!("sha256:{digest}"), "size": bytes.len()})
    }

    fn image(&self, who: &str) -> Value {
        self.image_for(who, "linux")
    }

    fn image_for(&self, who: &str, system: &str) -> Value {
        let made = Made {
            start: json!({"Env": [format!("WHO={who}")], "Cmd": [who]}),
            ..Made::of(&[Layer::default().file("a.py", "a")])
        };
        let mut config = made.config();
        config["os"] = json!(system);
        let layer = self.put(&made.layers[0], "application/vnd.oci.image.layer.v1.tar");
        self.manifest(&config, "application/vnd.oci.image.config.v1+json", &layer)
    }

    fn manifest(&self, config: &Value, media: &str, layer: &Value) -> Value {
        let config = self.put(config.to_string().as_bytes(), media);
        let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer]});
        self.put(manifest.to_string().as_bytes(), MANIFEST)
    }

    fn index(&self, manifests: &Value) {
        let index = json!({"schemaVersion": 2, "manifests": manifests});
        fs::write(self.0.path().join("index.json"), index.to_string()).unwrap();
    }

    fn read(&self, tag: &str) -> Result<Image, Failure> {
        let choice = Choice { tag: (!tag.is_empty()).then(|| tag.to_owned()), architecture: "amd64".into() };
        Image::of_layout("oci:made", self.0.path(), &ImageOptions { choice, ..options(None) })
    }

    #[track_caller]
    fn who(&self, tag: &str) -> String {
        self.read(tag).unwrap_or_else(|failure| panic!("{failure}")).config.variables["WHO"].clone()
    }

    #[track_caller]
    fn refused(&self, tag: &str, part: &str) {
        let failure = self.read(tag).map(drop).unwrap_err();
        let problem = &failure.diagnostics[0];
        assert!(problem.message.contains(part) && problem.fix.is_some(), "{}", problem.message);
    }
}

fn with(mut descriptor: Value, key: &str, value: Value) -> Value {
    descriptor[key] = value;
    descriptor
}

fn named(descriptor: &Value, names: &[(&str, &str)]) -> Value {
    let names = names.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    with(descriptor.clone(), "annotations", Value::Object(names))
}

fn platform(descriptor: &Value, architecture: &str, variant: &str) -> Value {
    let variant = if variant.is_empty() { Value::Null } else { json!(variant) };
    let mut platform = json!({"os": "linux", "architecture": architecture});
    if !variant.is_null() {
        platform["variant"] = variant;
    }
    with(descriptor.clone(), "platform", platform)
}

#[test]
fn one_image_under_several_names_is_one() {
    let several = Several::new();
    let one = several.image("one");
    several.index(&json!([named(&one, &[(NAME, "1")]), named(&one, &[(NAME, "2")])]));
    for tag in ["", "1", "2"] {
        assert_eq!(several.who(tag), "one");
    }
    several.refused("3", "there is no image 3 in it, only 1, 2");
}

#[test]
fn names_of_containerd_choose() {
    let several = Several::new();
    let a = named(&several.image("a"), &[(NAME, "latest"), (FULL, "docker.io/library/a:latest")]);
    let b = named(&several.image("b"), &[(NAME, "latest"), (FULL, "docker.io/library/b:latest")]);
    several.index(&json!([a, b]));
    for tag in ["a:latest", "library/a:latest", "docker.io/library/a:latest"] {
        assert_eq!(several.who(tag), "a", "{tag}");
    }
    assert_eq!(several.who("b:latest"), "b");
    for tag in ["", "latest"] {
        several.refused(tag, "several images in it (docker.io/library/a:latest, docker.io/library/b:latest)");
    }
}

#[test]
fn the_plain_variant_is_taken() {
    let several = Several::new();
    let (plain, newer) = (several.image("plain"), several.image("newer"));
    for first in ["", "v1"] {
        several.index(&json!([platform(&newer, "amd64", "v3"), platform(&plain, "amd64", first)]));
        assert_eq!(several.who(""), "plain");
    }
    several.index(&json!([platform(&newer, "amd64", "v3"), platform(&plain, "arm64", "v8")]));
    assert_eq!(several.who(""), "newer");
    several.index(&json!([platform(&newer, "amd64", "v3"), platform(&plain, "amd64", "v4")]));
    several.refused("", "not for linux/amd64, but for linux/amd64/v3, linux/amd64/v4");
    // The first of those that differ in nothing.
    several.index(&json!([platform(&plain, "amd64", ""), platform(&newer, "amd64", "")]));
    assert_eq!(several.who(""), "plain");
}

/// Brings the blobs of a layout, and notes which manifests it is asked for.
struct Noting<'s>(&'s Several, Mutex<Vec<String>>);

impl Blobs for Noting<'_> {
    fn open(&self, blob: &Blob) -> io::Result<Box<dyn Read + Send + '_>> {
        if blob.is_manifest {
            self.1.lock().unwrap().push(blob.digest.clone());
        }
        Ok(Box::new(fs::File::open(self.0.0.path().join("blobs").join(blob.digest.replace(':', "/")))?))
    }
}

#[test]
fn of_several_platforms_one_manifest_is_asked_for_and_once() {
    let several = Several::new();
    let (own, other) = (several.image("own"), several.image("other"));
    let manifests = [platform(&other, "arm64", ""), platform(&own, "amd64", ""), platform(&other, "riscv64", "")];
    let index = json!({"schemaVersion": 2, "manifests": manifests}).to_string();
    let noting = Noting(&several, Mutex::default());
    let image = Image::of_blobs("x", (index.as_bytes(), None), &noting, &options(None)).unwrap();
    assert_eq!(image.config.variables["WHO"], "own");
    assert_eq!(*noting.1.lock().unwrap(), [own["digest"].as_str().unwrap()]);
    // An artifact is no image, whatever platform it says.
    let layer = several.put(b"{}", "application/vnd.dev.cosign.simplesigning.v1+json");
    let artifact = several.manifest(&json!({}), "application/vnd.oci.empty.v1+json", &layer);
    several.index(&json!([platform(&artifact, "amd64", ""), own]));
    assert_eq!(several.who(""), "own");
}

#[test]
fn what_belongs_to_an_image_is_none() {
    let several = Several::new();
    let image = named(&several.image("image"), &[(NAME, "latest")]);
    let hex = image["digest"].as_str().unwrap().trim_start_matches("sha256:").to_owned();
    let layer = several.put(b"{}", "application/vnd.dev.cosign.simplesigning.v1+json");
    let artifact = several.manifest(&json!({}), "application/vnd.oci.empty.v1+json", &layer);
    let image_like = several.image("signature");
    let attached = [
        with(artifact.clone(), "artifactType", json!("application/vnd.dev.cosign.simplesigning.v1+json")),
        artifact.clone(),
        named(&image_like, &[(NAME, &format!("sha256-{hex}.sig"))]),
        with(image_like.clone(), "platform", json!({"os": "unknown", "architecture": "unknown"})),
    ];
    for one in attached {
        several.index(&json!([one, image]));
        assert_eq!(several.who(""), "image", "{one}");
    }
    several.index(&json!([artifact]));
    several.refused("", "an artifact with a configuration of the type application/vnd.oci.empty.v1+json");
    let chart = several.put(b"chart", "application/vnd.cncf.helm.chart.content.v1.tar+gzip");
    several.index(&json!([several.manifest(&json!({}), "application/vnd.cncf.helm.config.v1+json", &chart)]));
    several.refused("", "application/vnd.cncf.helm.config.v1+json");
    let old = json!({"schemaVersion": 1, "fsLayers": [], "history": []}).to_string();
    several.index(&json!([several.put(old.as_bytes(), "")]));
    several.refused("", "Docker's first schema");
    several.index(&json!([several.image_for("x", "windows")]));
    several.refused("", "it is for windows/amd64");
}

/// As crane, kaniko, ko and bazel write saved images: layers are packed, the configuration is named by its digest.
#[test]
fn packed_layers_of_saved_images() {
    let folder = tempfile::tempdir().unwrap();
    let made = Made::of(&[Layer::default().file("a.py", "a1"), Layer::default().file("b.py", "b1")]);
    for packed in [Packed::Gzip, Packed::Zstd] {
        let config = made.config().to_string();
        let name = format!("sha256:{}", sha256(config.as_bytes()));
        let save = |layers: &[Vec<u8>], name: &str| {
            let names: Vec<String> = layers.iter().map(|layer| format!("{}.tar.gz", sha256(layer))).collect();
            let list = json!([{"Config": name, "RepoTags": ["a/b:1"], "Layers": names}]);
            let files = names.iter().zip(layers);
            let saved = files.fold(Layer::default(), |saved, (name, layer)| saved.bytes(name, 0o644, layer));
            saved.file(name, &config).file("manifest.json", &list.to_string()).tar()
        };
        let mut layers: Vec<Vec<u8>> = made.layers.iter().map(|layer| packed.pack(layer)).collect();
        let read = |bytes: &[u8]| archive(&put(folder.path(), "x.tar", bytes));
        let files = |inventory: &Inventory| super::semantics::files(&inventory.root);
        assert_eq!(files(&read(&save(&layers, &name)).unwrap()), ["a.py a1", "b.py b1"]);
        let wrong = format!("sha256:{}", "0".repeat(64));
        assert!(read(&save(&layers, &wrong)).unwrap_err().diagnostics[0].message.contains("has not the digest"));
        layers[1] = packed.pack(&Layer::default().file("b.py", "b2").tar());
        let failure = read(&save(&layers, &name)).unwrap_err();
        assert!(failure.diagnostics[0].message.contains("its content has the digest"), "{failure}");
    }
}

/// The fix says how the one that is meant is named.
#[test]
fn what_to_name_instead_is_said() {
    let several = Several::new();
    let fix = |tag: &str| several.read(tag).unwrap_err().diagnostics.remove(0).fix.unwrap();
    let (a, b) = (several.image("a"), several.image("b"));
    several.index(&json!([named(&a, &[(NAME, "1")]), named(&b, &[(NAME, "2")])]));
    assert_eq!(fix("3"), "name one that is");
    assert_eq!(fix(""), "name one behind a colon");
    several.index(&json!([a, b]));
    several.refused("", "there are several images in it, without names");
    assert!(fix("").contains("skopeo copy"));
    several.refused("1", "there is no image 1 in it: those in it have no names");
    several.index(&json!([a]));
    several.refused("1", "have no names");
    assert_eq!(fix("1"), "leave the name out");
    several.index(&json!([platform(&a, "arm64", ""), platform(&b, "riscv64", "")]));
    assert!(fix("").contains("--platform linux-aarch64"));
}

#[test]
fn another_platform_is_read_where_it_is_asked_for() {
    let several = Several::new();
    let (amd, arm) = (several.image("amd"), several.image("arm"));
    several.index(&json!([platform(&amd, "amd64", ""), platform(&arm, "arm64", "v8")]));
    let layout = format!("oci:{}", several.0.path().display());
    let place = Place::empty();
    for (flags, who) in [(&[][..], "amd"), (&["--platform", "linux-aarch64"], "arm")] {
        let ran = place.run(&[&["inspect", &layout, "--format", "json"], flags].concat()).code(3);
        assert_eq!(ran.json()["images"][0]["command"], json!([who]));
    }
    let ran = place.run(&["verify", &layout, "--platform", "linux-riscv64"]);
    ran.code(2).says(&["linux-riscv64"]);
}

/// A layout, a file and a folder of layers, each named as another.
#[test]
fn kinds_of_images_that_are_mistaken() {
    let place = Place::empty();
    Made::of(&[Layer::default().file("a.py", "a")]).layout(&place.path("layout"), Packed::Plain);
    fs::create_dir(place.path("layers")).unwrap();
    for name in ["manifest.json", "version"] {
        place.put(&format!("layers/{name}"), "{}");
    }
    place.put("saved.tar", Made::of(&[Layer::default()]).saved().tar());
    for (subject, fix) in [
        ("image:layout", "name it as oci:DIR"),
        ("sif:layout", "name it as oci:DIR"),
        ("layout", "name it as oci:layout"),
        ("oci:layers", "skopeo copy dir:DIR"),
        ("image:layers", "skopeo copy dir:DIR"),
        ("oci:saved.tar", "name an archive as image:FILE"),
        ("sif:saved.tar", "name an archive as image:FILE"),
        ("saved.tar", "an image as image:FILE"),
        ("image:saved.tar:other", "name one that is"),
    ] {
        place.run(&["verify", subject]).code(2).says(&[fix]);
    }
    place.run(&["verify", "image:saved.tar:"]).code(3);
}

#[test]
fn files_that_are_no_images_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let said = |read: Result<Inventory, Failure>| {
        let problem = read.unwrap_err().diagnostics.remove(0);
        format!("{}: {}", problem.message, problem.fix.unwrap())
    };
    let xz = said(archive(&put(folder.path(), "x.tar.xz", b"\xfd7zXZ\0\0\0")));
    assert!(xz.contains("compressed with xz") && xz.contains("xz -d"), "{xz}");
    // A frame that is to be skipped may come first.
    let skipped = b"\x50\x2a\x4d\x18\0\0\0\0";
    let skipped = [&skipped[..], &Packed::Zstd.pack(&Layer::default().file("a", "").tar())].concat();
    let skipped = said(archive(&put(folder.path(), "x.tar.zst", &skipped)));
    assert!(skipped.contains("neither index.json nor manifest.json"), "{skipped}");
    let export = Layer::default().file("etc/os-release", "ID=debian\n").tar();
    let export = said(archive(&put(folder.path(), "x.tar", &export)));
    assert!(export.contains("docker export") && export.contains("docker save"), "{export}");
    let layout = said(super::layout(Path::new(folder.path()), None));
    assert!(layout.contains("no index.json"), "{layout}");
}
