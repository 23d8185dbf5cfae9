//! What is to be judged, as the command line names it: a path, a process by its number, or an image by
//! where it is.

use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;

use super::progress::Bytes;
use super::{Globals, image, source};
use crate::diag::{Diagnostic, Evidence, Failure};
use crate::file;
use crate::inventory::image::{Blob, Blobs, Choice, Image, ImageOptions};
use crate::inventory::process::{self, ProcFs};
use crate::inventory::{Inventory, Options};
use crate::manifest::{self, Target};
use crate::python::Platform;
use crate::registry::{self, RemoteImage};

/// Flags about images.
#[derive(Debug, Clone, ClapArgs)]
#[command(next_help_heading = "Images")]
pub struct ImageArgs {
    /// Gigabytes that an image may unpack to
    #[arg(long, value_name = "GB", default_value_t = 200, env = "GPULOCK_MAX_UNPACKED", value_parser = clap::value_parser!(u64).range(1..))]
    max_unpacked: u64,
    /// Of an image for several platforms, read the one for this [default: that of the lock's target, else linux-x86_64]
    #[arg(long, value_parser = manifest::parse_platform, env = "GPULOCK_PLATFORM")]
    platform: Option<Platform>,
    /// Ask this address instead of a registry of images: docker.io=https://mirror.example; may be repeated
    #[arg(long = "registry-mirror", value_name = "REGISTRY=URL", env = "GPULOCK_REGISTRY_MIRROR", value_delimiter = ' ', value_parser = image::mirror)]
    registry_mirrors: Vec<(String, String)>,
}

/// Where a subject is.
enum Place<'a> {
    /// `image:FILE[:TAG]`.
    Archive(&'a Path),
    /// `oci:DIR[:TAG]`.
    Layout(&'a Path),
    /// `sif:FILE`.
    Sif(&'a Path),
    /// `registry:NAME`, as `docker pull` names it.
    Registry(&'a str),
    /// Anything else.
    Path(&'a Path),
}

impl<'a> Place<'a> {
    fn of(subject: &'a Path) -> Self {
        let after = |prefix: &str| subject.to_str().and_then(|text| text.strip_prefix(prefix));
        if let Some(path) = after("image:") {
            Self::Archive(Path::new(path))
        } else if let Some(path) = after("oci:") {
            Self::Layout(Path::new(path))
        } else if let Some(path) = after("sif:") {
            Self::Sif(Path::new(path))
        } else if let Some(name) = after("registry:") {
            Self::Registry(name)
        } else {
            Self::Path(subject)
        }
    }
}

/// Whether a subject is named as an image.
pub fn is_image(subject: &Path) -> bool {
    !matches!(Place::of(subject), Place::Path(_))
}

/// How subjects are read.
#[derive(Clone)]
pub struct Reader<'a> {
    /// Flags of every command.
    pub globals: &'a Globals,
    /// Flags about images.
    pub images: &'a ImageArgs,
    /// What the machines are.
    pub platform: Platform,
}

impl Reader<'_> {
    /// Reads a subject.
    ///
    /// # Errors
    /// One that cannot be read, or is nothing that can be judged.
    pub fn read(&self, subject: &Path, options: &Options) -> Result<Inventory, Failure> {
        if let Some(pid) = process::pid(subject)? {
            return Inventory::of_process(&ProcFs::default(), pid, options);
        }
        if let Some(path) = process::core::core(subject) {
            return Inventory::of_core(path, options);
        }
        let cache = self.cache();
        let watch = Bytes::new(self.globals);
        let platform = self.images.platform.unwrap_or(self.platform);
        let how = ImageOptions {
            choice: Choice { tag: None, architecture: platform.architecture().to_owned() },
            cache: Some(&cache),
            most_unpacked: self.images.max_unpacked.saturating_mul(1_000_000_000),
            jobs: options.jobs,
            watch: &watch,
        };
        let given = subject.display().to_string();
        let place = Place::of(subject);
        match place {
            // In the folder of an environment there may be other files.
            Place::Path(path) if path.is_dir() => {}
            Place::Path(path) | Place::Archive(path) | Place::Sif(path) | Place::Layout(path) => file::mark_input(path),
            Place::Registry(_) => {}
        }
        let image = match place {
            Place::Path(path) => return Inventory::read(path, options),
            Place::Archive(path) => Image::of_archive(&given, path, &how)?,
            Place::Layout(path) => Image::of_layout(&given, path, &how)?,
            Place::Sif(path) => Image::of_sif(&given, path, &how)?,
            Place::Registry(name) => {
                if name.is_empty() || self.globals.offline {
                    return Err(not_asked(&given, name));
                }
                let registries = source::registries(&self.images.registry_mirrors, self.globals)?;
                let remote = registries.image(name)?;
                Image::of_blobs(&given, (remote.top(), remote.digest()), &Remote(&remote), &how)?
            }
        };
        Ok(Inventory::of_image(image, options))
    }

    fn cache(&self) -> PathBuf {
        let given = self.globals.cache_dir.clone();
        given.unwrap_or_else(|| registry::default_cache_dir(&|name| std::env::var(name).ok()))
    }
}

/// The blobs of an image in a registry.
struct Remote<'r>(&'r RemoteImage<'r>);

impl Blobs for Remote<'_> {
    fn open(&self, blob: &Blob) -> io::Result<Box<dyn Read + Send + '_>> {
        if blob.is_manifest {
            let manifest = self.0.manifest(&blob.digest).map_err(io::Error::other)?;
            return Ok(Box::new(Cursor::new(manifest)));
        }
        let blob = self.0.blob(&blob.digest, blob.size).map_err(io::Error::other)?;
        Ok(Box::new(blob))
    }
}

/// Why a registry is not asked.
fn not_asked(given: &str, name: &str) -> Failure {
    let (code, message, seen, fix) = match name.is_empty() {
        true => (
            "not-a-subject",
            format!("{given} names no image"),
            "nothing behind the colon",
            "name one: registry:NAME:TAG",
        ),
        false => (
            "offline",
            format!("{given} is not read: --offline forbids to ask the registry"),
            "--offline",
            "leave --offline out, or save the image to a file: skopeo copy docker://NAME oci-archive:FILE",
        ),
    };
    Failure::unanswerable(Diagnostic::error(code, message, Evidence::observed(given, seen)).fix(fix))
}

/// What the machines are; the usual ones where nothing is declared.
pub fn platform(target: Option<&Target>) -> Platform {
    target.map_or_else(Platform::default, |target| target.platform)
}
