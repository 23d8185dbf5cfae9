//! An OCI image layout: a folder with `oci-layout`, `index.json` and `blobs/sha256` (OCI image specification, "Image
//! Layout").

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::fault::Fault;
use super::{Blob, Blobs};
use crate::digest::is_sha256;
use crate::inventory::root::open_regular;

/// The file that says which images there are.
pub(super) const INDEX: &str = "index.json";

/// A layout.
#[derive(Debug)]
pub struct Layout {
    folder: PathBuf,
}

impl Layout {
    /// The layout in a folder, and its index.
    ///
    /// # Errors
    /// A folder that is none.
    pub(super) fn open(folder: &Path) -> Result<(Self, File), Fault> {
        if folder.is_file() {
            return Err(Fault::Foreign(
                "it is a file".into(),
                "name an archive as image:FILE, one of Apptainer as sif:FILE",
            ));
        }
        match open_regular(&folder.join(INDEX)) {
            Ok((index, _)) => Ok((Self { folder: folder.to_owned() }, index)),
            Err(error) if error.kind() == io::ErrorKind::NotFound && folder.is_dir() => Err(self::folder(folder)),
            Err(error) => Err(Fault::Read(error)),
        }
    }
}

/// What a folder is that is named as another kind of image.
pub(super) fn folder(folder: &Path) -> Fault {
    let has = |name: &str| folder.join(name).is_file();
    let (what, fix) = if has(INDEX) {
        ("it is the folder of an OCI layout", "name it as oci:DIR")
    } else if has("manifest.json") && has("version") {
        // What `skopeo copy .. dir:` and `podman save --format docker-dir` write.
        ("the folder has the layers of an image and no layout", "make one of it: skopeo copy dir:DIR oci:OTHER")
    } else {
        (
            "the folder has no index.json, which every OCI layout has",
            "name a layout (skopeo copy .. oci:DIR), or the folder alone where it is a root filesystem",
        )
    };
    Fault::Foreign(what.into(), fix)
}

impl Blobs for Layout {
    fn open(&self, blob: &Blob) -> io::Result<Box<dyn Read + Send + '_>> {
        // Nothing else is a name of a file there.
        let hex = blob.digest.strip_prefix("sha256:").filter(|_| is_sha256(&blob.digest));
        let hex = hex.ok_or_else(|| io::Error::other(format!("{:?} is no sha256 digest", blob.digest)))?;
        let path = self.folder.join("blobs/sha256").join(hex);
        match open_regular(&path) {
            Ok((file, _)) => Ok(Box::new(file)),
            Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
        }
    }
}
