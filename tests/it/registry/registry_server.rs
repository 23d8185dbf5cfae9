//! Debian's docker-registry on loopback.

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::nginx_server::program;

/// A registry without images; it ends with this value, and what was pushed goes too.
pub struct RegistryServer {
    process: Child,
    /// Host and port.
    pub address: String,
    folder: tempfile::TempDir,
}

impl Drop for RegistryServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl RegistryServer {
    /// `auth` is the section of that name of its configuration, or null. `None`, and a line that says so, where it is not
    /// installed.
    pub fn start(auth: &Value) -> Option<Self> {
        let Some(registry) = program("docker-registry") else {
            println!("skipped: docker-registry is not installed");
            return None;
        };
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let root = folder.path().join("images").display().to_string();
        let mut config = json!({"version": 0.1, "log": {"level": "error"}, "http": {"addr": address},
                                "storage": {"filesystem": {"rootdirectory": root}}});
        if !auth.is_null() {
            config["auth"] = auth.clone();
        }
        let file = folder.path().join("config.yml");
        std::fs::write(&file, config.to_string()).unwrap();
        let process = Command::new(registry)
            .arg("serve")
            .arg(&file)
            .env_clear()
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { process, address, folder };
        let begun = Instant::now();
        while TcpStream::connect(&server.address).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(30), "docker-registry does not begin");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(server)
    }

    #[allow(dead_code)] // End to end alone.
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// The file that holds a manifest.
    #[allow(dead_code)] // End to end alone.
    pub fn manifest(&self, digest: &str) -> PathBuf {
        let hex = digest.trim_start_matches("sha256:");
        let blobs = self.folder.path().join("images/docker/registry/v2/blobs/sha256");
        blobs.join(&hex[..2]).join(hex).join("data")
    }
}
