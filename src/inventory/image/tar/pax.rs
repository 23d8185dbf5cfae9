//! The records of a pax header: `LENGTH KEY=VALUE` and a line feed, where the length is that of the whole record in bytes
//! (POSIX.1-2001, "pax Extended Header"). A value may hold any byte, line feeds too: capabilities and access lists of files
//! are binary.

use crate::inventory::image::fault::Fault;

/// Key and value.
type Record<'r> = (&'r [u8], &'r [u8]);

/// Takes the first record off `rest`: its key and value; `None` when nothing is left but the zeros that some programs
/// fill up with.
///
/// # Errors
/// What is no such record.
pub(super) fn record<'r>(rest: &mut &'r [u8]) -> Result<Option<Record<'r>>, Fault> {
    if rest.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    let (record, behind) = split(rest).ok_or_else(|| Fault::broken("a pax header that is none".into()))?;
    *rest = behind;
    Ok(Some(record))
}

fn split(bytes: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let space = bytes.iter().position(|byte| *byte == b' ')?;
    let length: usize = std::str::from_utf8(&bytes[..space]).ok()?.parse().ok()?;
    let (record, behind) = bytes.split_at_checked(length)?;
    let text = record.get(space + 1..)?.strip_suffix(b"\n")?;
    let equals = text.iter().position(|byte| *byte == b'=')?;
    Some(((&text[..equals], &text[equals + 1..]), behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut rest: &[u8]) -> Option<Vec<(String, Vec<u8>)>> {
        let mut found = Vec::new();
        while let Some((key, value)) = record(&mut rest).ok()? {
            found.push((String::from_utf8_lossy(key).into_owned(), value.to_vec()));
        }
        Some(found)
    }

    #[test]
    fn a_record_is_as_long_as_it_says() {
        let found = all(b"8 k=a\nb\n6 l=c\n5 m=\n").unwrap();
        let expected = [("k", &b"a\nb"[..]), ("l", b"c"), ("m", b"")].map(|(key, value)| (key.into(), value.to_vec()));
        assert_eq!(found, expected);
        assert_eq!(all(b""), Some(Vec::new()));
        assert_eq!(all(b"6 l=c\n\0\0"), Some(vec![("l".into(), b"c".to_vec())]));
    }

    #[test]
    fn what_is_no_record() {
        for bytes in [
            &b"x k=a\n"[..],
            b"6",
            b"7 k=a\n",
            b"5 k=a\n",
            b"6 k a\n",
            b"0 k=a\n",
            b"1 k=a\n",
            b"-6 k=a\n",
            b"99999999999999999999999 k=a\n",
            b"18446744073709551615 k=a\n",
        ] {
            assert_eq!(all(bytes), None, "{:?}", String::from_utf8_lossy(bytes));
        }
    }
}
