//! Whom to trust: takes the system's certificate authorities and further files, gives the TLS configuration.
//!
//! `SSL_CERT_FILE` and `SSL_CERT_DIR` stand in place of the system's authorities, as they do for OpenSSL; the further
//! files add to them.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use rustls_native_certs::CertificateResult;

use crate::file;

/// The configuration, and what could not be read on the way to it.
///
/// # Errors
/// What is named as a file of certificates and is none.
pub(super) fn configure(further: &[PathBuf]) -> Result<(ClientConfig, Vec<String>), rustls::Error> {
    // A pipe or device is no file of certificates, and reading it may never end.
    let named = std::env::var_os("SSL_CERT_FILE").filter(|path| !path.is_empty()).map(PathBuf::from);
    for path in named.iter().chain(further).filter(|path| path.exists() && !path.is_dir()) {
        file::open(path).map_err(|error| rustls::Error::General(format!("{}: {error}", path.display())))?;
    }
    let mut roots = RootCertStore::empty();
    let mut complaints = Vec::new();
    let mut add = |found: CertificateResult| {
        roots.add_parsable_certificates(found.certs);
        complaints.extend(found.errors.iter().map(ToString::to_string));
    };
    add(rustls_native_certs::load_native_certs());
    for path in further {
        let (file, folder) = if path.is_dir() { (None, Some(path)) } else { (Some(path), None) };
        add(rustls_native_certs::load_certs_from_paths(file.map(PathBuf::as_path), folder.map(PathBuf::as_path)));
    }
    if roots.is_empty() {
        complaints.push("no certificate authority is known on this machine".into());
    }
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok((config, complaints))
}
