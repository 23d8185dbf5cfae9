//! Digests of images: from registries made by code, which ask for tokens and lie, and from the real one of Debian.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use gpulock::diag::Failure;
use gpulock::digest::sha256;
use gpulock::python::Platform;
use gpulock::registry::{Found, Options, Registries, Timing};
use serde_json::{Value, json};

use super::registry_server::RegistryServer;
use super::server::{Reply, Seen, Server, reply};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

fn index() -> Vec<u8> {
    let entry = |architecture: &str| {
        json!({"mediaType": MANIFEST, "digest": sha256(architecture.as_bytes()), "size": 1,
               "platform": {"os": "linux", "architecture": architecture}})
    };
    json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry("amd64"), entry("arm64")]}).to_string().into()
}

/// A manifest of one image.
fn single() -> Vec<u8> {
    let config = json!({"mediaType": "application/vnd.oci.image.config.v1+json", "digest": sha256(b"x"), "size": 1});
    json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": []}).to_string().into()
}

/// Registries with the Docker configuration in `folder`, and every image of docker.io asked for at `mirror`.
fn registries(folder: &Path, mirror: Option<&str>) -> Result<Registries, Failure> {
    let folder = folder.to_str().unwrap().to_owned();
    let env = move |name: &str| (name == "DOCKER_CONFIG").then(|| folder.clone());
    let mut options = Options::from_environment([], &env).unwrap();
    let (connect, read) = (Duration::from_secs(5), Duration::from_millis(500));
    options.timing = Timing { connect, read, retries: 1, backoff: Duration::from_millis(5) };
    let mirrors: Vec<(String, String)> = mirror.map(|url| ("docker.io".into(), url.into())).into_iter().collect();
    Registries::new(options, &env, &mirrors)
}

/// The name of an image in the registry at `url`.
fn at(url: &str, image: &str) -> String {
    format!("{}/{image}", url.trim_start_matches("http://"))
}

fn ask(url: &str, image: &str) -> Result<Found, Failure> {
    let folder = tempfile::tempdir().unwrap();
    registries(folder.path(), None).unwrap().digest(&at(url, image), Platform::LinuxX86_64)
}

fn refused(answer: Result<Found, Failure>, code: &str, words: &[&str]) {
    let failure = answer.unwrap_err();
    let said = format!("{:?}", failure.diagnostics[0]);
    assert_eq!(failure.diagnostics[0].code, code, "{said}");
    words.iter().for_each(|word| assert!(said.contains(word), "{word}: {said}"));
}

fn manifest(media: &str, body: Vec<u8>) -> Reply {
    let digest = sha256(&body);
    reply(200, media, body).header("Docker-Content-Digest", digest)
}

#[test]
fn of_an_index_its_own_digest() {
    let server = Server::start(|seen| match &*seen.path {
        "/v2/nvidia/cuda/manifests/1" => manifest(INDEX, index()),
        "/v2/one/manifests/1" => manifest(MANIFEST, single()),
        _ => reply(404, "", ""),
    });
    let found = ask(&server.url, "nvidia/cuda:1").unwrap();
    assert_eq!(found, Found { digest: sha256(&index()), single: false });
    assert!(server.seen()[0].headers["accept"].starts_with(INDEX));
    assert!(ask(&server.url, "one:1").unwrap().single);
    refused(ask(&server.url, "nvidia/cuda:2"), "image-missing-tag", &["there is no tag `2`", "HTTP status 404"]);
}

#[test]
fn a_mirror_stands_for_a_registry() {
    let server = Server::start(|seen| match &*seen.path {
        "/hub/v2/library/python/manifests/3.11-slim" => manifest(INDEX, index()),
        _ => reply(404, "", ""),
    });
    let folder = tempfile::tempdir().unwrap();
    let registries = registries(folder.path(), Some(&format!("{}/hub/", server.url))).unwrap();
    assert_eq!(registries.digest("python:3.11-slim", Platform::LinuxAarch64).unwrap().digest, sha256(&index()));
    assert!(self::registries(folder.path(), Some("ftp://x")).is_err());
}

