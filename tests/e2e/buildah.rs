//! buildah with a storage and a configuration of its own, which go with it: nothing of the machine's is read or left.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::run::{self, folder, stdout, succeed};

/// Its storage; removed with this value.
pub struct Buildah {
    folder: tempfile::TempDir,
    address: String,
}

impl Drop for Buildah {
    fn drop(&mut self) {
        let _ = self.command(&["rm", "--all"]).output();
        // Mounted on itself by the driver.
        let _ = Command::new("umount").arg(self.storage().join("overlay")).output();
    }
}

impl Buildah {
    /// With every image of docker.io and ghcr.io in the registry at `address`, which is asked without TLS.
    pub fn new(address: &str) -> Self {
        let buildah = Self { folder: folder(), address: address.to_owned() };
        // What it looks for in a home: that any image is taken without signature.
        let home = buildah.path().join(".config/containers");
        fs::create_dir_all(&home).unwrap();
        fs::create_dir(buildah.path().join("tmp")).unwrap();
        fs::write(home.join("policy.json"), r#"{"default": [{"type": "insecureAcceptAnything"}]}"#).unwrap();
        fs::write(buildah.path().join("auth.json"), "{}").unwrap();
        let mut registries = String::from("unqualified-search-registries = [\"docker.io\"]\n");
        for prefix in ["docker.io", "ghcr.io"] {
            registries += &format!("[[registry]]\nprefix = \"{prefix}\"\nlocation = \"{address}\"\ninsecure = true\n");
        }
        fs::write(buildah.path().join("registries.conf"), registries).unwrap();
        let works = ["overlay", "vfs"].into_iter().any(|driver| buildah.can_store_with(driver));
        assert!(works, "buildah needs root and a storage driver: {:?}", buildah.command(&["from", "scratch"]).output());
        buildah
    }

    fn can_store_with(&self, driver: &str) -> bool {
        let (storage, run) = (self.storage(), self.path().join("run"));
        let text = format!("[storage]\ndriver = \"{driver}\"\ngraphroot = {storage:?}\nrunroot = {run:?}\n");
        fs::write(self.path().join("storage.conf"), text).unwrap();
        let from = self.command(&["from", "--name", "probe", "scratch"]).output().expect("buildah is installed");
        let mounted = from.status.success() && self.command(&["mount", "probe"]).output().unwrap().status.success();
        let _ = self.command(&["rm", "--all"]).output();
        mounted
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    fn storage(&self) -> PathBuf {
        self.path().join("storage")
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("buildah");
        command
            .args(arguments)
            .env("HOME", self.path())
            .env("XDG_CONFIG_HOME", self.path().join(".config"))
            .env("CONTAINERS_STORAGE_CONF", self.path().join("storage.conf"))
            .env("CONTAINERS_REGISTRIES_CONF", self.path().join("registries.conf"))
            .env("REGISTRY_AUTH_FILE", self.path().join("auth.json"))
            .env("BUILDAH_ISOLATION", "chroot")
            .env("TMPDIR", self.path().join("tmp"));
        command
    }

    /// Standard output of a command that must succeed.
    pub fn run(&self, arguments: &[&str]) -> String {
        stdout(&mut self.command(arguments))
    }

    /// Makes the image `name` of `base`; `change` gets the container.
    pub fn image(&self, name: &str, base: &str, change: impl FnOnce(&str)) {
        let container = self.run(&["from", "--pull-never", base]);
        change(&container);
        self.run(&["commit", "--quiet", &container, name]);
        self.run(&["rm", &container]);
    }

    /// The name that `repository:tag` has in the registry.
    pub fn there(&self, name: &str) -> String {
        format!("docker://{}/{name}", self.address)
    }

    /// Makes an index of images, pushes it with them as `repository:tag`, and gives its digest.
    pub fn push_index(&self, images: &[&str], name: &str) -> String {
        let (list, digest) = ("index", self.path().join("digest"));
        self.run(&["manifest", "create", list]);
        for image in images {
            self.run(&["manifest", "add", list, image]);
        }
        succeed(
            self.command(&[
                "manifest",
                "push",
                "--all",
                "--quiet",
                "--tls-verify=false",
                "--format",
                "oci",
                "--digestfile",
            ])
            .arg(&digest)
            .args([list, &self.there(name)]),
        );
        self.run(&["manifest", "rm", list]);
        fs::read_to_string(digest).unwrap().trim().to_owned()
    }

    /// Logs in to the registry with `user:password`.
    pub fn login(&self, login: &str) {
        let auths = serde_json::json!({"auths": {&self.address: {"auth": STANDARD.encode(login)}}});
        fs::write(self.path().join("auth.json"), auths.to_string()).unwrap();
    }

    /// Builds the Dockerfile in `folder`. pip asks the index that it asks on this machine, with the authorities of this
    /// machine.
    pub fn build(&self, folder: &Path, image: &str, arguments: &[&str]) -> Output {
        let mut command = self.command(&["bud", "--layers", "--volume", "/etc/ssl/certs:/etc/ssl/certs:ro"]);
        let configured =
            run::python(Path::new("python3")).args(["-m", "pip", "config", "get", "global.index-url"]).output();
        let configured = configured.ok().filter(|answer| answer.status.success());
        let index = std::env::var("PIP_INDEX_URL").ok();
        let index = index.or_else(|| Some(String::from_utf8(configured?.stdout).unwrap().trim().to_owned()));
        if let Some(index) = index {
            command.arg(format!("--build-arg=PIP_INDEX_URL={index}"));
        }
        command.args(arguments).args(["--tag", image, "--file", "Dockerfile", "."]).current_dir(folder);
        command.output().unwrap()
    }

    /// Megabytes of images and containers.
    pub fn megabytes(&self) -> String {
        let text = stdout(Command::new("du").arg("-sm").arg(self.path()));
        text.split_whitespace().next().unwrap_or_default().to_owned() + " MB"
    }
}
