//! From the top of an image to its layers: takes an index or a manifest (OCI image specification, Docker's schema 2 and its
//! `manifest.json` of saved images), gives configuration and layers of the image that is asked for.

mod choose;

use serde::Deserialize;

use super::config::Config;
use super::fault::Fault;
use super::{Blob, Blobs, bound};
use crate::digest::{self, is_sha256, sha256};

/// Indexes lie in indexes at most so deep.
const DEEPEST: usize = 4;
/// More than any image has.
const MOST_LAYERS: usize = 1000;
/// What configurations of images are; manifests of before Docker 1.10.3 do not say it.
const CONFIGURATIONS: [&str; 4] = [
    "application/vnd.oci.image.config.v1+json",
    "application/vnd.docker.container.image.v1+json",
    "application/octet-stream",
    "",
];

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
    #[serde(rename = "fsLayers")]
    old_layers: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize, Clone)]
struct Descriptor {
    #[serde(rename = "mediaType", default)]
    media: String,
    #[serde(rename = "artifactType")]
    artifact: Option<String>,
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
    #[serde(default)]
    variant: String,
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
                    json = choose::choose(&manifests, tag.take(), &choice.architecture, blobs)?;
                }
                (None, Some(config), Some(layers)) => {
                    if !CONFIGURATIONS.contains(&config.media.as_str()) {
                        let what =
                            format!("it is none, but an artifact with a configuration of the type {}", config.media);
                        return Err(Fault::Foreign(what, "name the image that it belongs to"));
                    }
                    if let Some(locked) = layers.iter().find(|layer| layer.media.contains("encrypted")) {
                        return Err(Fault::broken(format!("its layer {} is encrypted", locked.digest)));
                    }
                    let annotations = manifest.annotations.unwrap_or_default();
                    let layers = layers.iter().map(Descriptor::blob).collect();
                    return Self::of(configuration(&small(blobs, &config.blob())?)?, layers, annotations);
                }
                _ if manifest.old_layers.is_some() => {
                    let what = "its manifest is of Docker's first schema, which names no digests of content".into();
                    return Err(Fault::Foreign(what, "pull it and push it again with a present version of Docker"));
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
            choice.tag.as_ref().is_none_or(|tag| tags(one).iter().any(|own| choose::is_name_of(own, tag)))
        };
        let mut found: Vec<&Saved> = saved.iter().filter(fits).collect();
        // Each tag may have an item of its own.
        found.dedup_by(|a, b| (&a.config, &a.layers) == (&b.config, &b.layers));
        let [one] = found[..] else {
            let known: Vec<String> = saved.iter().flat_map(tags).collect();
            return Err(choose::several(found.len(), choice.tag.as_deref(), &known));
        };
        let place =
            |path: &str| Blob { digest: String::new(), size: None, is_manifest: false, place: Some(path.to_owned()) };
        let bytes = read(blobs, &place(&one.config))?;
        // Its name is its digest, as Docker, skopeo and crane write it.
        let named = one.config.rsplit(['/', ':']).next().unwrap_or_default().trim_end_matches(".json");
        if named.len() == 64 && !digest::fits(&format!("sha256:{named}"), &bytes) {
            return Err(Fault::broken(format!("its configuration has not the digest {named} that it is named by")));
        }
        let config = configuration(&bytes)?;
        let layers = one.layers.iter().zip(&config.diff_ids);
        let layers = layers.map(|(path, digest)| Blob { digest: digest.clone(), ..place(path) }).collect();
        if one.layers.len() != config.diff_ids.len() {
            return Err(unequal(one.layers.len(), config.diff_ids.len()));
        }
        Self::of(config, layers, Default::default())
    }

    fn of(
        config: Config,
        layers: Vec<Blob>,
        annotations: std::collections::BTreeMap<String, String>,
    ) -> Result<Self, Fault> {
        if let Some(system) = config.platform.as_deref().filter(|platform| !platform.starts_with("linux/")) {
            let what = format!("it is for {system}, and no other system than Linux is known here");
            return Err(Fault::Foreign(what, "name an image for linux"));
        }
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

/// A small blob, which must be the one with its digest.
fn small(blobs: &dyn Blobs, blob: &Blob) -> Result<Vec<u8>, Fault> {
    if !is_sha256(&blob.digest) {
        return Err(Fault::broken(format!("the digest {:?} is no sha256 digest", blob.digest)));
    }
    let bytes = read(blobs, blob)?;
    let found = sha256(&bytes);
    if found != blob.digest {
        return Err(Fault::broken(format!("what is named {} has the digest {found}", blob.digest)));
    }
    Ok(bytes)
}

fn read(blobs: &dyn Blobs, blob: &Blob) -> Result<Vec<u8>, Fault> {
    let too_large = || bound::too_large(blob.words());
    let reader = bound::open(blobs, blob, bound::LARGEST + 1).map_err(|fault| match fault {
        Fault::TooLarge(_) => too_large(),
        other => other,
    })?;
    let bytes = bound::small(reader).map_err(|error| Fault::from(error).of(blob.words()))?;
    bytes.ok_or_else(too_large)
}