#[test]
fn a_mirror_gets_its_own_login() {
    let server = Server::start(|seen| match seen.headers.get("authorization").map(String::as_str) {
        Some("Basic bWU6c2VjcmV0") => manifest(INDEX, index()),
        _ => reply(401, "", "").header("WWW-Authenticate", "Basic realm=\"x\""),
    });
    let folder = tempfile::tempdir().unwrap();
    let host = server.url.trim_start_matches("http://");
    let ask = |login_for: &str| {
        let config = json!({"auths": {login_for: {"auth": "bWU6c2VjcmV0"}}});
        std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
        registries(folder.path(), Some(&server.url)).unwrap().digest("python:3.11-slim", Platform::LinuxX86_64)
    };
    let mirror = format!("registry docker.io, asked at its mirror {host}");
    refused(ask("docker.io"), "image-unauthorized", &[&mirror, &format!("docker login {host}")]);
    assert!(server.seen().iter().all(|seen| !seen.headers.contains_key("authorization")));
    assert_eq!(ask(host).unwrap().digest, sha256(&index()));
}

/// Asks for a token, and gives one to whom `login` names.
fn guarded(seen: &Seen, url: &str, login: &str) -> Reply {
    if seen.path.starts_with("/token?") {
        let asked = "/token?account=x&service=test+registry&scope=repository%3Aa%2Fb%3Apull";
        let known = seen.headers.get("authorization").map(String::as_str);
        return match (&*seen.path == asked, known == Some(login)) {
            (true, true) => reply(200, "application/json", json!({"token": "t0ken"}).to_string()),
            _ => reply(401, "", ""),
        };
    }
    match seen.headers.get("authorization").map(String::as_str) {
        Some("Bearer t0ken") => manifest(INDEX, index()),
        _ => {
            let scope = "repository:a/b:pull";
            let challenge =
                format!("Bearer realm=\"{url}/token?account=x\",service=\"test registry\",scope=\"{scope}\"");
            reply(401, "", "").header("WWW-Authenticate", challenge)
        }
    }
}

