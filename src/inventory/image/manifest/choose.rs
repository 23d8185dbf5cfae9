//! Which manifest of an index is meant: by its name, then by its platform, as container engines choose.

use std::collections::BTreeSet;

use super::{Blob, Blobs, CONFIGURATIONS, Descriptor, Fault, Json, Platform, small};

/// Where a layout says the name or the tag of a manifest: containerd's and Docker's whole name first, then the image
/// specification's.
const NAMES: [&str; 2] = ["io.containerd.image.name", "org.opencontainers.image.ref.name"];
/// What builders attach to images that is none.
const ATTACHED: &str = "vnd.docker.reference.type";
/// How cosign names what belongs to the image with a digest: `sha256-<hex>.sig`.
const ENDINGS: [&str; 3] = [".sig", ".att", ".sbom"];

impl Descriptor {
    /// Its names, the fullest first.
    fn names(&self) -> impl Iterator<Item = &str> {
        NAMES.iter().filter_map(|name| self.annotation(name))
    }

    /// Whether its index says that it belongs to an image and is none.
    fn is_attached(&self) -> bool {
        let unknown = |own: &Platform| own.os == "unknown" && own.architecture == "unknown";
        self.annotation(ATTACHED).is_some()
            || self.artifact.as_ref().is_some_and(|kind| !CONFIGURATIONS.contains(&kind.as_str()))
            || self.platform.as_ref().is_some_and(unknown)
            || self.names().any(is_cosigns)
    }

    fn is_for(&self, architecture: &str) -> bool {
        self.platform.as_ref().is_some_and(|own| own.os == "linux" && own.architecture == architecture)
    }
}

impl Platform {
    /// Whether any processor of its architecture will do: containerd takes these variants for none (`platforms`,
    /// `database.go`), and matches others only where they are asked for.
    fn is_plain(&self) -> bool {
        let least: &[&str] = match self.architecture.as_str() {
            "amd64" => &["", "v1"],
            "arm64" => &["", "8", "v8"],
            _ => &[""],
        };
        least.contains(&self.variant.as_str())
    }

    fn words(&self) -> String {
        let variant = if self.is_plain() { String::new() } else { format!("/{}", self.variant) };
        format!("{}/{}{variant}", self.os, self.architecture)
    }
}

/// The manifest of an index that is meant, or the index.
pub(super) fn choose(
    manifests: &[Descriptor],
    tag: Option<&str>,
    architecture: &str,
    blobs: &dyn Blobs,
) -> Result<Vec<u8>, Fault> {
    let images: Vec<&Descriptor> = manifests.iter().filter(|one| !one.is_attached()).collect();
    let known = || images.iter().filter_map(|one| one.names().next().map(str::to_owned)).collect::<Vec<_>>();
    let mut found = images.clone();
    if let Some(tag) = tag {
        // A whole name means more than a part of one.
        let exact: Vec<&Descriptor> = images.iter().copied().filter(|one| one.names().any(|own| own == tag)).collect();
        let loose = |one: &&Descriptor| one.names().any(|own| is_name_of(own, tag));
        found = if exact.is_empty() { images.iter().copied().filter(loose).collect() } else { exact };
    }
    // One image may have several names.
    let mut seen = BTreeSet::new();
    found.retain(|one| seen.insert(&one.digest));
    if found.len() > 1 {
        // What the others are makes no difference then.
        if let [one] = plain(&found, architecture)[..] {
            let manifest = read(one, blobs)?;
            if !is_artifact(&manifest) {
                return Ok(manifest);
            }
        }
        // One that cannot be read may be any.
        found.retain(|one| !read(one, blobs).is_ok_and(|manifest| is_artifact(&manifest)));
    }
    if let [one] = found[..] {
        return read(one, blobs);
    }
    let fitting: Vec<&Descriptor> = found.iter().copied().filter(|one| one.is_for(architecture)).collect();
    let plain = plain(&found, architecture);
    match (&plain[..], &fitting[..]) {
        ([one], _) | ([], [one]) => return read(one, blobs),
        // Engines take the first of those that differ in nothing that an index says.
        ([first, ..], _) if plain.iter().all(|one| one.names().next().is_none()) => return read(first, blobs),
        _ => {}
    }
    let platforms: Vec<&Platform> = found.iter().filter_map(|one| one.platform.as_ref()).collect();
    if !platforms.is_empty() && plain.is_empty() {
        let words: Vec<String> = platforms.iter().map(|own| own.words()).collect();
        let what = format!("it is not for linux/{architecture}, but for {}", words.join(", "));
        let fix = "read the one for another platform: --platform linux-aarch64 or linux-x86_64; or name another image";
        return Err(Fault::Foreign(what, fix));
    }
    Err(several(found.len(), tag, &known()))
}

