//! A real nginx on loopback, laid out as the torch index is: PEP 503, `+cu126` percent-encoded, `#sha256=`, ranges; over
//! HTTP, with a login, and over HTTPS. Skipped where nginx is not installed.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gpulock::python::Catalog;
use gpulock::registry::{Client, Search};

use super::wheels::{Made, noise, recipe};
use super::{client, options, package};

struct Nginx {
    process: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Debian keeps servers where only root looks.
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    folders.map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Serves `whl/cu126/torch/` with `made`. `server` are further lines of the server block.
fn start(made: &Made, listen: &str, server: impl Fn(&Path) -> String) -> Option<Nginx> {
    let Some(nginx) = program("nginx") else {
        println!("skipped: nginx is not installed");
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("www");
    let index = root.join("whl/cu126");
    std::fs::create_dir_all(index.join("torch")).unwrap();
    std::fs::write(index.join("index.html"), "<a href=\"torch/\">torch</a><br/>\n").unwrap();
    std::fs::write(index.join(&made.file), &made.bytes).unwrap();
    let href = made.file.replace('+', "%2B");
    let page = format!(
        "<!DOCTYPE html>\n<html>\n  <body>\n    <h1>Links for torch</h1>\n    \
         <a href=\"/whl/cu126/{href}#sha256={}\">{}</a><br/>\n  </body>\n</html>\n<!--TIMESTAMP 1750000000-->\n",
        made.sha256, made.file
    );
    std::fs::write(index.join("torch/index.html"), page).unwrap();
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
        .args(["-p", folder.path().to_str().unwrap(), "-e", &format!("{at}/error.log"), "-c", conf.to_str().unwrap()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let nginx = Nginx { process, port, folder };
    let start = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        let log = || std::fs::read_to_string(nginx.folder.path().join("error.log")).unwrap_or_default();
        assert!(start.elapsed() < Duration::from_secs(10), "nginx does not start: {}", log());
        std::thread::sleep(Duration::from_millis(20));
    }
    Some(nginx)
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0)
}

fn torch() -> Made {
    recipe("torch", "2.6.0+cu126").file("torch/lib/libtorch_cuda.so", noise(6 << 20)).make()
}

fn resolve(client: &Client, made: &Made) {
    let versions = client.versions("test", &package("torch")).unwrap();
    assert_eq!(versions.iter().map(ToString::to_string).collect::<Vec<_>>(), ["2.6.0+cu126"]);
    let release = client.release("test", &package("torch"), &versions[0]).unwrap().unwrap();
    let wheel = &release.wheels[0];
    assert_eq!(&*wheel.name.file, made.file);
    assert_eq!(wheel.sha256.as_deref(), Some(made.sha256.as_str()));
    assert!(wheel.url.as_deref().unwrap().contains("%2Bcu126"));
    assert_eq!(client.metadata(wheel).unwrap().requires.len(), 2);
    assert_eq!(client.libraries(wheel).unwrap()[1].path, "torch/lib/libtorch_cuda.so");
    assert!(client.versions("test", &package("absent")).unwrap().is_empty());
}

#[test]
fn an_index_as_torch_has_it() {
    let made = torch();
    let Some(nginx) = start(&made, "", |_| String::new()) else { return };
    let url = format!("http://127.0.0.1:{}/whl/cu126", nginx.port);
    let folder = tempfile::tempdir().unwrap();
    let first = client(&url, folder.path());
    resolve(&first, &made);
    let traffic = first.traffic();
    assert_eq!(traffic.requests, 3, "two pages and a range");
    assert!(traffic.bytes < 300 << 10, "{traffic:?}");

    // nginx gives validators but no life time, so another process need not ask again.
    let second = client(&url, folder.path());
    resolve(&second, &made);
    assert_eq!(second.traffic().requests, 1, "only for the page that is not there");
    let third = Client::new(gpulock::registry::Options { revalidate: true, ..options(&url, folder.path()) });
    resolve(&third, &made);
    let log = std::fs::read_to_string(nginx.folder.path().join("access.log")).unwrap();
    assert!(log.contains("\"GET /whl/cu126/torch/ HTTP/1.1\" 304"), "{log}");

    let wheel = &third.list("test", &package("torch")).unwrap()[0];
    let found = third.search_member(wheel, "libtorch_cuda.so", &mut |part| !part.is_empty()).unwrap();
    assert_eq!(found, Search::Found);
    assert!(third.traffic().bytes < 3 << 20);
}

#[test]
fn a_login_by_nginx() {
    let made = torch();
    let auth = |folder: &Path| {
        std::fs::write(folder.join("users"), "me:{PLAIN}s3cret\n").unwrap();
        format!("auth_basic all; auth_basic_user_file {};", folder.join("users").display())
    };
    let Some(nginx) = start(&made, "", auth) else { return };
    let folder = tempfile::tempdir().unwrap();
    let url = |login: &str| format!("http://{login}127.0.0.1:{}/whl/cu126", nginx.port);
    let failure = client(&url(""), folder.path()).versions("test", &package("torch")).unwrap_err();
    assert_eq!(failure.diagnostics[0].code, "index-unauthorized");
    resolve(&client(&url("me:s3cret@"), folder.path()), &made);
}

#[test]
fn https_with_an_authority_of_its_own() {
    let made = torch();
    let Some(openssl) = program("openssl") else {
        println!("skipped: openssl is not installed");
        return;
    };
    let tls = |folder: &Path| {
        let [key, certificate] = ["key.pem", "certificate.pem"].map(|file| folder.join(file));
        let made = Command::new(&openssl)
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
            .args(["-subj", "/CN=gpulock test", "-addext", "subjectAltName=IP:127.0.0.1"])
            .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
            .arg(&key)
            .arg("-out")
            .arg(&certificate)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        format!("ssl_certificate {}; ssl_certificate_key {};", certificate.display(), key.display())
    };
    let Some(nginx) = start(&made, "ssl", tls) else { return };
    let url = format!("https://127.0.0.1:{}/whl/cu126", nginx.port);
    let folder = tempfile::tempdir().unwrap();
    let failure = client(&url, folder.path()).versions("test", &package("torch")).unwrap_err();
    assert!(failure.to_string().contains("certificate is not accepted"), "{failure}");
    assert!(failure.diagnostics[0].fix.as_ref().unwrap().contains("SSL_CERT_FILE"));
    let mut options = options(&url, folder.path());
    options.authorities = vec![nginx.folder.path().join("certificate.pem")];
    resolve(&Client::new(options), &made);
}
