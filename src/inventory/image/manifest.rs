//! From the top of an image to its layers: takes an index or a manifest (OCI image specification, Docker's schema 2 and its
//! `manifest.json` of saved images), gives configuration and layers of the image that is asked for.

use std::io::Read;

use data_encoding::HEXLOWER;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::config::Config;
use super::fault::Fault;
use super::{Blob, Blobs, bound};

/// Registries take manifests of at least 4 MiB (OCI distribution specification); larger ones are none, in bytes.
pub(super) const LARGEST: u64 = 4 << 20;
/// Indexes lie in indexes at most so deep.
const DEEPEST: usize = 4;
/// More than any image has.
const MOST_LAYERS: usize = 1000;
/// Where a layout says the tag of a manifest.
const TAG: &str = "org.opencontainers.image.ref.name";
/// What builders attach to images that is none.
const ATTACHED: &str = "vnd.docker.reference.type";

/// Which of several images is meant.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// Its tag.
    pub tag: Option<String>,
    /// Its architecture as images name it: `amd64`, `arm64`.
    pub architecture: String,
}

/// One image.
#[derive(Debug)]
pub(super) struct Manifest {
    pub(super) config: Config,
    /// The lowest first.
    pub(super) layers: Vec<Blob>,
    pub(super) annotations: std::collections::BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Json {
    manifests: Option<Vec<Descriptor>>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    annotations: Option<std::collections::BTreeMap<String, String>>,
}

#[derive(Deserialize, Clone)]
struct Descriptor {
    #[serde(rename = "mediaType", default)]
    media: String,
    digest: String,
    size: Option<u64>,
    platform: Option<Platform>,
    annotations: Option<std::collections::BTreeMap<String, String>>,
}

#[derive(Deserialize, Clone)]
struct Platform {
    #[serde(default)]
    os: String,
    #[serde(default)]
    architecture: String,
}

impl Descriptor {
    fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(name).map(String::as_str)
    }

    fn blob(&self) -> Blob {
        Blob { digest: self.digest.clone(), size: self.size, is_manifest: false, place: None }
    }
}

impl Manifest {
    /// Reads the image that `top`, an index or a manifest, leads to.
    pub(super) fn read(top: &[u8], choice: &Choice, blobs: &dyn Blobs) -> Result<Self, Fault> {
        let mut json = top.to_vec();
        let mut tag = choice.tag.as_deref();
        for _ in 0..DEEPEST {
            let manifest: Json = parse(&json, "its manifest")?;
            match (manifest.manifests, manifest.config, manifest.layers) {
                (Some(manifests), ..) => {
                    let chosen = choose(&manifests, tag.take(), &choice.architecture)?;
                    json = small(blobs, &Blob { is_manifest: true, ..chosen.blob() })?;
                }
                (None, Some(config), Some(layers)) => {
                    if let Some(locked) = layers.iter().find(|layer| layer.media.contains("encrypted")) {
                        return Err(Fault::broken(format!("its layer {} is encrypted", locked.digest)));
                    }
                    let annotations = manifest.annotations.unwrap_or_default();
                    let layers = layers.iter().map(Descriptor::blob).collect();
                    return Self::of(&small(blobs, &config.blob())?, layers, annotations);
                }
                _ => return Err(Fault::broken("its manifest names neither layers nor other manifests".into())),
            }
        }
        Err(Fault::broken(format!("its indexes lead to indexes more than {DEEPEST} times")))
    }

    /// Reads the image that `list`, the `manifest.json` of `docker save`, names.
    pub(super) fn of_docker(list: &[u8], choice: &Choice, blobs: &dyn Blobs) -> Result<Self, Fault> {
        #[derive(Deserialize)]
        struct Saved {
            #[serde(rename = "Config")]
            config: String,
            #[serde(rename = "RepoTags")]
            tags: Option<Vec<String>>,
            #[serde(rename = "Layers")]
            layers: Vec<String>,
        }
        let saved: Vec<Saved> = parse(list, "its manifest.json")?;
        let tags = |one: &Saved| one.tags.clone().unwrap_or_default();
        let fits = |one: &&Saved| {
            choice.tag.as_ref().is_none_or(|tag| {
                tags(one).iter().any(|own| own == tag || own.rsplit_once(':').is_some_and(|(_, own)| own == tag))
            })
        };
        let found: Vec<&Saved> = saved.iter().filter(fits).collect();
        let [one] = found[..] else {
            let known: Vec<String> = saved.iter().flat_map(tags).collect();
            return Err(several(found.len(), choice.tag.as_deref(), &known));
        };
        let place =
            |path: &str| Blob { digest: String::new(), size: None, is_manifest: false, place: Some(path.to_owned()) };
        let config = place(&one.config);
        let bytes = read(blobs, &config)?;
        // Its name is its digest, as Docker and skopeo write it.
        let named = one.config.rsplit('/').next().unwrap_or_default().trim_end_matches(".json");
        if named.len() == 64 && named != HEXLOWER.encode(&Sha256::digest(&bytes)) {
            return Err(Fault::broken(format!("its configuration has not the digest {named} that it is named by")));
        }
        let parsed = configuration(&bytes)?;
        let layers = one.layers.iter().zip(&parsed.diff_ids);
        let layers = layers.map(|(path, digest)| Blob { digest: digest.clone(), ..place(path) }).collect();
        if one.layers.len() != parsed.diff_ids.len() {
            return Err(unequal(one.layers.len(), parsed.diff_ids.len()));
        }
        Self::of(&bytes, layers, Default::default())
    }

