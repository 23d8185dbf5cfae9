//! Images from a registry that answers as it is told: tokens, breaks and lies.

use std::collections::HashMap;
use std::sync::Arc;

use sha2::{Digest, Sha512};

use super::make::{Layer, Made, Packed, sha256};
use crate::cli::program::Place;
use crate::registry::server::{Reply, Seen, Server, ranged, reply};

/// The blobs of an image by digest, and its manifest.
struct Image {
    blobs: HashMap<String, Vec<u8>>,
    manifest: Vec<u8>,
}

fn image() -> Image {
    image_packed(Packed::Plain)
}

fn image_packed(packed: Packed) -> Image {
    let folder = tempfile::tempdir().unwrap();
    let layers = [
        Layer::default().file("etc/os-release", "ID=debian\n"),
        Layer::default().file("a.py", &"text ".repeat(50_000)),
    ];
    Made::of(&layers).layout(folder.path(), packed);
    let blobs: HashMap<String, Vec<u8>> = std::fs::read_dir(folder.path().join("blobs/sha256"))
        .unwrap()
        .map(|entry| std::fs::read(entry.unwrap().path()).unwrap())
        .map(|bytes| (sha256(&bytes), bytes))
        .collect();
    let manifest = blobs.values().find(|bytes| bytes.starts_with(b"{\"config\"")).unwrap().clone();
    Image { blobs, manifest }
}

/// What a registry has at a path: the manifest behind an index for two platforms, and the blobs.
fn at(image: &Image, seen: &Seen) -> Reply {
    let name = seen.path.rsplit('/').next().unwrap();
    let digest = name.trim_start_matches("sha256:");
    let own = sha256(&image.manifest);
    match () {
        () if seen.path == "/v2/a/b/manifests/1" => {
            let entry = |digest: &str, architecture: &str| {
                format!(
                    "{{\"digest\": \"sha256:{digest}\", \"platform\": {{\"os\": \"linux\", \"architecture\": \"{architecture}\"}}}}"
                )
            };
            let other = entry(&"0".repeat(64), "arm64");
            reply(200, "", format!("{{\"manifests\": [{other}, {}]}}", entry(&own, "amd64")))
        }
        () if seen.path == format!("/v2/a/b/manifests/sha256:{own}") => reply(200, "", image.manifest.clone()),
        () if seen.path.starts_with("/v2/a/b/blobs/") => match image.blobs.get(digest) {
            Some(bytes) => ranged(seen, bytes),
            None => reply(404, "", ""),
        },
        () => reply(404, "", ""),
    }
}

fn run(answer: impl Fn(&Image, &Seen) -> Reply + Send + Sync + 'static) -> (Server, crate::cli::program::Ran) {
    run_named(":1", answer)
}

/// The same of an image with another tag or digest.
fn run_named(
    tag: &str,
    answer: impl Fn(&Image, &Seen) -> Reply + Send + Sync + 'static,
) -> (Server, crate::cli::program::Ran) {
    run_image(image(), tag, answer)
}

fn run_image(
    image: Image,
    tag: &str,
    answer: impl Fn(&Image, &Seen) -> Reply + Send + Sync + 'static,
) -> (Server, crate::cli::program::Ran) {
    let image = Arc::new(image);
    let server = Server::start(move |seen| answer(&image, seen));
    let place = Place::empty();
    let subject = format!("registry:{}/a/b{tag}", server.url.trim_start_matches("http://"));
    let ran = place.run(&["verify", &subject]);
    (server, ran)
}

#[test]
fn a_token_is_asked_for_and_sent() {
    let (server, ran) = run(|image, seen| match seen.headers.get("authorization").map(String::as_str) {
        _ if seen.path.starts_with("/token") => {
            assert!(seen.path.contains("scope=repository%3Aa%2Fb%3Apull"), "{}", seen.path);
            reply(200, "", "{\"token\": \"T\"}")
        }
        Some("Bearer T") => at(image, seen),
        _ => {
            let challenge = format!("Bearer realm=\"http://{}/token\",service=\"s\"", seen.headers["host"]);
            reply(401, "", "").header("WWW-Authenticate", challenge)
        }
    });
    ran.code(3);
    assert_eq!(server.seen().iter().filter(|seen| seen.path.starts_with("/token")).count(), 1);
}

/// It goes on where it broke off.
#[test]
fn a_blob_that_breaks_off_is_resumed() {
    let (server, ran) = run(|image, seen| {
        let answer = at(image, seen);
        let cut = seen.path.contains("/blobs/") && seen.before < 2 && answer.body.len() > 1000;
        Reply { cut: cut.then_some(answer.body.len() / 2), ..answer }
    });
    ran.code(3);
    let ranges: Vec<String> = server.seen().iter().filter_map(|seen| seen.headers.get("range").cloned()).collect();
    assert!(
        ranges.len() >= 2 && ranges.iter().all(|range| range.starts_with("bytes=") && range.ends_with('-')),
        "{ranges:?}"
    );
}

/// As servers answer that take a packed layer for a plain one which they pack on the way.
#[test]
fn a_blob_comes_as_it_is_stored() {
    let image = image_packed(Packed::Gzip);
    let (_, ran) = run_image(image, ":1", |image, seen| {
        let answer = at(image, seen);
        let unpacks = seen.headers.get("accept-encoding").is_some_and(|forms| forms.contains("gzip"));
        let packed = seen.path.contains("/blobs/") && answer.body.starts_with(b"\x1f\x8b");
        if unpacks && packed { answer.header("Content-Encoding", "gzip") } else { answer }
    });
    ran.code(3);
}

