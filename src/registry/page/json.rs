//! The JSON form of a page (PEP 691, with sizes of PEP 700).

use serde::Deserialize;
use url::Url;

use super::{Entry, Offer, resolve, sha256};

#[derive(Deserialize)]
struct Document {
    meta: Meta,
    files: Vec<File>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Meta {
    api_version: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct File {
    filename: String,
    url: String,
    #[serde(default)]
    hashes: Hashes,
    requires_python: Option<String>,
    size: Option<u64>,
    /// `true`, `false`, or a reason, which also means true.
    #[serde(default)]
    yanked: serde_json::Value,
    upload_time: Option<String>,
    core_metadata: Option<Beside>,
    dist_info_metadata: Option<Beside>,
}

#[derive(Deserialize, Default)]
struct Hashes {
    sha256: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Beside {
    Is(bool),
    Hashed(Hashes),
}

pub(super) fn read(body: &[u8], base: &Url) -> Result<Vec<Entry>, String> {
    let document: Document =
        serde_json::from_slice(body).map_err(|error| format!("its JSON is not a page: {error}"))?;
    let version = &document.meta.api_version;
    if version.split('.').next() != Some("1") {
        return Err(format!("it speaks version {version} of the simple API, and only version 1 is known"));
    }
    let entry = |file: File| {
        let metadata = match file.core_metadata.or(file.dist_info_metadata) {
            Some(Beside::Is(true)) => Some(Offer::default()),
            Some(Beside::Hashed(hashes)) => Some(Offer { sha256: hashes.sha256.as_deref().and_then(sha256) }),
            Some(Beside::Is(false)) | None => None,
        };
        Some(Entry {
            url: resolve(base, &file.url)?.into(),
            sha256: file.hashes.sha256.as_deref().and_then(sha256),
            size: file.size,
            python: file.requires_python.filter(|text| !text.trim().is_empty()),
            yanked: file.yanked == true || file.yanked.is_string(),
            reason: file.yanked.as_str().filter(|reason| !reason.trim().is_empty()).map(str::to_owned),
            uploaded: file.upload_time,
            metadata,
            file: file.filename,
        })
    };
    Ok(document.files.into_iter().filter_map(entry).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key() {
        let hash = "AB".repeat(32);
        let body = format!(
            r#"{{"meta":{{"api-version":"1.4"}},"name":"x","files":[
              {{"filename":"x-1-py3-none-any.whl","url":"../../f/x-1-py3-none-any.whl#frag","hashes":{{"sha256":"{hash}","md5":"0"}},
                "requires-python":">=3.9","size":7,"yanked":"broken","upload-time":"2025-08-06T14:53:46Z","core-metadata":{{"sha256":"{hash}"}}}},
              {{"filename":"x-2-py3-none-any.whl","url":"https://u:p@h/x-2","hashes":{{}},"requires-python":null,"yanked":false,
                "dist-info-metadata":true}},
              {{"filename":"x-3.tar.gz","url":"javascript:void","hashes":{{}}}}]}}"#
        );
        let base = "https://h/simple/x/".parse().unwrap();
        let entries = read(body.as_bytes(), &base).unwrap();
        let lower = Some(hash.to_lowercase());
        assert_eq!(
            entries,
            [
                Entry {
                    file: "x-1-py3-none-any.whl".into(),
                    url: "https://h/f/x-1-py3-none-any.whl".into(),
                    sha256: lower.clone(),
                    size: Some(7),
                    python: Some(">=3.9".into()),
                    yanked: true,
                    reason: Some("broken".into()),
                    uploaded: Some("2025-08-06T14:53:46Z".into()),
                    metadata: Some(Offer { sha256: lower }),
                },
                Entry {
                    file: "x-2-py3-none-any.whl".into(),
                    url: "https://h/x-2".into(),
                    metadata: Some(Offer::default()),
                    ..Entry::default()
                },
            ]
        );
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        let base = "https://h/".parse().unwrap();
        assert!(read(br#"{"meta":{"api-version":"2.0"},"files":[]}"#, &base).unwrap_err().contains("version 2.0"));
        assert!(read(br#"{"files":["#, &base).is_err());
    }
}
