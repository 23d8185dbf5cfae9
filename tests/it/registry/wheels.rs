//! Wheels made by code.

use std::io::{Cursor, Write};

use base64::Engine;
use sha2::{Digest, Sha256};
use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

/// A wheel to be.
pub struct Recipe {
    pub name: String,
    pub version: String,
    pub metadata: String,
    pub files: Vec<(String, Vec<u8>)>,
    /// RECORD as it shall be, instead of a true one.
    pub record: Option<String>,
    pub zip64: bool,
}

/// A wheel.
#[derive(Clone)]
pub struct Made {
    pub file: String,
    pub bytes: Vec<u8>,
    pub sha256: String,
    pub metadata: String,
}

pub fn recipe(name: &str, version: &str) -> Recipe {
    Recipe {
        name: name.into(),
        version: version.into(),
        metadata: format!(
            "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Python: >=3.9\n\
             Requires-Dist: sympy>=1.13\nRequires-Dist: opt-einsum; extra == 'opt'\nProvides-Extra: opt\n\nText\n"
        ),
        files: vec![
            (format!("{name}/__init__.py"), b"pass\n".into()),
            (format!("{name}/lib/lib{name}.so.1"), b"\x7fELF library".into()),
        ],
        record: None,
        zip64: false,
    }
}

impl Recipe {
    pub fn file(mut self, path: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.files.push((path.into(), bytes.into()));
        self
    }

    /// METADATA and RECORD first, then `rest`.
    pub fn make_info_first(self, rest: Vec<u8>) -> Made {
        let info = format!("{}-{}.dist-info", self.name, self.version);
        let files = vec![
            (format!("{info}/METADATA"), self.metadata.clone().into_bytes()),
            (format!("{info}/RECORD"), self.record.clone().unwrap_or_default().into_bytes()),
            ("rest.bin".into(), rest),
        ];
        self.pack(&files)
    }

    pub fn make(mut self) -> Made {
        let info = format!("{}-{}.dist-info", self.name, self.version);
        let mut files = std::mem::take(&mut self.files);
        files.push((format!("{info}/METADATA"), self.metadata.clone().into_bytes()));
        let record = self.record.take().unwrap_or_else(|| {
            let rows: String = files.iter().map(|(path, bytes)| row(path, bytes)).collect();
            format!("{rows}{info}/RECORD,,\n")
        });
        files.push((format!("{info}/RECORD"), record.into_bytes()));
        self.pack(&files)
    }

    fn pack(self, files: &[(String, Vec<u8>)]) -> Made {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (path, bytes) in files {
            // Both methods that wheels use.
            let method = if path.ends_with(".py") { CompressionMethod::Stored } else { CompressionMethod::Deflated };
            let options = SimpleFileOptions::default().compression_method(method).large_file(self.zip64);
            zip.start_file(path, options).unwrap();
            zip.write_all(bytes).unwrap();
        }
        let bytes = zip.finish().unwrap().into_inner();
        Made {
            file: format!("{}-{}-py3-none-any.whl", self.name, self.version),
            sha256: hex(&bytes),
            bytes,
            metadata: self.metadata,
        }
    }
}

fn row(path: &str, bytes: &[u8]) -> String {
    let hash = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(Sha256::digest(bytes));
    format!("{path},sha256={hash},{}\n", bytes.len())
}

/// sha256 in lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes that do not compress, the same every time.
pub fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let step = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut bytes: Vec<u8> = std::iter::repeat_with(step).take(length.div_ceil(8)).flatten().collect();
    bytes.truncate(length);
    bytes
}
