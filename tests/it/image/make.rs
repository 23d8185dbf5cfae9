//! Layers and images made by code: takes entries, gives archives, layouts and saved images.

use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// A layer as a tar archive.
#[derive(Clone, Default)]
pub struct Layer(Vec<u8>);

impl Layer {
    pub fn file(self, path: &str, content: &str) -> Self {
        self.entry(b'0', path, "", 0o644, content.as_bytes())
    }

    pub fn bytes(self, path: &str, mode: u32, content: &[u8]) -> Self {
        self.entry(b'0', path, "", mode, content)
    }

    pub fn folder(self, path: &str) -> Self {
        self.entry(b'5', path, "", 0o755, b"")
    }

    pub fn link(self, path: &str, target: &str) -> Self {
        self.entry(b'2', path, target, 0o777, b"")
    }

    pub fn hard(self, path: &str, target: &str) -> Self {
        self.entry(b'1', path, target, 0o644, b"")
    }

    pub fn pipe(self, path: &str) -> Self {
        self.entry(b'6', path, "", 0o644, b"")
    }

    pub fn device(self, path: &str) -> Self {
        self.entry(b'3', path, "", 0o644, b"")
    }

    /// pax records for the entry that follows.
    pub fn pax(self, records: &[(&str, &str)]) -> Self {
        let records: Vec<_> = records.iter().map(|(key, value)| (*key, value.as_bytes())).collect();
        self.pax_bytes(&records)
    }

    /// pax records whose values are no text.
    pub fn pax_bytes(self, records: &[(&str, &[u8])]) -> Self {
        let mut bytes = Vec::new();
        for (key, value) in records {
            // A record says its own length, its digits included.
            let rest = format!(" {key}=\n").len() + value.len();
            let length = (1..).find(|length| rest + length.to_string().len() == *length).unwrap();
            bytes.extend_from_slice(format!("{length} {key}=").as_bytes());
            bytes.extend_from_slice(value);
            bytes.push(b'\n');
        }
        self.entry(b'x', "pax", "", 0o644, &bytes)
    }

    /// An entry; long names as GNU tar writes them.
    pub fn entry(mut self, kind: u8, path: &str, target: &str, mode: u32, content: &[u8]) -> Self {
        for (kind, name) in [(b'L', path), (b'K', target)] {
            if name.len() > 100 {
                let name = [name.as_bytes(), b"\0"].concat();
                self = self.entry(kind, "././@LongLink", "", 0o644, &name);
            }
        }
        let mut header = header(kind, path, mode, content.len() as u64);
        fill(&mut header.as_gnu_mut().unwrap().linkname, target.as_bytes());
        header.set_cksum();
        self.block(header.as_bytes(), content)
    }

    /// A header and what follows it.
    pub fn block(mut self, header: &[u8], content: &[u8]) -> Self {
        self.0.extend_from_slice(header);
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    /// The archive with its end.
    pub fn tar(&self) -> Vec<u8> {
        let mut tar = self.0.clone();
        tar.resize(tar.len() + 1024, 0);
        tar
    }
}

/// A head without its checksum. Names go in as they are: no library writes those that lead elsewhere.
pub fn header(kind: u8, path: &str, mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(1);
    header.set_size(size);
    let gnu = header.as_gnu_mut().unwrap();
    fill(&mut gnu.name, path.as_bytes());
    gnu.typeflag = [kind];
    header
}

fn fill(field: &mut [u8], text: &[u8]) {
    let count = text.len().min(field.len());
    field[..count].copy_from_slice(&text[..count]);
}

/// How layers are compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packed {
    Plain,
    Gzip,
    Zstd,
}

impl Packed {
    pub fn pack(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Plain => bytes.to_vec(),
            Self::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            Self::Zstd => zstd::encode_all(bytes, 1).unwrap(),
        }
    }
}

pub fn sha256(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(bytes))
}

/// An image that is to be written.
pub struct Made {
    pub layers: Vec<Vec<u8>>,
    /// `config` of the configuration.
    pub start: Value,
    /// One step a layer.
    pub history: Vec<String>,
}

