//! Tests of images: what their layers make up, what is refused, and the same verdict however an image is packed.

mod apptainer;
pub mod cases;
mod choice;
mod hostile;
pub mod make;
mod python;
mod remote;
mod same;
mod semantics;
mod stored;

use std::path::{Path, PathBuf};

use gpulock::diag::Failure;
use gpulock::inventory::image::{Choice, Image, ImageOptions, MOST_UNPACKED, Watch};
use gpulock::inventory::{Inventory, Options};

/// Tells nobody.
pub struct Nobody;

impl Watch for Nobody {
    fn start(&self, _: usize, _: Option<u64>) {}
    fn read(&self, _: u64) {}
    fn finish(&self) {}
}

/// How a test reads an image.
pub fn options(cache: Option<&Path>) -> ImageOptions<'_> {
    let choice = Choice { tag: None, architecture: "amd64".into() };
    ImageOptions { choice, cache, most_unpacked: MOST_UNPACKED, jobs: None, watch: &Nobody }
}

/// The image in a layout.
pub fn layout(folder: &Path, cache: Option<&Path>) -> Result<Inventory, Failure> {
    let image = Image::of_layout("oci:made", folder, &options(cache))?;
    Ok(Inventory::of_image(image, &Options::default()))
}

/// The image in a file.
pub fn archive(file: &Path) -> Result<Inventory, Failure> {
    let image = Image::of_archive("image:made", file, &options(None))?;
    Ok(Inventory::of_image(image, &Options::default()))
}

/// A file with these bytes in a folder.
pub fn put(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}