/// Those for any processor of an architecture.
fn plain<'d>(found: &[&'d Descriptor], architecture: &str) -> Vec<&'d Descriptor> {
    let plain = |one: &&Descriptor| one.platform.as_ref().is_some_and(Platform::is_plain);
    found.iter().copied().filter(|one| one.is_for(architecture)).filter(plain).collect()
}

/// Whether `tag` is what a user calls the image `name`: its whole name, its tag, or its name without where it is from.
pub(super) fn is_name_of(name: &str, tag: &str) -> bool {
    let is_end = |rest: &str| rest.is_empty() || rest.ends_with(['/', ':']);
    !tag.is_empty() && name.strip_suffix(tag).is_some_and(is_end)
}

fn is_cosigns(name: &str) -> bool {
    let tag = name.rsplit(':').next().unwrap_or_default();
    let digest = tag.strip_prefix("sha256-").and_then(|rest| ENDINGS.iter().find_map(|end| rest.strip_suffix(end)));
    digest.is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn read(one: &Descriptor, blobs: &dyn Blobs) -> Result<Vec<u8>, Fault> {
    small(blobs, &Blob { is_manifest: true, ..one.blob() })
}

/// Whether a manifest says of itself that it is of no image.
fn is_artifact(manifest: &[u8]) -> bool {
    let config = serde_json::from_slice::<Json>(manifest).ok().and_then(|json| json.config);
    config.is_some_and(|config| !CONFIGURATIONS.contains(&config.media.as_str()))
}

pub(super) fn several(found: usize, tag: Option<&str>, known: &[String]) -> Fault {
    let names = known.join(", ");
    match (found, tag, known) {
        (0, Some(tag), []) => {
            Fault::Foreign(format!("there is no image {tag} in it: those in it have no names"), "leave the name out")
        }
        (0, Some(tag), _) => Fault::Foreign(format!("there is no image {tag} in it, only {names}"), "name one that is"),
        (0, None, _) => Fault::broken("there is no image in it".into()),
        (_, _, []) => {
            let fix = "copy the one that is meant to a layout or an archive of its own: skopeo copy";
            Fault::Foreign("there are several images in it, without names".into(), fix)
        }
        _ => Fault::Foreign(format!("there are several images in it ({names})"), "name one behind a colon"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_what_users_call_them() {
        let name = "docker.io/library/a:1.2";
        for tag in ["docker.io/library/a:1.2", "library/a:1.2", "a:1.2", "1.2"] {
            assert!(is_name_of(name, tag), "{tag}");
        }
        for tag in ["", "2", "a", "b:1.2", "docker.io/library/a"] {
            assert!(!is_name_of(name, tag), "{tag}");
        }
        let digest = "0".repeat(64);
        assert!(is_cosigns(&format!("sha256-{digest}.sig")) && is_cosigns(&format!("x/a:sha256-{digest}.att")));
        assert!(!is_cosigns("sha256-x.sig") && !is_cosigns(&format!("sha256-{digest}")) && !is_cosigns("a.sig"));
    }
}
