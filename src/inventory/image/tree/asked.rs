//! The files of an image as they are asked for: takes a path without links on the way, gives what is there.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use super::{Content, Name, Node, Tree};
use crate::inventory::file::OpenFile;
use crate::inventory::image::KeptFile;
use crate::inventory::root::{self, FileKind, Look};

impl Tree {
    /// The number of the layer that a file is from, the lowest being 0; the path has no links.
    pub fn layer(&self, path: &Path) -> Option<usize> {
        self.node(path).ok().map(|node| usize::from(self.nodes[node].layer))
    }

    pub(super) fn node(&self, path: &Path) -> io::Result<usize> {
        let mut at = 0;
        for part in path.components() {
            let name = match part {
                Component::Normal(name) => name,
                Component::RootDir => continue,
                _ => return Err(io::ErrorKind::InvalidInput.into()),
            };
            let Content::Folder(names) = &self.nodes[at].content else {
                return Err(io::ErrorKind::NotADirectory.into());
            };
            at = names.get(name.as_bytes()).ok_or(io::ErrorKind::NotFound)?.node as usize;
        }
        Ok(at)
    }
}

/// As [`Root`](crate::inventory::Root) asks for them, by paths without links on the way.
impl Tree {
    pub(in crate::inventory) fn look(&self, path: &Path) -> io::Result<Look> {
        let number = self.node(path)?;
        let node = &self.nodes[number];
        let size = match &node.content {
            Content::File { size, .. } => *size,
            Content::Link(target) => target.len() as u64,
            _ => 0,
        };
        Ok(Look { kind: node.kind(), size, mode: node.mode, inode: (0, number as u64 + 1) })
    }

    pub(in crate::inventory) fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        match &self.nodes[self.node(path)?].content {
            Content::Link(target) => Ok(PathBuf::from(OsStr::from_bytes(target))),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    pub(in crate::inventory) fn entries(&self, path: &Path) -> io::Result<Vec<(OsString, FileKind)>> {
        let Content::Folder(names) = &self.nodes[self.node(path)?].content else {
            return Err(io::ErrorKind::NotADirectory.into());
        };
        let kind = |at: &Name| self.nodes[at.node as usize].kind();
        Ok(names.iter().map(|(name, at)| (OsString::from_vec(name.to_vec()), kind(at))).collect())
    }

    pub(in crate::inventory) fn open(&self, path: &Path) -> io::Result<OpenFile> {
        let node = &self.nodes[self.node(path)?];
        let Content::File { size, kept } = &node.content else { return Err(root::not_a_file(node.kind())) };
        let kept = kept.and_then(|file| self.layers.get(usize::from(node.layer))?.kept(file));
        Ok(OpenFile::of_image(kept.unwrap_or_else(|| KeptFile::nothing(*size))))
    }
}

impl Node {
    fn kind(&self) -> FileKind {
        match self.content {
            Content::Folder(_) => FileKind::Folder,
            Content::File { .. } => FileKind::File,
            Content::Link(_) => FileKind::Link,
            Content::Pipe => FileKind::Pipe,
            Content::Device => FileKind::Device,
        }
    }
}