impl Made {
    pub fn of(layers: &[Layer]) -> Self {
        Self { layers: layers.iter().map(Layer::tar).collect(), start: json!({}), history: Vec::new() }
    }

    pub fn config(&self) -> Value {
        let digests: Vec<String> = self.layers.iter().map(|tar| format!("sha256:{}", sha256(tar))).collect();
        let history: Vec<Value> = self.history.iter().map(|line| json!({"created_by": line})).collect();
        json!({
            "architecture": "amd64", "os": "linux", "config": self.start, "history": history,
            "rootfs": {"type": "layers", "diff_ids": digests},
        })
    }

    /// As an OCI layout in `folder`, with the tag `latest`.
    pub fn layout(&self, folder: &Path, packed: Packed) {
        let blobs = folder.join("blobs/sha256");
        fs::create_dir_all(&blobs).unwrap();
        let put = |bytes: &[u8], media: &str| {
            let digest = sha256(bytes);
            fs::write(blobs.join(&digest), bytes).unwrap();
            json!({"mediaType": media, "digest": format!("sha256:{digest}"), "size": bytes.len()})
        };
        let config = put(self.config().to_string().as_bytes(), "application/vnd.oci.image.config.v1+json");
        let media = match packed {
            Packed::Plain => "application/vnd.oci.image.layer.v1.tar",
            Packed::Gzip => "application/vnd.oci.image.layer.v1.tar+gzip",
            Packed::Zstd => "application/vnd.oci.image.layer.v1.tar+zstd",
        };
        let layers: Vec<Value> = self.layers.iter().map(|tar| put(&packed.pack(tar), media)).collect();
        let media = "application/vnd.oci.image.manifest.v1+json";
        let manifest = json!({"schemaVersion": 2, "mediaType": media, "config": config, "layers": layers});
        let mut manifest = put(manifest.to_string().as_bytes(), media);
        manifest["annotations"] = json!({"org.opencontainers.image.ref.name": "latest"});
        let index = json!({"schemaVersion": 2, "manifests": [manifest]});
        fs::write(folder.join("index.json"), index.to_string()).unwrap();
        fs::write(folder.join("oci-layout"), "{\"imageLayoutVersion\": \"1.0.0\"}").unwrap();
    }

    /// As `docker save` saved images before it wrote layouts.
    pub fn saved(&self) -> Layer {
        let config = self.config().to_string();
        let name = format!("{}.json", sha256(config.as_bytes()));
        let mut archive = Layer::default();
        let mut layers = Vec::new();
        for (number, tar) in self.layers.iter().enumerate() {
            let path = format!("{number}/layer.tar");
            archive = archive.bytes(&path, 0o644, tar);
            layers.push(path);
        }
        let list = json!([{"Config": name, "RepoTags": ["made:latest"], "Layers": layers}]);
        archive.file(&name, &config).file("manifest.json", &list.to_string())
    }
}

/// A layout as an archive in one file.
pub fn archived(layout: &Path) -> Layer {
    let mut archive = Layer::default();
    for path in ["oci-layout", "index.json"] {
        archive = archive.bytes(path, 0o644, &fs::read(layout.join(path)).unwrap());
    }
    let mut blobs: Vec<_> = fs::read_dir(layout.join("blobs/sha256")).unwrap().map(|blob| blob.unwrap()).collect();
    blobs.sort_by_key(fs::DirEntry::file_name);
    for blob in blobs {
        let name = format!("blobs/sha256/{}", blob.file_name().to_str().unwrap());
        archive = archive.bytes(&name, 0o644, &fs::read(blob.path()).unwrap());
    }
    archive
}

/// A text on one line: what is there a hundred times and more is counted.
pub fn shown(text: &str) -> String {
    let mut out = String::new();
    let bytes = text.as_bytes();
    for run in bytes.chunk_by(|a, b| a == b) {
        let one = if run[0] == 0 { "\\0".to_owned() } else { char::from(run[0]).to_string() };
        out += &if run.len() < 100 { one.repeat(run.len()) } else { format!("{one}*{}", run.len()) };
    }
    out
}
