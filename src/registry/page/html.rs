//! The HTML form of a page (PEP 503): its anchors, as a browser would read them.

use html5gum::{StartTag, Token, Tokenizer};
use percent_encoding::percent_decode_str;
use url::Url;

use super::{Entry, Offer, resolve, sha256};

pub(super) fn read(body: &[u8], base: &Url) -> Result<Vec<Entry>, String> {
    let mut base = base.clone();
    let mut entries = Vec::new();
    let mut based = false;
    for token in Tokenizer::new(body) {
        let Ok(Token::StartTag(tag)) = token else { continue };
        match &**tag.name {
            b"base" if !based => {
                if let Some(new) = attribute(&tag, b"href").and_then(|href| base.join(href.trim()).ok()) {
                    base = new;
                    based = true;
                }
            }
            b"meta" if attribute(&tag, b"name").as_deref() == Some("pypi:repository-version") => {
                let version = attribute(&tag, b"content").unwrap_or_default();
                if version.split('.').next() != Some("1") {
                    return Err(format!("it speaks version {version} of the simple API, and only version 1 is known"));
                }
            }
            b"a" => entries.extend(anchor(&tag, &base)),
            _ => {}
        }
    }
    Ok(entries)
}

fn anchor(tag: &StartTag<()>, base: &Url) -> Option<Entry> {
    let href = attribute(tag, b"href")?;
    let fragment = href.split_once('#').map_or("", |(_, fragment)| fragment).to_owned();
    let url = resolve(base, &href)?;
    let last = url.path_segments()?.next_back()?;
    let file = percent_decode_str(last).decode_utf8().ok()?.into_owned();
    let hash = fragment.split('&').find_map(|part| part.strip_prefix("sha256="));
    // The older name of the attribute is still what most indexes send (PEP 714).
    let beside = attribute(tag, b"data-core-metadata").or_else(|| attribute(tag, b"data-dist-info-metadata"));
    Some(Entry {
        file,
        url: url.into(),
        sha256: hash.and_then(sha256),
        size: None,
        python: attribute(tag, b"data-requires-python").filter(|text| !text.trim().is_empty()),
        yanked: attribute(tag, b"data-yanked").is_some(),
        reason: attribute(tag, b"data-yanked").filter(|reason| !reason.trim().is_empty()),
        uploaded: None,
        metadata: beside
            .filter(|value| value != "false")
            .map(|value| Offer { sha256: value.strip_prefix("sha256=").and_then(sha256) }),
    })
}

/// An attribute's value, its character references resolved.
fn attribute(tag: &StartTag<()>, name: &[u8]) -> Option<String> {
    tag.attributes.get(name).map(|value| String::from_utf8_lossy(value).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_as_the_torch_index_has_them() {
        let hash = "0a".repeat(32);
        let page = format!(
            r##"<!DOCTYPE html><html><head><meta name="pypi:repository-version" content="1.0"></head><body><h1>Links</h1>
            <!-- <a href="comment-1-py3-none-any.whl">no</a> -->
            <a href="/whl/cu126/torch-2.6.0%2Bcu126-cp311-cp311-linux_x86_64.whl#sha256={hash}"
               data-requires-python="&gt;=3.9,&lt;4" data-dist-info-metadata="sha256={hash}">torch-2.6.0+cu126-...</a><br/>
            <A HREF='../x/torch-2.5.0-py3-none-any.whl#md5=00' data-yanked="" data-core-metadata=true>b</A>
            <a>no address</a><a href="mailto:x">c</a><a href="#top">top"##
        );
        let base = "https://h/whl/cu126/torch/".parse().unwrap();
        let entries = read(page.as_bytes(), &base).unwrap();
        assert_eq!(entries[0].file, "torch-2.6.0+cu126-cp311-cp311-linux_x86_64.whl");
        assert_eq!(entries[0].url, "https://h/whl/cu126/torch-2.6.0%2Bcu126-cp311-cp311-linux_x86_64.whl");
        assert_eq!(entries[0].python.as_deref(), Some(">=3.9,<4"));
        assert_eq!(entries[0].sha256.as_ref(), Some(&hash));
        assert_eq!(entries[0].metadata, Some(Offer { sha256: Some(hash) }));
        assert!(!entries[0].yanked);
        assert_eq!(entries[1].url, "https://h/whl/cu126/x/torch-2.5.0-py3-none-any.whl");
        assert!(entries[1].yanked && entries[1].sha256.is_none());
        assert_eq!(entries[1].metadata, Some(Offer::default()));
        assert!(entries[2..].iter().all(|entry| !entry.file.ends_with(".whl")));
    }

    #[test]
    fn the_base_element_moves_addresses() {
        let page = br#"<base href="https://files.h/a/"><base href="https://no/"><a href="x-1-py3-none-any.whl">x</a>"#;
        let entries = read(page, &"https://h/simple/x/".parse().unwrap()).unwrap();
        assert_eq!(entries[0].url, "https://files.h/a/x-1-py3-none-any.whl");
    }

    #[test]
    fn refuses_a_newer_api() {
        let page = br#"<meta name="pypi:repository-version" content="2.0">"#;
        assert!(read(page, &"https://h/".parse().unwrap()).is_err());
    }
}
