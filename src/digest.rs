//! Digests as registries and images write them: takes one and bytes, says whether it is theirs (OCI image specification,
//! "Digests").

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256, Sha512};

/// `sha256:` and the SHA-256 of `bytes` in lower-case hex.
pub fn sha256(bytes: &[u8]) -> String {
    format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(bytes)))
}

/// Whether a text is a SHA-256 in lower-case hex.
pub fn is_sha256_hex(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a digest is `sha256:` and such a text.
pub fn is_sha256(digest: &str) -> bool {
    digest.strip_prefix("sha256:").is_some_and(is_sha256_hex)
}

/// Whether `digest` is that of `bytes`; one of an unknown kind is not.
pub fn fits(digest: &str, bytes: &[u8]) -> bool {
    match digest.strip_prefix("sha512:") {
        Some(hex) => hex == HEXLOWER.encode(&Sha512::digest(bytes)),
        None => digest == sha256(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_both_kinds_and_no_other() {
        // FIPS 180-2, appendices B.1 and C.1.
        let short = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let long = "sha512:ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
                    2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f";
        assert!(fits(short, b"abc") && fits(long, b"abc") && !fits(short, b"abd") && !fits(long, b"abd"));
        assert!(!fits("", b"abc") && !fits("sha256:", b"abc") && !fits("sha1:a9993e36", b"abc"));
    }
}
