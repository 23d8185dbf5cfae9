//! The token service of a registry (distribution.github.io/distribution/spec/auth/jwt): whoever logs in as `me` with
//! `secret` gets a token for what is asked; others get one for the repository `library/public` alone.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::run::{folder, succeed};
use super::server::{Reply, Seen, Server, reply};

const SERVICE: &str = "registry of a test";
const ISSUER: &str = "token service of a test";

/// The service, with a key of its own.
pub struct Tokens {
    server: Server,
    folder: Arc<tempfile::TempDir>,
}

impl Tokens {
    pub fn start() -> Self {
        let folder = Arc::new(folder());
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=tokens"]);
        succeed(openssl.args(["-keyout", "key.pem", "-out", "cert.pem"]).current_dir(folder.path()));
        let own = Arc::clone(&folder);
        // One openssl at a time writes the text to be signed.
        let turn = Mutex::new(());
        let server = Server::start(move |seen| {
            let _turn = turn.lock().unwrap();
            answer(seen, own.path())
        });
        Self { server, folder }
    }

    /// The section `auth` of the configuration of a registry that trusts it.
    pub fn auth(&self) -> Value {
        let certificate = self.folder.path().join("cert.pem");
        let realm = format!("{}/token", self.server.url);
        json!({"token": {"realm": realm, "service": SERVICE, "issuer": ISSUER, "rootcertbundle": certificate}})
    }

    /// How many were asked for.
    pub fn asked(&self) -> usize {
        self.server.seen().len()
    }
}

fn answer(seen: &Seen, folder: &Path) -> Reply {
    let url = url::Url::parse(&format!("http://tokens{}", seen.path)).unwrap();
    let scope = url.query_pairs().find(|(name, _)| name == "scope").map(|(_, scope)| scope.into_owned());
    let login = seen.headers.get("authorization").map(String::as_str);
    let known = login == Some(&format!("Basic {}", STANDARD.encode("me:secret")));
    if login.is_some() && !known {
        return reply(401, "application/json", r#"{"errors": [{"code": "UNAUTHORIZED"}]}"#);
    }
    let access = scope.iter().filter(|scope| known || scope.starts_with("repository:library/public:")).map(|scope| {
        let mut parts = scope.split(':');
        let (kind, name) = (parts.next(), parts.next());
        json!({"type": kind, "name": name, "actions": parts.next().unwrap_or_default().split(',').collect::<Vec<_>>()})
    });
    let token = sign(&access.collect::<Vec<_>>(), folder);
    reply(200, "application/json", json!({ "token": token }).to_string())
}

/// A JSON Web Token (RFC 7519) with the certificate of its key.
fn sign(access: &[Value], folder: &Path) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let minute = Duration::from_secs(60);
    let certificate = fs::read_to_string(folder.join("cert.pem")).unwrap();
    let certificate: String = certificate.lines().filter(|line| !line.starts_with('-')).collect();
    let header = json!({"typ": "JWT", "alg": "RS256", "x5c": [certificate]});
    let claims = json!({"iss": ISSUER, "aud": SERVICE, "sub": "me", "jti": "1", "access": access,
        "nbf": (now - minute).as_secs(), "iat": now.as_secs(), "exp": (now + minute).as_secs()});
    let text = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string())).join(".");
    fs::write(folder.join("text"), &text).unwrap();
    let mut openssl = Command::new("openssl");
    openssl.args(["dgst", "-sha256", "-sign", "key.pem", "text"]).current_dir(folder).stdin(Stdio::null());
    text + "." + &URL_SAFE_NO_PAD.encode(succeed(&mut openssl).stdout)
}