    fn of(
        config: &[u8],
        layers: Vec<Blob>,
        annotations: std::collections::BTreeMap<String, String>,
    ) -> Result<Self, Fault> {
        let config = configuration(config)?;
        if layers.len() != config.diff_ids.len() {
            return Err(unequal(layers.len(), config.diff_ids.len()));
        }
        if layers.len() > MOST_LAYERS {
            return Err(Fault::broken(format!("{} layers", layers.len())));
        }
        if let Some(strange) = layers.iter().find(|layer| !is_sha256(&layer.digest)) {
            return Err(Fault::broken(format!("its layer {:?} is not named by a sha256 digest", strange.digest)));
        }
        Ok(Self { config, layers, annotations })
    }
}

fn unequal(layers: usize, diff_ids: usize) -> Fault {
    Fault::broken(format!("its manifest has {layers} layers, its configuration {diff_ids}"))
}

fn configuration(json: &[u8]) -> Result<Config, Fault> {
    Config::parse(json).map_err(|error| Fault::broken(format!("its configuration is not one of an image ({error})")))
}

fn parse<'j, T: Deserialize<'j>>(json: &'j [u8], what: &str) -> Result<T, Fault> {
    serde_json::from_slice(json).map_err(|error| Fault::broken(format!("{what} is none ({error})")))
}

/// The manifest of an index that is meant.
fn choose<'d>(manifests: &'d [Descriptor], tag: Option<&str>, architecture: &str) -> Result<&'d Descriptor, Fault> {
    let images = manifests.iter().filter(|one| one.annotation(ATTACHED).is_none());
    let name = |one: &Descriptor| one.annotation(TAG).map(str::to_owned);
    let tagged = |one: &&Descriptor| tag.is_none_or(|tag| one.annotation(TAG) == Some(tag));
    let images: Vec<&Descriptor> = images.filter(tagged).collect();
    if let [one] = images[..] {
        return Ok(one);
    }
    let fits = |one: &&&Descriptor| {
        one.platform.as_ref().is_some_and(|own| own.os == "linux" && own.architecture == architecture)
    };
    if let [one] = images.iter().filter(fits).collect::<Vec<_>>()[..] {
        return Ok(one);
    }
    let platforms = images.iter().filter_map(|one| one.platform.as_ref());
    let platforms: Vec<String> = platforms.map(|one| format!("{}/{}", one.os, one.architecture)).collect();
    if !platforms.is_empty() && !platforms.iter().any(|own| *own == format!("linux/{architecture}")) {
        let what = format!("it is not for linux/{architecture}, but for {}", platforms.join(", "));
        return Err(Fault::broken(what));
    }
    Err(several(images.len(), tag, &manifests.iter().filter_map(name).collect::<Vec<_>>()))
}

fn several(found: usize, tag: Option<&str>, known: &[String]) -> Fault {
    let known = if known.is_empty() { "without names".into() } else { known.join(", ") };
    Fault::broken(match (found, tag) {
        (0, Some(tag)) => format!("there is no image {tag} in it, only {known}"),
        (0, None) => "there is no image in it".into(),
        _ => format!("there are several images in it ({known}): name one behind a colon"),
    })
}

pub(super) fn is_sha256(digest: &str) -> bool {
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    digest.strip_prefix("sha256:").is_some_and(|digits| digits.len() == 64 && digits.bytes().all(hex))
}

/// A small blob, which must be the one with its digest.
fn small(blobs: &dyn Blobs, blob: &Blob) -> Result<Vec<u8>, Fault> {
    if !is_sha256(&blob.digest) {
        return Err(Fault::broken(format!("the digest {:?} is no sha256 digest", blob.digest)));
    }
    let bytes = read(blobs, blob)?;
    let found = format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(&bytes)));
    if found != blob.digest {
        return Err(Fault::broken(format!("what is named {} has the digest {found}", blob.digest)));
    }
    Ok(bytes)
}

fn read(blobs: &dyn Blobs, blob: &Blob) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    let too_large = || Fault::broken(format!("{} has more than {LARGEST} bytes", blob.words()));
    let reader = bound::open(blobs, blob, LARGEST + 1).map_err(|fault| match fault {
        Fault::TooLarge(_) => too_large(),
        other => other,
    })?;
    let read = reader.take(LARGEST + 1).read_to_end(&mut bytes).map_err(Fault::from);
    read.map_err(|fault| fault.of(blob.words()))?;
    if bytes.len() as u64 > LARGEST { Err(too_large()) } else { Ok(bytes) }
}
