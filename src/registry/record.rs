//! RECORD of a wheel: takes its text, gives the shared libraries in it (PEP 376, PEP 427).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use data_encoding::HEXLOWER;

use crate::python::Library;

/// The shared libraries that RECORD lists, in its order, with their path below site-packages.
pub(super) fn libraries(bytes: &[u8]) -> Result<Vec<Library>, String> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
    let mut libraries = Vec::new();
    for row in reader.records() {
        let row = row.map_err(|error| format!("its RECORD is not CSV: {error}"))?;
        let path = row.get(0).unwrap_or_default();
        if !is_library(path) {
            continue;
        }
        let Some(path) = installed(path) else { continue };
        let hash = row.get(1).and_then(|hash| hash.strip_prefix("sha256="));
        let sha256 = hash
            .and_then(|hash| URL_SAFE_NO_PAD.decode(hash.trim_end_matches('=')).ok())
            .filter(|hash| hash.len() == 32)
            .ok_or_else(|| format!("its RECORD gives no sha256 for {path}"))?;
        let size = row.get(2).and_then(|size| size.trim().parse().ok()).filter(|size| i64::try_from(*size).is_ok());
        let size = size.ok_or_else(|| format!("its RECORD gives no size for {path}"))?;
        libraries.push(Library { path: path.into(), sha256: HEXLOWER.encode(&sha256), size });
    }
    Ok(libraries)
}

/// `libx.so`, `libx.so.9`, `libx.so.9.1.0`, `libx.so.24.0git`.
fn is_library(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or(path);
    let Some(at) = file.rfind(".so") else { return false };
    let mut rest = file[at + ".so".len()..].split('.');
    let number =
        |part: &str| part.starts_with(|c: char| c.is_ascii_digit()) && part.bytes().all(|b| b.is_ascii_alphanumeric());
    at > 0 && rest.next() == Some("") && rest.all(number)
}

/// Where the file lands below site-packages; `NAME.data/data` and the like land elsewhere.
fn installed(path: &str) -> Option<&str> {
    let inside = match path.split_once('/') {
        Some((folder, rest)) if folder.ends_with(".data") => {
            rest.strip_prefix("purelib/").or_else(|| rest.strip_prefix("platlib/"))?
        }
        _ => path,
    };
    let strange = inside.starts_with('/') || inside.split('/').any(|part| part == "..");
    (!strange).then_some(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU";

    #[test]
    fn libraries_by_name() {
        for (path, yes) in [
            ("torch/lib/libc10.so", true),
            ("nvidia/cudnn/lib/libcudnn.so.9", true),
            ("x/libgomp-a34b3233.so.1.0.0", true),
            ("x/_C.cpython-311-x86_64-linux-gnu.so", true),
            ("x/.so", false),
            ("x/lib.so.txt", false),
            ("x/lib.so.", false),
            ("x/lib.so.24.0git", true),
            ("x/lib.so.git", false),
            ("x/lib.so.1.txt", false),
            ("x/lib.sox", false),
            ("x.so/readme", false),
        ] {
            assert_eq!(is_library(path), yes, "{path}");
        }
    }

    #[test]
    fn rows() {
        let text = format!(
            "torch/__init__.py,{HASH},10\r\n\"torch/lib/a,b.so\",{HASH},0\nx-1.data/platlib/x/y.so.1,{HASH}=,5\n\
             x-1.data/data/lib/z.so,{HASH},5\n../../z.so,{HASH},5\nx-1.dist-info/RECORD,,\n"
        );
        let found = libraries(text.as_bytes()).unwrap();
        assert_eq!(found.iter().map(|l| l.path.as_str()).collect::<Vec<_>>(), ["torch/lib/a,b.so", "x/y.so.1"]);
        assert_eq!(found[0].sha256, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(found[1].size, 5);
    }

    #[test]
    fn a_library_needs_hash_and_size() {
        for row in ["a.so,,5", "a.so,md5=00,5", "a.so,sha256=AA,5", &format!("a.so,{HASH},"), "a.so"] {
            assert!(libraries(row.as_bytes()).is_err(), "{row}");
        }
        assert!(libraries(b"").unwrap().is_empty());
    }
}
