//! A real nginx on loopback that serves files; takes a site and lines for its server block, gives its port and its log.

use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Files by path below the root.
pub type Site = BTreeMap<String, Vec<u8>>;

/// A running nginx; it ends with this value.
pub struct Nginx {
    process: Child,
    pub port: u16,
    folder: tempfile::TempDir,
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Where a program is.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Debian keeps servers where only root looks.
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    folders.map(|folder| folder.join(name)).find(|path| path.is_file())
}

impl Nginx {
    /// Serves `site`. `listen` is added to the line of that name, `server` are further lines of the server block, made
    /// for a folder that they may write to. `None`, and a line that says so, where nginx is not installed.
    pub fn start(site: &Site, listen: &str, server: impl Fn(&Path) -> String) -> Option<Self> {
        let Some(nginx) = program("nginx") else {
            println!("skipped: nginx is not installed");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("www");
        for (path, bytes) in site {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        // nginx takes a port of its own only after the listener here has let go of it.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let conf = folder.path().join("nginx.conf");
        let at = folder.path().display();
        let user = if cfg!(target_os = "linux") && is_root() { "user root;\n" } else { "" };
        std::fs::write(
            &conf,
            format!(
                "{user}daemon off;\nmaster_process off;\npid {at}/pid;\nerror_log {at}/error.log;\nevents {{}}\nhttp {{\n\
                 access_log {at}/access.log;\nclient_body_temp_path {at}/t1;\nproxy_temp_path {at}/t2;\n\
                 fastcgi_temp_path {at}/t3;\nuwsgi_temp_path {at}/t4;\nscgi_temp_path {at}/t5;\n\
                 types {{ text/html html; }}\ndefault_type application/octet-stream;\ngzip on;\ngzip_min_length 1;\n\
                 server {{ listen 127.0.0.1:{port} {listen}; root {};\n{} }}\n}}\n",
                root.display(),
                server(folder.path()),
            ),
        )
        .unwrap();
        let process = Command::new(nginx)
            .args([
                "-p",
                folder.path().to_str().unwrap(),
                "-e",
                &format!("{at}/error.log"),
                "-c",
                conf.to_str().unwrap(),
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let nginx = Self { process, port, folder };
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let log = || std::fs::read_to_string(nginx.folder().join("error.log")).unwrap_or_default();
            assert!(start.elapsed() < Duration::from_secs(10), "nginx does not start: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(nginx)
    }

    /// The folder that it and the lines of its server block write to.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What was asked of it.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder().join("access.log")).unwrap()
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0)
}

/// A page of an index as the torch index has it: `+` percent-encoded, `#sha256=`, and a comment after the end.
pub fn page(package: &str, links: &[(String, String, String)]) -> Vec<u8> {
    let links: String = links
        .iter()
        .map(|(href, sha256, file)| {
            format!("    <a href=\"{}#sha256={sha256}\">{file}</a><br/>\n", href.replace('+', "%2B"))
        })
        .collect();
    format!(
        "<!DOCTYPE html>\n<html>\n  <body>\n    <h1>Links for {package}</h1>\n{links}  </body>\n</html>\n\
         <!--TIMESTAMP 1750000000-->\n"
    )
    .into_bytes()
}
