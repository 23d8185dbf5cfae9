//! Images of generated Dockerfiles, built for real: buildah, Debian's registry on loopback, and bases made by
//! debootstrap under the names of those that the matrix names. Needs root, Debian's packages and about 12 GB.

pub mod base;
mod flavors;
mod torch;

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use super::buildah::Buildah;
use super::registry_server::RegistryServer;
use super::run::{self, gpulock, succeed, timed};

/// The builder, the registry, and projects in folders of their own.
struct World {
    buildah: Buildah,
    registry: RegistryServer,
    folder: tempfile::TempDir,
}

impl World {
    /// A folder with a manifest, and the program for the verify stage.
    fn project(&self, name: &str, manifest: &str) -> Project<'_> {
        let folder = self.folder.path().join("projects").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::copy(run::program(), folder.join("gpulock")).unwrap();
        std::fs::write(folder.join("gpulock.toml"), manifest).unwrap();
        Project { world: self, folder }
    }
}

struct Project<'w> {
    world: &'w World,
    folder: PathBuf,
}

impl Project<'_> {
    fn add(&self, manifest: &str) {
        let path = self.folder.join("gpulock.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(path, text + manifest).unwrap();
    }

    /// Locks with the digests of the registry's images; the lock as JSON.
    fn resolve(&self) -> Value {
        let mirror = |name: &str| format!("{name}=http://{}", self.world.registry.address);
        let mut command = gpulock(&self.folder, &self.world.folder.path().join("cache"));
        command.args(["resolve", "--upgrade", "--format", "json"]);
        command.args(["--registry-mirror", &mirror("docker.io"), "--registry-mirror", &mirror("ghcr.io")]);
        let output = succeed(&mut command);
        let warnings = String::from_utf8(output.stderr).unwrap();
        assert!(!warnings.contains("warning["), "{warnings}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Writes the Dockerfile and builds it.
    fn build(&self, image: &str, dockerfile: &[&str], build: &[&str]) -> Output {
        let mut command = gpulock(&self.folder, &self.world.folder.path().join("cache"));
        succeed(command.args(["dockerfile", "--require-digest", "-o", "Dockerfile"]).args(dockerfile));
        let (output, took) = timed(|| self.world.buildah.build(&self.folder, image, build));
        println!("{image}: {} in {took:.0?}, {} in all", output.status, self.world.buildah.megabytes());
        output
    }

    fn builds(&self, image: &str, dockerfile: &[&str], build: &[&str]) -> String {
        let output = self.build(image, dockerfile, build);
        let said = text(&output);
        assert!(output.status.success(), "{said}");
        said
    }

    /// The build ends in the verify stage, which says `words`.
    fn fails(&self, image: &str, dockerfile: &[&str], build: &[&str], words: &[&str]) {
        let output = self.build(image, dockerfile, build);
        let said = text(&output);
        assert!(!output.status.success(), "{said}");
        let step = said.lines().rfind(|line| line.contains("] STEP ")).unwrap_or_default();
        assert!(step.contains("gpulock verify /opt/venv"), "{step}: {said}");
        words.iter().for_each(|word| assert!(said.contains(word), "{word}: {said}"));
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// What a shell in a new container of the image says.
fn inside(buildah: &Buildah, image: &str, script: &str) -> String {
    let container = buildah.run(&["from", "--pull-never", image]);
    let said = buildah.run(&["run", &container, "--", "sh", "-c", script]);
    buildah.run(&["rm", &container]);
    said
}

#[test]
fn network_root_buildah_builds_images() {
    if !run::network() {
        return;
    }
    let registry = RegistryServer::start(&Value::Null).expect("docker-registry is installed");
    let buildah = Buildah::new(&registry.address);
    let world = World { buildah, registry, folder: run::folder() };
    let (tree, took) = timed(|| base::system(&world.buildah, world.folder.path()));
    println!("debootstrap and its image: {took:.0?}");
    torch::is_built(&world);
    flavors::are_built(&world, &tree);
}

/// A file with this text and mode 0644.
fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}
