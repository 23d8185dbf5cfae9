//! Files that are no text say why.

use std::fs;

use gpulock::file::{text, text_if_there};

#[test]
fn text_is_read_without_byte_order_mark() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, "\u{feff}a = 1\r\n").unwrap();
    assert_eq!(text(&path).unwrap(), "a = 1\r\n");
    assert_eq!(text_if_there(&folder.path().join("b")).unwrap(), None);
}

#[test]
fn what_is_no_text_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, b"good\n\xff\xfe").unwrap();
    let said = |path| text(path).unwrap_err();
    assert!(said(&path).to_string().contains("is not UTF-8 text"));
    assert!(format!("{:?}", said(&path).diagnostics[0].evidence).contains("line 2, byte 5"));
    assert!(said(folder.path()).to_string().contains("is a folder"));
    assert!(said(&folder.path().join("none")).to_string().contains("does not exist"));
}
