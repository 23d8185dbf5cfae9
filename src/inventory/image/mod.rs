//! Images: takes an archive, a layout or whatever brings blobs, gives the files that its layers make up and its
//! configuration. Nothing is unpacked: each layer is read once, and of its files stays what the rules look at.

mod archive;
mod bound;
mod bytes;
mod cache;
mod captured;
mod config;
mod fault;
mod keep;
mod layer;
mod layout;
mod manifest;
mod sif;
mod store;
mod tar;
mod tree;

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::root::open_regular;
use super::{parallel, shown};
use crate::diag::{Diagnostic, Evidence, Failure};
use crate::digest::{fits, sha256};
use archive::{Archive, Top};
use cache::Cache;
use fault::Fault;
use layer::{Limits, NamedBy};
use layout::Layout;
use manifest::Manifest;
use store::{Index, Store};

pub use captured::captured;
pub use config::Config;
pub use manifest::Choice;
pub(super) use store::KeptFile;
pub use tree::Tree;

/// What a blob is named by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// `sha256:` and hex, of the bytes as they are stored.
    pub digest: String,
    /// Size in bytes, where the manifest says it.
    pub size: Option<u64>,
    /// Whether it is an index or a manifest, which registries keep apart from other blobs.
    pub is_manifest: bool,
    /// Name of a member of an archive, where that is how it is found.
    place: Option<String>,
}

impl Blob {
    fn words(&self) -> &str {
        self.place.as_deref().unwrap_or(&self.digest)
    }
}

/// Whoever brings the blobs of an image.
pub trait Blobs: Sync {
    /// The bytes of a blob as they are stored; whether they are the right ones is checked by the reader.
    ///
    /// # Errors
    /// When there is none; a [`Failure`] inside the error is reported as it is.
    fn open(&self, blob: &Blob) -> io::Result<Box<dyn Read + Send + '_>>;
}

/// Watches the reading of layers; called from several threads.
pub trait Watch: Sync {
    /// That many layers are to be read, of so many bytes as far as that is known.
    fn start(&self, layers: usize, bytes: Option<u64>);

    /// So many more bytes of them were read.
    fn read(&self, bytes: u64);

    /// All are read.
    fn finish(&self);
}

/// How images are read.
pub struct ImageOptions<'a> {
    /// Which of several images.
    pub choice: Choice,
    /// Cache folder; without one nothing stays.
    pub cache: Option<&'a Path>,
    /// What all layers together may unpack to, in bytes.
    pub most_unpacked: u64,
    /// How many layers are read at a time; as many as there are cores when absent.
    pub jobs: Option<usize>,
    /// Who is told.
    pub watch: &'a dyn Watch,
}

/// Largest images are a fifth of that; a disk has room for it, and reading it takes minutes. In bytes.
pub const MOST_UNPACKED: u64 = 200_000_000_000;

/// An image that was read.
#[derive(Debug)]
pub struct Image {
    /// As the user named it: `image:FILE.tar`.
    pub given: String,
    /// What it says of itself.
    pub config: Config,
    /// Annotations of its manifest.
    pub annotations: BTreeMap<String, String>,
    /// Digests of its layers, the lowest first.
    pub layers: Vec<String>,
    pub(super) tree: Arc<Tree>,
    /// Parts of it that are not read and that a container would have: "an overlay, which lies over its files".
    pub unread: Vec<String>,
}

impl Image {
    /// Reads the image in a file.
    ///
    /// # Errors
    /// A file that cannot be read, is no image, or unpacks to more than is allowed.
    pub fn of_archive(given: &str, path: &Path, options: &ImageOptions<'_>) -> Result<Self, Failure> {
        let named = |fault| failure(given, fault);
        let (path, tag) = split(path, |path| path.is_file());
        let limits = Limits::new(options.most_unpacked);
        if path.is_dir() {
            return Err(named(layout::folder(&path)));
        }
        let (file, _) = open_regular(&path).map_err(|error| named(Fault::Read(error)))?;
        let archive = Archive::open(file, &limits).map_err(named)?;
        let choice = Choice { tag: tag.or_else(|| options.choice.tag.clone()), ..options.choice.clone() };
        let manifest = match archive.top().map_err(named)? {
            Top::Index(index) => Manifest::read(&index, &choice, &archive),
            Top::Docker(list) => Manifest::of_docker(&list, &choice, &archive),
        };
        manifest.and_then(|manifest| layers(given, manifest, &archive, limits, options)).map_err(named)
    }