#[test]
fn a_token_is_fetched_with_the_login_of_docker() {
    let url: std::sync::Arc<std::sync::OnceLock<String>> = Default::default();
    let own = std::sync::Arc::clone(&url);
    // `me:secret` in base64.
    let server = Server::start(move |seen| guarded(seen, own.get().unwrap(), "Basic bWU6c2VjcmV0"));
    url.set(server.url.clone()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let image = at(&server.url, "a/b:1");
    let digest = || registries(folder.path(), None).unwrap().digest(&image, Platform::LinuxX86_64);
    refused(
        digest(),
        "image-unauthorized",
        &["no token: HTTP status 401", "no login was sent", "docker login 127.0.0.1"],
    );
    let config = |auth: &str| {
        let host = server.url.trim_start_matches("http://");
        let text = json!({"auths": {host: {"auth": auth}}}).to_string();
        std::fs::write(folder.path().join("config.json"), text).unwrap();
    };
    config("bWU6d3Jvbmc=");
    refused(digest(), "image-unauthorized", &["is not accepted"]);
    config("bWU6c2VjcmV0");
    assert_eq!(digest().unwrap().digest, sha256(&index()));
    assert!(!format!("{:?}", ask(&server.url, "a/b:1")).contains("secret"));
    std::fs::write(folder.path().join("config.json"), "{\"auths\": 1, \"x\": \"secret\"").unwrap();
    let broken = registries(folder.path(), None).map(|_| ()).unwrap_err();
    assert!(broken.diagnostics[0].code == "docker-config" && !format!("{broken:?}").contains("secret"));
}

#[test]
fn what_a_registry_says_is_not_taken_on_trust() {
    let server = Server::start(|seen| match &*seen.path {
        "/v2/lies/manifests/1" => reply(200, INDEX, index()).header("Docker-Content-Digest", sha256(b"else")),
        "/v2/text/manifests/1" => reply(200, "text/html", "<html>"),
        "/v2/arm/manifests/1" => {
            let entry = json!({"digest": sha256(b"x"), "platform": {"os": "linux", "architecture": "arm64"}});
            manifest(INDEX, json!({"schemaVersion": 2, "manifests": [entry]}).to_string().into())
        }
        "/v2/digest/manifests/1" => reply(401, "", "").header("WWW-Authenticate", "Digest realm=\"x\""),
        "/v2/elsewhere/manifests/1" => {
            reply(401, "", "").header("WWW-Authenticate", "Bearer realm=\"file:///etc/passwd\"")
        }
        "/v2/basic/manifests/1" => reply(401, "", "").header("WWW-Authenticate", "Basic realm=\"x\""),
        "/v2/large/manifests/1" => reply(200, INDEX, vec![b' '; 5 << 20]),
        _ => reply(503, "", ""),
    });
    let of = |image: &str| ask(&server.url, &format!("{image}:1"));
    refused(of("lies"), "image-digest-mismatch", &["the registry says sha256:", "do not use this image"]);
    refused(of("text"), "image-registry", &["no manifest", "text/html"]);
    refused(of("arm"), "image-platform", &["not for linux/amd64", "linux/arm64"]);
    refused(of("digest"), "image-unauthorized", &["not known here"]);
    refused(of("elsewhere"), "image-unauthorized", &["not known here"]);
    refused(of("basic"), "image-unauthorized", &["asks for a login (Basic)"]);
    refused(of("large"), "image-registry", &["larger than"]);
    refused(of("down"), "image-registry", &["cannot be asked", "503", "--registry-mirror"]);
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    refused(ask(&format!("http://{gone}"), "a:1"), "image-registry", &["cannot be asked"]);
}

#[test]
fn only_a_manifest_has_a_digest() {
    let server = Server::start(|seen| match seen.path.split('/').nth(2).unwrap() {
        "object" => reply(200, "application/json", "{}"),
        "page" => reply(200, INDEX, json!({"errors": [{"code": "DENIED"}]}).to_string()),
        "old" => reply(200, "", json!({"schemaVersion": 1, "fsLayers": []}).to_string()),
        "both" => {
            let mut both: Value = serde_json::from_slice(&single()).unwrap();
            both["manifests"] = json!([]);
            reply(200, INDEX, both.to_string())
        }
        _ => reply(200, "application/octet-stream", index()),
    });
    let of = |image: &str| ask(&server.url, image);
    refused(
        of("object:1"),
        "image-registry",
        &["the answer is no manifest", "2 bytes of application/json", "no schemaVersion"],
    );
    refused(of("page:1"), "image-registry", &["the answer is no manifest", "no schemaVersion"]);
    refused(of("old:1"), "image-registry", &["of no type", "schemaVersion is 1, not 2"]);
    refused(of("both:1"), "image-registry", &["an index and a manifest at once"]);
    // The type that the server names for a good one does not matter.
    assert_eq!(of("good:1").unwrap().digest, sha256(&index()));
    assert_eq!(of(&format!("good@{}", sha256(&index()))).unwrap().digest, sha256(&index()));
    let other = format!("good@{}", sha256(b"x"));
    refused(of(&other), "image-digest-mismatch", &["not the manifest that it is said to be"]);
    let before = server.seen().len();
    for text in ["-x", "--help", "a b", "A:1", "a@sha256:00", "../a"] {
        let folder = tempfile::tempdir().unwrap();
        let answer = registries(folder.path(), None).unwrap().digest(text, Platform::LinuxX86_64);
        refused(answer, "image-name", &["is not the name of an image"]);
    }
    assert_eq!(server.seen().len(), before);
}

/// Asks for a login whatever is sent, and gives tokens to everyone.
fn never_content(seen: &Seen, url: &str) -> Reply {
    match seen.path.starts_with("/token") {
        true => reply(200, "", json!({"token": "t"}).to_string()),
        false => reply(401, "", "").header("WWW-Authenticate", format!("Bearer realm=\"{url}/token\"")),
    }
}

#[test]
fn a_registry_that_is_never_content_is_left() {
    let url: std::sync::Arc<std::sync::OnceLock<String>> = Default::default();
    let own = std::sync::Arc::clone(&url);
    let server = Server::start(move |seen| never_content(seen, own.get().unwrap()));
    url.set(server.url.clone()).unwrap();
    refused(ask(&server.url, "a:1"), "image-unauthorized", &["HTTP status 401"]);
    assert_eq!(server.seen().len(), 3);
    let folder = tempfile::tempdir().unwrap();
    let registries = registries(folder.path(), None).unwrap();
    let failure = registries.image(&at(&server.url, "a:1")).map(|_| ()).unwrap_err();
    assert_eq!(failure.diagnostics[0].code, "image-unauthorized");
    assert!(format!("{failure:?}").contains("though what it asks for was sent"));
    assert_eq!(server.seen().len(), 6);
}

#[test]
fn a_login_goes_to_no_other_host_without_tls() {
    let other = Server::start(|_| reply(200, "", json!({"token": "t"}).to_string()));
    // The same machine by another name.
    let realm = other.url.replace("127.0.0.1", "localhost");
    let server = Server::start(move |_| {
        reply(401, "", "").header("WWW-Authenticate", format!("Bearer realm=\"{realm}/token\""))
    });
    let folder = tempfile::tempdir().unwrap();
    let host = server.url.trim_start_matches("http://");
    let config = json!({"auths": {host: {"auth": "bWU6c2VjcmV0"}}});
    std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    let answer = registries(folder.path(), None).unwrap().digest(&at(&server.url, "a:1"), Platform::LinuxX86_64);
    refused(answer, "image-unauthorized", &["without TLS, at http://localhost:"]);
    assert!(other.seen().is_empty());
}

#[test]
fn where_a_redirect_leads_is_told() {
    let server = Server::start(|seen| match seen.path.split('/').nth(2).unwrap() {
        "file" => reply(302, "", "").header("Location", "file:///etc/passwd"),
        "mail" => reply(307, "", "").header("Location", "mailto:a@b"),
        "nowhere" => reply(302, "", ""),
        "teapot" => reply(418, "", ""),
        _ => reply(302, "", "").header("Location", seen.path.clone()),
    });
    for (image, words) in [
        ("file:1", "302"),
        ("mail:1", "redirects to where nothing can be asked"),
        ("nowhere:1", "302"),
        ("teapot:1", "418"),
        ("round:1", "redirect"),
    ] {
        refused(ask(&server.url, image), "image-registry", &[words]);
    }
    assert!(server.count("/v2/round/manifests/1") <= 11);
}

/// As `az acr login` leaves it, and helpers say it: what is kept is no password.
#[test]
fn an_identity_token_gets_others() {
    let server = Server::start(|seen| match (&*seen.method, &*seen.path) {
        ("POST", "/token") if seen.body.contains("refresh_token=a%2Bb") => reply(200, "", r#"{"access_token": "T"}"#),
        ("POST", "/leads") => reply(307, "", "").header("Location", "/token"),
        (_, path) if seen.headers.get("authorization").is_some_and(|own| own == "Bearer T") && path != "/token" => {
            manifest(INDEX, index())
        }
        (_, path) => {
            let realm = if path.contains("led") { "leads" } else { "token" };
            let challenge = format!("Bearer realm=\"http://{}/{realm}\",service=\"s\"", seen.headers["host"]);
            reply(401, "", "").header("WWW-Authenticate", challenge)
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let host = server.url.trim_start_matches("http://");
    let config = json!({"auths": {host: {"auth": "MDAwMDo=", "identitytoken": "a+b"}}});
    std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    let ask = |image: &str| {
        let registries = registries(folder.path(), None).unwrap();
        registries.digest(&at(&server.url, image), Platform::LinuxX86_64)
    };
    assert_eq!(ask("a:1").unwrap().digest, sha256(&index()));
    let sent = server.seen().into_iter().find(|seen| seen.method == "POST").unwrap();
    let expected =
        "service=s&scope=repository%3Aa%3Apull&grant_type=refresh_token&client_id=gpulock&refresh_token=a%2Bb";
    assert_eq!(sent.body, expected);
    assert!(
        server.seen().iter().all(|seen| !seen.headers.get("authorization").is_some_and(|own| own.contains("Basic")))
    );
    // No redirect takes it along.
    refused(ask("led:1"), "image-unauthorized", &["no token: HTTP status 307"]);
    assert_eq!(server.seen().iter().filter(|seen| seen.method == "POST" && seen.path == "/token").count(), 1);
}

/// All steps have one end: 1.5 s, of which each takes 0.4 s at least.
#[test]
fn slow_steps_have_one_end() {
    let wait = (Duration::from_millis(400), Duration::ZERO);
    let server = Server::start(move |_| Reply { wait, ..reply(503, "", "") });
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap().to_owned();
    let env = move |name: &str| (name == "DOCKER_CONFIG").then(|| folder.clone());
    let mut options = Options::from_environment([], &env).unwrap();
    let (connect, read) = (Duration::from_secs(5), Duration::from_millis(500));
    options.timing = Timing { connect, read, retries: 1000, backoff: Duration::from_millis(1) };
    let registries = Registries::new(options, &env, &[]).unwrap();
    let answer = registries.digest(&at(&server.url, "a:1"), Platform::LinuxX86_64);
    refused(answer, "image-registry", &["cannot be asked", "given up after 1.5s"]);
    assert!(server.seen().len() <= 4, "{}", server.seen().len());
}

#[test]
fn dockers_configuration_may_say_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for text in [
        "",
        " \n",
        "null",
        "{}",
        r#"{"auths": null, "credsStore": null, "credHelpers": null}"#,
        r#"{"auths": {"x": null, "y": {"auth": null}}, "credHelpers": {"x": null}}"#,
    ] {
        std::fs::write(folder.path().join("config.json"), text).unwrap();
        assert!(registries(folder.path(), None).is_ok(), "{text}");
    }
}

/// Debian's docker-registry.
struct Real(RegistryServer);

impl Real {
    /// Sends a request; gives the status and the head of the answer.
    fn send(&self, method: &str, path: &str, media: &str, body: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.0.address).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: {media}\r\nContent-Length: {}\r\n\r\n",
            self.0.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
    }

    fn blob(&self, repository: &str, bytes: &[u8]) {
        let (status, head) = self.send("POST", &format!("/v2/{repository}/blobs/uploads/"), "", b"");
        assert_eq!(status, 202, "{head}");
        let location = head.lines().find_map(|line| line.strip_prefix("Location: ")).unwrap().trim();
        let path = location.trim_start_matches(&format!("http://{}", self.0.address));
        let digest = sha256(bytes).replace(':', "%3A");
        let (status, head) = self.send("PUT", &format!("{path}&digest={digest}"), "application/octet-stream", bytes);
        assert_eq!(status, 201, "{head}");
    }

    fn manifest(&self, repository: &str, tag: &str, media: &str, body: &[u8]) {
        let (status, head) = self.send("PUT", &format!("/v2/{repository}/manifests/{tag}"), media, body);
        assert_eq!(status, 201, "{head}");
    }
}

#[test]
fn the_real_registry_gives_the_digest_of_the_index() {
    let Some(real) = RegistryServer::start(&Value::Null).map(Real) else { return };
    let repository = "nvidia/cuda";
    let mut entries = Vec::new();
    let mut single = String::new();
    for architecture in ["amd64", "arm64"] {
        let config = json!({"os": "linux", "architecture": architecture, "rootfs": {"type": "layers", "diff_ids": []}});
        let config = config.to_string();
        real.blob(repository, config.as_bytes());
        let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "layers": [], "config": {
            "mediaType": "application/vnd.oci.image.config.v1+json",
            "digest": sha256(config.as_bytes()), "size": config.len()}});
        let manifest = manifest.to_string();
        let digest = sha256(manifest.as_bytes());
        real.manifest(repository, &digest, MANIFEST, manifest.as_bytes());
        entries.push(json!({"mediaType": MANIFEST, "digest": digest, "size": manifest.len(),
                            "platform": {"os": "linux", "architecture": architecture}}));
        single = manifest;
    }
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}).to_string();
    real.manifest(repository, "12.8.1-base-ubuntu22.04", INDEX, index.as_bytes());
    real.manifest(repository, "single", MANIFEST, single.as_bytes());
    let url = format!("http://{}", real.0.address);
    let found = ask(&url, "nvidia/cuda:12.8.1-base-ubuntu22.04").unwrap();
    assert_eq!(found, Found { digest: sha256(index.as_bytes()), single: false });
    let found = ask(&url, "nvidia/cuda:single").unwrap();
    assert_eq!(found, Found { digest: sha256(single.as_bytes()), single: true });
    refused(ask(&url, "nvidia/cuda:13.9"), "image-missing-tag", &["there is no tag `13.9`"]);
}