/// All of it is asked for again where no rest is given, or another than was asked for.
#[test]
fn a_server_that_is_wrong_about_ranges() {
    let refuses =
        |seen: &Seen, _: Reply| reply(416, "", "").header("Content-Range", format!("bytes */{}", seen.before));
    let shifts = |seen: &Seen, answer: Reply| match answer.status {
        206 => {
            let whole = answer.body.len();
            reply(206, "", &answer.body[1..]).header("Content-Range", format!("bytes 1-{whole}/*"))
        }
        _ => panic!("{} {:?}", answer.status, seen.headers),
    };
    let wrong: [fn(&Seen, Reply) -> Reply; 2] = [refuses, shifts];
    for wrong in wrong {
        let (server, ran) = run(move |image, seen| {
            let answer = at(image, seen);
            if seen.headers.contains_key("range") {
                return wrong(seen, answer);
            }
            let cut = seen.path.contains("/blobs/") && seen.before < 1 && answer.body.len() > 1000;
            Reply { cut: cut.then_some(answer.body.len() / 2), ..answer }
        });
        ran.code(3);
        assert!(server.seen().iter().any(|seen| seen.headers.contains_key("range")));
    }
}

#[test]
fn what_is_not_what_it_is_named_by_is_refused() {
    let (_, ran) = run(|image, seen| {
        let mut answer = at(image, seen);
        if answer.body.len() > 100_000 {
            answer.body[1000] ^= 1;
        }
        answer
    });
    let ran = ran.code(2);
    assert!(ran.err.contains("not the one that it is named by"), "{}", ran.err);
    let (_, ran) = run(|image, seen| match seen.path.contains("/blobs/") {
        true => reply(404, "", ""),
        false => at(image, seen),
    });
    ran.code(2).says(&["error[image-missing-tag]", "blobs/sha256:", "HTTP status 404"]);
    let (_, ran) = run(|_, _| reply(200, "", " ".repeat(5 << 20)));
    ran.code(2).says(&["error[image-registry]", "larger than 4194304 bytes"]);
    let (_, ran) = run(|_, _| reply(403, "", ""));
    ran.code(2).says(&["error[image-unauthorized]"]);
}

/// By its digest an image is that image or none, whatever the registry says.
#[test]
fn a_digest_is_that_of_the_manifest() {
    let own = image().manifest;
    let sha512 = data_encoding::HEXLOWER.encode(&Sha512::digest(&own));
    let names = [format!("@sha256:{}", sha256(&own)), format!("@sha512:{sha512}"), format!(":1@sha512:{sha512}")];
    let manifest = |image: &Image, seen: &Seen| match seen.path.contains("/manifests/") {
        true => reply(200, "", image.manifest.clone()),
        false => at(image, seen),
    };
    for name in &names {
        run_named(name, manifest).1.code(3);
        let (_, ran) = run_named(name, move |image, seen| {
            let mut answer = manifest(image, seen);
            if seen.path.contains("/manifests/") {
                answer.body.push(b' ');
                let asked = seen.path.rsplit('/').next().unwrap().to_owned();
                answer = answer.header("Docker-Content-Digest", asked);
            }
            answer
        });
        ran.code(2).says(&["error[image-digest-mismatch]", "it was asked for sha"]);
    }
    for lie in [format!("sha256:{}", "0".repeat(64)), "zz".into(), format!("sha512:{}", "0".repeat(128))] {
        let (_, ran) = run_named(":1", move |image, seen| manifest(image, seen).header("Docker-Content-Digest", &*lie));
        ran.code(2).says(&["error[image-digest-mismatch]", "the registry says"]);
    }
    for malformed in ["@sha256:zz", "@sha256:", "@", "@sha512:00", &names[0][..70], &names[0].to_uppercase()] {
        let (server, ran) = run_named(malformed, manifest);
        ran.code(2).says(&["error[image-name]"]);
        assert!(server.seen().is_empty());
    }
}

/// A byte more each time is no progress.
#[test]
fn a_blob_that_comes_byte_by_byte_is_given_up() {
    let (server, ran) = run(|image, seen| {
        let answer = at(image, seen);
        let cut = seen.path.contains("/blobs/")
            && seen.before < 100
            && image.blobs.values().any(|blob| blob.len() > 100_000 && seen.path.ends_with(&sha256(blob)));
        Reply { cut: cut.then_some(1), ..answer }
    });
    ran.code(2).says(&["error[image-registry]", "broke off after", "without much more"]);
    assert!(server.seen().iter().filter(|seen| seen.path.contains("/blobs/")).count() < 20);
}

#[test]
fn a_blob_without_end_is_cut_at_its_size() {
    let (_, ran) = run(|image, seen| {
        let mut answer = at(image, seen);
        if answer.body.len() > 100_000 {
            answer.body.resize(answer.body.len() + 1, 0);
        }
        answer
    });
    ran.code(2).says(&["error[image-unreadable]", "does not end after the", "bytes that its manifest says"]);
}

#[test]
fn how_the_connection_ends_behind_a_whole_blob_does_not_matter() {
    let (server, ran) = run(|image, seen| {
        let answer = at(image, seen);
        match seen.path.contains("/blobs/") {
            // It promises more than there is, and closes.
            true => {
                let whole = answer.body.len();
                let mut answer = answer;
                answer.body.push(0);
                Reply { cut: Some(whole), ..answer }
            }
            false => answer,
        }
    });
    ran.code(3);
    assert!(server.seen().iter().all(|seen| !seen.headers.contains_key("range")));
}
