//! What a registry gives as an image: takes its bytes, says whether they are a manifest or an index, and for which
//! platforms.
//!
//! Specifications: OCI image 1.1 (manifest, index) and Docker's image manifest version 2, schema 2.

use serde::Deserialize;

use super::name::is_digest;

/// Manifests of several platforms come first: their digest is the one to lock.
pub(super) const ACCEPTED: &str = "application/vnd.oci.image.index.v1+json, \
     application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.oci.image.manifest.v1+json;q=0.5, \
     application/vnd.docker.distribution.manifest.v2+json;q=0.5";
const INDEXES: [&str; 2] =
    ["application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json"];
const MANIFESTS: [&str; 2] =
    ["application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json"];

/// A manifest.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Manifest {
    /// Of several images, for these platforms: `linux/amd64`.
    Index(Vec<String>),
    /// Of one image.
    Image,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    schema_version: Option<u64>,
    media_type: Option<String>,
    manifests: Option<Vec<Descriptor>>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
}

#[derive(Deserialize)]
struct Descriptor {
    digest: String,
    platform: Option<Platform>,
}

#[derive(Deserialize)]
struct Platform {
    os: Option<String>,
    architecture: Option<String>,
}

/// Reads a manifest.
///
/// # Errors
/// What is wrong with it, in words.
pub(super) fn read(bytes: &[u8]) -> Result<Manifest, String> {
    let document: Document = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    match document.schema_version {
        Some(2) => {}
        Some(other) => return Err(format!("its schemaVersion is {other}, not 2")),
        None => return Err("it has no schemaVersion".into()),
    }
    let (manifest, known, named) = match (document.manifests, document.config, document.layers) {
        (Some(manifests), None, None) => {
            let digests = manifests.iter().map(|one| one.digest.clone()).collect();
            let platforms = manifests.into_iter().filter_map(|one| one.platform);
            let name = |platform: Platform| Some(format!("{}/{}", platform.os?, platform.architecture?));
            (Manifest::Index(platforms.filter_map(name).collect()), INDEXES, digests)
        }
        (None, Some(config), Some(layers)) => {
            let digests: Vec<String> = layers.into_iter().chain([config]).map(|one| one.digest).collect();
            (Manifest::Image, MANIFESTS, digests)
        }
        // One that is both is taken for either, depending on who reads it (CVE-2021-41190).
        (Some(_), ..) => return Err("it is an index and a manifest at once".into()),
        (None, ..) => return Err("it has neither `manifests` nor `config` and `layers`".into()),
    };
    if let Some(other) = document.media_type.filter(|media| !known.contains(&media.as_str())) {
        return Err(format!("its mediaType is {other:?}, not {}", known[0]));
    }
    match named.iter().find(|digest| !is_digest(digest)) {
        Some(other) => Err(format!("{other:?} in it is no digest")),
        None => Ok(manifest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_and_what_is_none() {
        let digest = format!("sha256:{}", "0".repeat(64));
        let entry = format!(r#"{{"digest": "{digest}", "platform": {{"os": "linux", "architecture": "arm64"}}}}"#);
        let index = format!(r#"{{"schemaVersion": 2, "manifests": [{entry}, {{"digest": "{digest}"}}]}}"#);
        assert_eq!(read(index.as_bytes()), Ok(Manifest::Index(vec!["linux/arm64".into()])));
        let image = format!(
            r#"{{"schemaVersion": 2, "mediaType": "{}", "config": {{"digest": "{digest}"}}, "layers": []}}"#,
            MANIFESTS[0]
        );
        assert_eq!(read(image.as_bytes()), Ok(Manifest::Image));
        for (text, why) in [
            ("{}".to_owned(), "no schemaVersion"),
            (r#"{"errors": [{"code": "UNKNOWN"}]}"#.into(), "no schemaVersion"),
            (r#"{"schemaVersion": 1, "fsLayers": []}"#.into(), "schemaVersion is 1"),
            (r#"{"schemaVersion": 2}"#.into(), "neither"),
            (r#"{"schemaVersion": 2, "layers": []}"#.into(), "neither"),
            (image.replace("\"config\"", "\"manifests\": [], \"config\""), "at once"),
            (image.replace(MANIFESTS[0], INDEXES[0]), "mediaType"),
            (image.replace(MANIFESTS[0], "text/html"), "mediaType"),
            (index.replacen(&digest, "sha256:00", 1), "no digest"),
            (image.replace(&digest, "latest"), "no digest"),
            ("[]".into(), "invalid"),
            (String::new(), "EOF"),
        ] {
            let said = read(text.as_bytes()).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