    /// Reads the image in an OCI layout.
    ///
    /// # Errors
    /// As [`of_archive`](Self::of_archive).
    pub fn of_layout(given: &str, path: &Path, options: &ImageOptions<'_>) -> Result<Self, Failure> {
        let named = |fault| failure(given, fault);
        let (path, tag) = split(path, |path| path.is_dir());
        let (layout, index) = Layout::open(&path).map_err(named)?;
        let top = bound::small(index).map_err(|error| named(Fault::Read(error)))?;
        let top = top.ok_or_else(|| named(bound::too_large(&format!("its {}", layout::INDEX))))?;
        let choice = Choice { tag: tag.or_else(|| options.choice.tag.clone()), ..options.choice.clone() };
        let limits = Limits::new(options.most_unpacked);
        let manifest = Manifest::read(&top, &choice, &layout);
        manifest.and_then(|manifest| layers(given, manifest, &layout, limits, options)).map_err(named)
    }

    /// Reads the image of Apptainer in a file: SIF, or a squashfs of its own. It has no digest, and nothing of it is kept.
    ///
    /// # Errors
    /// As [`of_archive`](Self::of_archive).
    pub fn of_sif(given: &str, path: &Path, options: &ImageOptions<'_>) -> Result<Self, Failure> {
        let named = |fault| failure(given, fault);
        if path.is_dir() {
            return Err(named(layout::folder(path)));
        }
        let (file, metadata) = open_regular(path).map_err(|error| named(Fault::Read(error)))?;
        let (cache, limits) = (Cache::new(None), Limits::new(options.most_unpacked));
        options.watch.start(1, None);
        let mut new = cache.create().map_err(|error| named(Fault::Spool(error)))?;
        let read = sif::read(file, &mut new, &limits, &|bytes| options.watch.read(bytes));
        options.watch.finish();
        let of_parts = read.map_err(named)?;
        let (store, index) = cache.finish(new, "").map_err(named)?;
        let mut tree = Tree::new();
        tree.apply(Arc::new(store), index.entries, &limits).map_err(named)?;
        let layer = format!("{} bytes", metadata.len());
        let platform = of_parts.architecture.map(|architecture| format!("linux/{architecture}"));
        let (tree, config) = (Arc::new(tree), Config::of_platform(platform));
        let (annotations, unread) = (BTreeMap::new(), of_parts.unread);
        Ok(Self { given: given.to_owned(), config, annotations, layers: vec![layer], tree, unread })
    }

    /// Reads the image that `top`, an index or a manifest and its digest where that is known, leads to among `blobs`.
    ///
    /// # Errors
    /// As [`of_archive`](Self::of_archive).
    pub fn of_blobs(
        given: &str,
        (top, digest): (&[u8], Option<&str>),
        blobs: &dyn Blobs,
        options: &ImageOptions<'_>,
    ) -> Result<Self, Failure> {
        let limits = Limits::new(options.most_unpacked);
        if let Some(digest) = digest.filter(|digest| !fits(digest, top)) {
            let what = format!("its manifest has the digest {}, not {digest}, which it is named by", sha256(top));
            return Err(failure(given, Fault::broken(what)));
        }
        let manifest = Manifest::read(top, &options.choice, blobs);
        let image = manifest.and_then(|manifest| layers(given, manifest, blobs, limits, options));
        image.map_err(|fault| failure(given, fault))
    }

    /// Which of its layers a file is from, counted from 1, and what made that; the path has no links.
    pub fn origin(&self, path: &Path) -> Option<(usize, Option<&str>)> {
        let layer = self.tree.layer(path)?;
        Some((layer + 1, self.config.made_by(layer)))
    }
}

/// Path and tag of `PATH[:TAG]`; a path that is there has no tag.
fn split(given: &Path, is_one: impl Fn(&Path) -> bool) -> (PathBuf, Option<String>) {
    let text = given.to_str().filter(|_| !given.exists()).unwrap_or_default();
    let mut parts = text.match_indices(':').map(|(at, _)| (Path::new(&text[..at]), &text[at + 1..]));
    match parts.find(|(path, _)| is_one(path)) {
        Some((path, tag)) => (path.to_owned(), Some(tag.to_owned()).filter(|tag| !tag.is_empty())),
        None => (given.to_owned(), None),
    }
}

