//! Digests from Debian's registry with images that buildah made: what a resolve locks, and what it says of a registry that
//! gives none. Needs root, which buildah does.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::buildah::Buildah;
use super::registry_server::RegistryServer;
use super::run::{self, folder, gpulock, succeed, timed};
use super::token::Tokens;

const REPOSITORY: &str = "library/python:3.11-slim-bookworm";
const IMAGE: &str = "python:3.11-slim-bookworm";
/// `me` with `secret`, as bcrypt hashes it.
const HTPASSWD: &str = "me:$2b$04$d/W9rVECGo.Zf2K25yGkmeOPzmK3RwP5OPErOlV3tVlr4Fw.9.TUy\n";

/// A project with one target, whose images are asked for in one registry.
struct Project {
    folder: tempfile::TempDir,
    address: String,
}

impl Project {
    fn new(address: &str) -> Self {
        let project = Self { folder: folder(), address: address.to_owned() };
        let manifest = "[stack]\npython = \"3.11\"\ntorch = \"1.13.1\"\n[target.node]\nplatform = \"linux-x86_64\"\n\
                        gpus = [\"A100\"]\ndriver = \"580\"\n[image]\nflavor = \"slim\"\n";
        fs::write(project.path().join("gpulock.toml"), manifest).unwrap();
        project
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn gpulock(&self, arguments: &[&str]) -> Output {
        let mut command = gpulock(self.path(), &self.path().join("cache"));
        // Credential helpers are looked for on PATH.
        let path = format!("{}:{}", self.path().display(), std::env::var("PATH").unwrap());
        command
            .env("PATH", path)
            .env("DOCKER_CONFIG", self.path())
            .env("GPULOCK_HTTP_TIMEOUT", "5")
            .args(arguments)
            .output()
            .unwrap()
    }

    /// The image's line of the lock after a resolve that must succeed, and what the resolve said on standard error.
    fn resolve(&self, more: &[&str]) -> (String, String) {
        let mirror = format!("docker.io=http://{}", self.address);
        let output = self.gpulock(&[&["resolve", "--registry-mirror", &mirror], more].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        let lock = fs::read_to_string(self.path().join("gpulock.lock")).unwrap();
        (lock.lines().find(|line| line.starts_with("image = ")).unwrap().to_owned(), said)
    }

    /// A resolve that locks the tag alone, and says why in these words.
    fn warns(&self, words: &[&str]) {
        // What an earlier lock has of it would be kept.
        let _ = fs::remove_file(self.path().join("gpulock.lock"));
        let (image, said) = self.resolve(&["--upgrade"]);
        assert!(image.contains(IMAGE) && !image.contains("sha256:"), "{image}");
        words.iter().for_each(|word| assert!(said.contains(word), "{word}: {said}"));
        assert!(
            said.contains(&format!("image {IMAGE} of the registry docker.io: ")) && !said.contains("secret"),
            "{said}"
        );
        assert!(said.contains(&format!("asked at its mirror {}", self.address)), "{said}");
    }

    /// The lock has this digest beside the tag.
    fn locks(&self, digest: &str) {
        let (image, said) = self.resolve(&["--upgrade"]);
        assert!(image.contains(&format!("ref = \"{IMAGE}\", digest = \"{digest}\"")), "{image}: {said}");
        assert!(!said.contains("warning["), "{said}");
    }

    /// Docker's configuration with a login for a host.
    fn login(&self, host: &str, login: &str) {
        let config = json!({"auths": {host: {"auth": STANDARD.encode(login)}}});
        fs::write(self.path().join("config.json"), config.to_string()).unwrap();
    }
}

/// Empty images: one for each architecture.
fn images(buildah: &Buildah) {
    for architecture in ["amd64", "arm64"] {
        buildah.image(&format!("localhost/{architecture}"), "scratch", |container| {
            buildah.run(&["config", "--arch", architecture, container]);
        });
    }
}

fn registry(auth: &Value) -> (RegistryServer, Buildah) {
    let registry = RegistryServer::start(auth).expect("docker-registry is installed");
    let buildah = Buildah::new(&registry.address);
    images(&buildah);
    (registry, buildah)
}

#[test]
fn network_root_digest_of_the_index_is_locked() {
    if !run::network() {
        return;
    }
    let (registry, buildah) = registry(&Value::Null);
    let project = Project::new(&registry.address);
    let both = ["localhost/amd64", "localhost/arm64"];
    let first = buildah.push_index(&both, REPOSITORY);
    project.locks(&first);
    let dockerfile = project.gpulock(&["dockerfile", "--require-digest"]);
    let text = String::from_utf8(dockerfile.stdout).unwrap();
    assert!(text.contains(&format!("\nFROM {IMAGE}@{first} AS python\n")), "{text}");

    // A tag that moves: the lock keeps what it has, until it is told to upgrade.
    let second = buildah.push_index(&["localhost/arm64", "localhost/amd64"], REPOSITORY);
    assert_ne!(first, second);
    assert!(project.resolve(&[]).0.contains(&first));
    project.locks(&second);

    // A digest that no registry has: the build ends before its first step.
    let lock = project.path().join("gpulock.lock");
    let wrong = "sha256:".to_owned() + &"0".repeat(64);
    let edited = fs::read_to_string(&lock).unwrap().replace(&second, &wrong);
    fs::write(&lock, gpulock::lock::Lock::parse(&edited, "gpulock.lock").unwrap().to_file()).unwrap();
    assert!(project.gpulock(&["dockerfile", "-o", "Dockerfile"]).status.success());
    let built = buildah.build(project.path(), "localhost/wrong", &[]);
    let said = String::from_utf8_lossy(&built.stderr).into_owned();
    assert!(!built.status.success() && said.contains(&wrong) && said.contains("manifest unknown"), "{said}");

    // Content that is not what the digest says.
    fs::write(registry.manifest(&second), fs::read_to_string(registry.manifest(&second)).unwrap() + " ").unwrap();
    project.warns(&["warning[image-digest-mismatch]", &second, "do not use this image"]);
    buildah.push_index(&["localhost/arm64"], REPOSITORY);
    project.warns(&["warning[image-platform]", "it is not for linux/amd64", "platforms: linux/arm64"]);
    buildah.run(&["push", "--quiet", "--tls-verify=false", "localhost/amd64", &buildah.there(REPOSITORY)]);
    let (image, said) = project.resolve(&["--upgrade"]);
    assert!(image.contains("digest = \"sha256:") && said.contains("note[image-single-platform]"), "{image}: {said}");
}

#[test]
fn network_root_digest_that_no_registry_gives() {
    if !run::network() {
        return;
    }
    let (registry, _buildah) = registry(&Value::Null);
    let project = Project::new(&registry.address);
    project.warns(&["warning[image-missing-tag]", "there is no tag `3.11-slim-bookworm`", "choose another"]);

    // Stopped, it takes connections and says nothing.
    let signal = |name: &str| succeed(Command::new("kill").args([name, &registry.process_id().to_string()]));
    signal("-STOP");
    let (_, took) = timed(|| {
        project.warns(&[
            "warning[image-registry]",
            "the registry cannot be asked",
            "no answer within 5s",
            "--registry-mirror",
        ]);
    });
    signal("-CONT");
    assert!(took.as_secs() < 60, "{took:?}");
    drop(registry);
    project.warns(&["warning[image-registry]", "the registry cannot be asked", "refused", "--registry-mirror"]);

    // Without a registry a Dockerfile has the tag, and a warning; where a digest is required there is none.
    assert!(project.gpulock(&["resolve", "--offline"]).status.success());
    let tagged = project.gpulock(&["dockerfile"]);
    let said = String::from_utf8(tagged.stderr).unwrap();
    assert!(tagged.status.success() && said.contains("warning[image-without-digest]"), "{said}");
    assert!(String::from_utf8(tagged.stdout).unwrap().contains(&format!("\nFROM {IMAGE} AS python\n")));
    let required = project.gpulock(&["dockerfile", "--require-digest"]);
    let said = String::from_utf8(required.stderr).unwrap();
    assert!(said.contains("error[image-without-digest]") && said.contains(IMAGE), "{said}");
    assert_eq!((required.status.code(), required.stdout.len()), (Some(1), 0));
}

#[test]
fn network_root_digest_behind_a_login() {
    if !run::network() {
        return;
    }
    let passwords = folder();
    let file = passwords.path().join("htpasswd");
    fs::write(&file, HTPASSWD).unwrap();
    let (registry, buildah) = registry(&json!({"htpasswd": {"realm": "test", "path": file}}));
    buildah.login("me:secret");
    let digest = buildah.push_index(&["localhost/amd64", "localhost/arm64"], REPOSITORY);
    let project = Project::new(&registry.address);
    let login = format!("`docker login {}`", registry.address);
    project.warns(&["warning[image-unauthorized]", "it asks for a login (Basic)", &login]);
    // A login for the registry that the mirror stands for is not the mirror's.
    project.login("docker.io", "me:secret");
    project.warns(&["warning[image-unauthorized]", "it asks for a login (Basic)"]);
    project.login(&registry.address, "me:other");
    project.warns(&["warning[image-unauthorized]", "HTTP status 401; the login that was sent is not accepted", &login]);
    project.login(&registry.address, "me:secret");
    project.locks(&digest);

    // The same login, kept by a program.
    let helper = |script: &str| {
        let program = project.path().join("docker-credential-test");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let config = json!({"credHelpers": {&registry.address: "test"}, "credsStore": "no such"});
    fs::write(project.path().join("config.json"), config.to_string()).unwrap();
    project.warns(&["it asks for a login (Basic); no login was sent, since the credential helper docker-credential-test cannot be run"]);
    helper("echo 'credentials not found in native keychain'; exit 1");
    project.warns(&["it asks for a login (Basic); no login was sent\n", &login]);
    helper("echo secret; exit 1");
    project.warns(&["the credential helper docker-credential-test failed"]);
    helper("exec sleep 60");
    project.warns(&["the credential helper docker-credential-test gave no answer within 10 s"]);
    helper(&format!(
        "test \"$1 $(cat)\" = 'get {}' && echo '{{\"ServerURL\":\"\",\"Username\":\"me\",\"Secret\":\"secret\"}}'",
        registry.address
    ));
    project.locks(&digest);
}

#[test]
fn network_root_digest_for_a_token() {
    if !run::network() {
        return;
    }
    let tokens = Tokens::start();
    let (registry, buildah) = registry(&tokens.auth());
    buildah.login("me:secret");
    let digest = buildah.push_index(&["localhost/amd64", "localhost/arm64"], REPOSITORY);
    let project = Project::new(&registry.address);
    let before = tokens.asked();
    project.warns(&[
        "warning[image-unauthorized]",
        "HTTP status 401; no login was sent",
        &format!("`docker login {}`", registry.address),
    ]);
    project.login(&registry.address, "me:other");
    project.warns(&["warning[image-unauthorized]", "the login that was sent is not accepted"]);
    project.login(&registry.address, "me:secret");
    project.locks(&digest);
    assert_eq!(tokens.asked() - before, 3);
}
