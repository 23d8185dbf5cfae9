//! A machine in a file: what [`Files`] gave, as a tar archive to send to somebody, and the root that such a file makes up.
//!
//! Only what was looked at is in it: of texts the lines that matter, of libraries their names, of devices that they are
//! there.

use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use tar::{Builder, EntryType, Header};

use super::files::{Files, Given, UNREAD};
use crate::diag::{Failure, hide_secrets};
use crate::inventory::{FileKind, Root, image, shown};

/// Writes what was given so far; gives what is in it, one line each.
///
/// # Errors
/// Those of writing.
pub fn write(files: &Files<'_>, to: impl Write) -> io::Result<Vec<String>> {
    let mut given = files.given();
    let unread = given.iter().filter_map(|(path, what)| match what {
        Given::Unread(why) => Some(format!("{}\t{why}\n", shown(path))),
        _ => None,
    });
    let unread: String = unread.collect();
    given.retain(|_, what| !matches!(what, Given::Unread(_)));
    if !unread.is_empty() {
        given.insert(PathBuf::from(UNREAD), Given::File(unread.into_bytes()));
    }
    let mut builder = Builder::new(to);
    let mut list = Vec::new();
    for (path, what) in &given {
        let Ok(inside) = path.strip_prefix("/") else { continue };
        // An archive has no such paths; what they lead to is there under its own.
        if inside.as_os_str().is_empty() || inside.components().any(|part| part == Component::ParentDir) {
            continue;
        }
        let mut header = Header::new_gnu();
        header.set_mtime(0);
        header.set_mode(0o644);
        header.set_size(0);
        let what = match what {
            Given::File(bytes) => {
                let bytes = hide_secrets(&String::from_utf8_lossy(bytes)).into_bytes();
                header.set_size(bytes.len() as u64);
                builder.append_data(&mut header, inside, &bytes[..])?;
                format!("{} bytes", bytes.len())
            }
            Given::Link(target) => {
                header.set_entry_type(EntryType::Symlink);
                builder.append_link(&mut header, inside, target)?;
                format!("link to {}", shown(target))
            }
            Given::Named(FileKind::Device, mode) => {
                header.set_entry_type(EntryType::Char);
                header.set_mode(mode & 0o7777);
                builder.append_data(&mut header, inside, io::empty())?;
                "device".to_owned()
            }
            Given::Named(FileKind::Folder, _) => {
                header.set_entry_type(EntryType::Directory);
                header.set_mode(0o755);
                builder.append_data(&mut header, inside, io::empty())?;
                "folder".to_owned()
            }
            Given::Named(_, mode) => {
                header.set_mode(mode & 0o7777);
                builder.append_data(&mut header, inside, io::empty())?;
                "that it is there".to_owned()
            }
            Given::Unread(_) => continue,
        };
        list.push(format!("{}: {what}", shown(path)));
    }
    builder.into_inner()?.flush()?;
    Ok(list)
}

/// The root that a captured file makes up. Nothing of it is unpacked.
///
/// # Errors
/// A file that cannot be read, is no tar archive, or holds more than is believed.
pub fn read(given: &str, path: &Path) -> Result<Root, Failure> {
    image::captured(given, path).map(Root::of_image)
}