/// Reads those layers that are not in the cache, several at a time, and lays them over each other.
fn layers(
    given: &str,
    manifest: Manifest,
    blobs: &dyn Blobs,
    limits: Limits,
    options: &ImageOptions<'_>,
) -> Result<Image, Fault> {
    let cache = Cache::new(options.cache);
    let threads = parallel::threads(options.jobs);
    // A layer may be in an image several times.
    let mut distinct: Vec<&Blob> = Vec::new();
    for layer in &manifest.layers {
        if !distinct.iter().any(|known| known.digest == layer.digest) {
            distinct.push(layer);
        }
    }
    let cached = parallel::map(threads, &distinct, |layer| cache.get(&layer.digest));
    let missing: Vec<&Blob> =
        distinct.iter().zip(&cached).filter(|(_, known)| known.is_none()).map(|(layer, _)| *layer).collect();
    let mut stores: BTreeMap<&str, (Arc<Store>, Index)> = BTreeMap::new();
    for (layer, known) in distinct.iter().zip(cached) {
        if let Some((store, index)) = known {
            limits.again(&index.entries)?;
            limits.bytes(index.unpacked)?;
            stores.insert(&layer.digest, (Arc::new(store), index));
        }
    }
    if !missing.is_empty() {
        options.watch.start(missing.len(), missing.iter().map(|layer| layer.size).sum());
    }
    let read = parallel::largest_first(
        threads,
        &missing,
        |layer| layer.size.unwrap_or(0),
        |layer| {
            one(layer, blobs, &cache, &limits, options.watch)
                .map_err(|fault| fault.of(&format!("layer {}", layer.words())))
        },
    );
    options.watch.finish();
    for (layer, read) in missing.iter().zip(read) {
        let (store, index) = read?;
        stores.insert(&layer.digest, (Arc::new(store), index));
    }
    let mut tree = Tree::new();
    let mut rest: BTreeMap<&str, usize> = BTreeMap::new();
    for layer in &manifest.layers {
        *rest.entry(&layer.digest).or_default() += 1;
    }
    for (number, layer) in manifest.layers.iter().enumerate() {
        let Some((store, index)) = stores.get_mut(layer.digest.as_str()) else { continue };
        let left = rest.entry(&layer.digest).or_default();
        *left -= 1;
        let entries = if *left == 0 {
            std::mem::take(&mut index.entries)
        } else {
            limits.again(&index.entries)?;
            index.entries.clone()
        };
        tree.apply(Arc::clone(store), entries, &limits).map_err(|fault| fault.of(&format!("layer {}", number + 1)))?;
    }
    Ok(Image {
        given: given.to_owned(),
        layers: manifest.layers.iter().map(|layer| layer.digest.clone()).collect(),
        config: manifest.config,
        annotations: manifest.annotations,
        tree: Arc::new(tree),
        unread: Vec::new(),
    })
}

fn one(
    layer: &Blob,
    blobs: &dyn Blobs,
    cache: &Cache,
    limits: &Limits,
    watch: &dyn Watch,
) -> Result<(Store, Index), Fault> {
    let mut new = cache.create().map_err(Fault::Spool)?;
    // `docker save` names files; the configuration has the digests of what they unpack to.
    let by = if layer.place.is_some() { NamedBy::Content } else { NamedBy::Stored };
    let blob = bound::open(blobs, layer, limits.most_bytes())?;
    layer::read(blob, (&layer.digest, by), &mut new, limits, &|bytes| watch.read(bytes))?;
    cache.finish(new, &layer.digest)
}

fn failure(given: &str, fault: Fault) -> Failure {
    let name = shown(Path::new(given));
    let (code, message, fix) = match &fault {
        Fault::Said(_) => ("", String::new(), ""),
        Fault::Broken(what) => {
            ("image-unreadable", format!("{name} cannot be read as an image: {what}"), "make or fetch the image again")
        }
        Fault::Foreign(what, fix) => ("image-unreadable", format!("{name} cannot be read as an image: {what}"), *fix),
        Fault::TooLarge(what) => (
            "image-too-large",
            format!("{name} is not read on: {what}"),
            "if it is to be so large, allow more: --max-unpacked GB",
        ),
        Fault::Read(error) => ("cannot-read", format!("{name} cannot be read: {error}"), "name an image that is there"),
        Fault::Spool(error) => {
            let folder = std::env::temp_dir();
            let message = format!("what is kept of {name} cannot be written to {}: {error}", folder.display());
            ("cannot-write", message, "make room there, or name another folder: TMPDIR=FOLDER")
        }
        Fault::Lost(folder) => (
            "cannot-write",
            format!("what is kept of {name} was written to {} and cannot be read again", folder.display()),
            "name another folder: --cache-dir FOLDER, or TMPDIR=FOLDER",
        ),
    };
    if let Fault::Said(failure) = fault {
        return failure;
    }
    let seen = Evidence::observed(name, shown(Path::new(&fault.to_string())));
    Failure::unanswerable(Diagnostic::error(code, shown(Path::new(&message)), seen).fix(fix))
}
