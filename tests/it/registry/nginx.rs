//! A real nginx on loopback, laid out as the torch index is: PEP 503, `+cu126` percent-encoded, `#sha256=`, ranges; over
//! HTTP, with a login, and over HTTPS. Skipped where nginx is not installed.

use std::path::Path;
use std::process::Command;

use gpulock::python::Catalog;
use gpulock::registry::{Client, Search};

use super::nginx_server::{Nginx, Site, page, program};
use super::wheels::{Made, noise, recipe};
use super::{client, options, package};

/// Serves `whl/cu126/torch/` with `made`. `server` are further lines of the server block.
fn start(made: &Made, listen: &str, server: impl Fn(&Path) -> String) -> Option<Nginx> {
    let link = (format!("/whl/cu126/{}", made.file), made.sha256.clone(), made.file.clone());
    let site = Site::from([
        ("whl/cu126/index.html".into(), b"<a href=\"torch/\">torch</a><br/>\n".to_vec()),
        ("whl/cu126/torch/index.html".into(), page("torch", &[link])),
        (format!("whl/cu126/{}", made.file), made.bytes.clone()),
    ]);
    Nginx::start(&site, listen, server)
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
    let log = nginx.log();
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
    options.authorities = vec![nginx.folder().join("certificate.pem")];
    resolve(&Client::new(options), &made);
}
