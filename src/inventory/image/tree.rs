//! The files that an image's layers make up together: takes the entries of each layer in turn, gives the files as they
//! would be on a disk.
//!
//! OCI image specification, "Applying Changesets"; where it is silent, as umoci and containerd do it: links on the way to
//! an entry are followed inside the image, an entry takes the place of whatever is there unless both are folders, and a
//! whiteout hides what lower layers have, whatever its place among the entries of its own.

mod asked;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use super::fault::Fault;
use super::layer::Limits;
use super::store::{Item, Store};
use super::tar::Kind;
use crate::inventory::root;

/// Names that hide others, and the one that hides all.
const WHITEOUT: &[u8] = b".wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";
/// As many links as are followed on the way to one entry.
const LINKS: usize = 255;
/// Names that links lead through on the way to all entries together: so many, and so many for each entry. Archives name
/// their entries by paths without links, but for the few that a lower layer has.
const DETOUR: u64 = 1 << 20;
const DETOUR_OF_ENTRY: u64 = 100;
/// Longer names do not exist under Linux, in bytes (NAME_MAX).
const LONGEST_NAME: usize = 255;
/// As deep as paths under Linux go: PATH_MAX in names of one letter.
const DEEPEST: usize = 2048;

/// The files of an image.
#[derive(Debug)]
pub struct Tree {
    nodes: Vec<Node>,
    layers: Vec<Arc<Store>>,
    /// The folder that was last looked for: entries of a folder follow each other.
    recent: Option<Recent>,
    /// How many names links may still lead through.
    detour: u64,
    /// Folders that no entry is, but lies in.
    made: u64,
}

/// Where the names of an archive led.
#[derive(Debug)]
struct Recent {
    given: Vec<u8>,
    folder: Arc<[Box<[u8]>]>,
    /// Its node, once it is known to be one in which this layer has something.
    touched: Option<usize>,
}

/// A file, by whatever names.
#[derive(Debug)]
struct Node {
    content: Content,
    mode: u32,
    /// Number of the layer that it is from.
    layer: u16,
    /// Of a folder, the last layer below which it has nothing: its own, or one that hid what lower ones have.
    bare: u16,
}

#[derive(Debug)]
enum Content {
    Folder(BTreeMap<Box<[u8]>, Name>),
    File {
        size: u64,
        kept: Option<u32>,
    },
    /// A symbolic link.
    Link(Box<[u8]>),
    Pipe,
    Device,
}

/// A name in a folder.
#[derive(Debug, Clone, Copy)]
struct Name {
    node: u32,
    /// The last layer that has it, or something below it.
    layer: u16,
}

/// Where an entry goes: the folder that it lies in, and its name there.
struct Place {
    folder: Arc<[Box<[u8]>]>,
    name: Box<[u8]>,
}

impl Tree {
    pub(super) fn new() -> Self {
        let root = Node { content: Content::Folder(BTreeMap::new()), mode: 0o755, layer: 0, bare: 0 };
        Self { nodes: vec![root], layers: Vec::new(), recent: None, detour: DETOUR, made: 0 }
    }

    /// Lays a layer over those that are there.
    ///
    /// # Errors
    /// Entries that cannot be put anywhere, as on a disk; more folders on the way to them than there may be.
    pub(super) fn apply(&mut self, store: Arc<Store>, entries: Vec<Item>, limits: &Limits) -> Result<(), Fault> {
        let layer = u16::try_from(self.layers.len()).map_err(|_| Fault::broken("more than 65,536 layers".into()))?;
        self.layers.push(store);
        self.recent = None;
        for mut item in entries {
            let path = std::mem::take(&mut item.path.0);
            self.detour = self.detour.saturating_add(DETOUR_OF_ENTRY);
            let added = self.add(&path, item, layer).and_then(|()| limits.folders(self.made));
            added.map_err(|fault| fault.of(&format!("the entry {}", String::from_utf8_lossy(&path))))?;
        }
        self.recent = None;
        Ok(())
    }

    fn add(&mut self, path: &[u8], item: Item, layer: u16) -> Result<(), Fault> {
        let Some(place) = self.place(path)? else {
            return match item.kind {
                Kind::Folder => {
                    self.nodes[0].mode = item.mode;
                    Ok(())
                }
                _ => Err(Fault::broken("the root of the image is no folder".into())),
            };
        };
        if let Some(hidden) = place.name.strip_prefix(WHITEOUT) {
            // A link or a folder may be gone.
            self.recent = None;
            match &*place.name == OPAQUE {
                true => self.hide_all(&place, layer),
                false => self.hide(&place, hidden, layer),
            }
            return Ok(());
        }
        if place.name.len() > LONGEST_NAME {
            return Err(Fault::broken(format!("a name of more than {LONGEST_NAME} bytes")));
        }
        let folder = match self.recent.as_ref().and_then(|recent| recent.touched) {
            Some(folder) => folder,
            None => self.make_folders(&place.folder, layer)?,
        };
        let there = self.child(folder, &place.name);
        let both_folders =
            item.kind == Kind::Folder && there.is_some_and(|at| matches!(self.nodes[at].content, Content::Folder(_)));
        let node = if both_folders {
            let node = there.unwrap_or_default();
            self.nodes[node].mode = item.mode;
            node
        } else {
            if let Content::Folder(names) = &mut self.nodes[folder].content {
                names.remove(&place.name);
            }
            // The way to other entries may be another now.
            let turns = |at: usize| matches!(self.nodes[at].content, Content::Folder(_) | Content::Link(_));
            if item.kind == Kind::Link || item.kind == Kind::HardLink || there.is_some_and(turns) {
                self.recent = None;
            }
            self.make(item, layer)?
        };
        if let Content::Folder(names) = &mut self.nodes[folder].content {
            names.insert(place.name.clone(), Name { node: node as u32, layer });
        }
        if self.recent.as_ref().is_none_or(|recent| recent.touched.is_none()) {
            self.touch(&place.folder, layer);
        }
        if let Some(recent) = self.recent.as_mut().filter(|recent| Arc::ptr_eq(&recent.folder, &place.folder)) {
            recent.touched = Some(folder);
        }
        Ok(())
    }

    /// The file that an entry is, which for a further name is there already.
    fn make(&mut self, item: Item, layer: u16) -> Result<usize, Fault> {
        let content = match item.kind {
            Kind::HardLink => return self.linked(&item.target.0),
            Kind::Folder => Content::Folder(BTreeMap::new()),
            Kind::File => Content::File { size: item.size, kept: item.kept },
            Kind::Link => Content::Link(item.target.0.into()),
            Kind::Pipe => Content::Pipe,
            Kind::Device => Content::Device,
        };
        self.nodes.push(Node { content, mode: item.mode, layer, bare: layer });
        Ok(self.nodes.len() - 1)
    }

    /// The file that a hard link names; the link itself where that is a symbolic one.
    fn linked(&mut self, target: &[u8]) -> Result<usize, Fault> {
        let missing = || Fault::broken(format!("it is a link to {}, which is not there", shown(target)));
        let place = self.place(target)?.ok_or_else(missing)?;
        // That was another folder than the entry's.
        self.recent = None;
        let node = self.folder(&place.folder).and_then(|folder| self.child(folder, &place.name)).ok_or_else(missing)?;
        match self.nodes[node].content {
            Content::Folder(_) => Err(Fault::broken(format!("it is a hard link to the folder {}", shown(target)))),
            _ => Ok(node),
        }
    }

    /// Where a path of an archive leads: links on the way are followed, its last name is not; `None` for the root.
    fn place(&mut self, path: &[u8]) -> Result<Option<Place>, Fault> {
        // What goes up is taken off before links are looked at, and never leaves the image.
        let mut names: Vec<&[u8]> = Vec::new();
        for part in path.split(|byte| *byte == b'/') {
            match part {
                b"" | b"." => {}
                b".." => drop(names.pop()),
                name => names.push(name),
            }
        }
        let Some(name) = names.pop() else { return Ok(None) };
        let given = names.join(&b'/');
        let folder = match self.recent.take() {
            Some(recent) if recent.given == given => {
                let folder = Arc::clone(&recent.folder);
                self.recent = Some(recent);
                folder
            }
            _ => {
                let folder: Arc<[Box<[u8]>]> = self.follow(&names)?.into();
                self.recent = Some(Recent { given, folder: Arc::clone(&folder), touched: None });
                folder
            }
        };
        Ok(Some(Place { folder, name: name.into() }))
    }

    /// The folder that names lead to, without links; what is not there yet stays as it is named.
    fn follow(&mut self, names: &[&[u8]]) -> Result<Vec<Box<[u8]>>, Fault> {
        let mut at: Vec<(Box<[u8]>, Option<usize>)> = Vec::new();
        let mut rest: Vec<Box<[u8]>> = names.iter().rev().map(|name| (*name).into()).collect();
        let mut links = 0;
        while let Some(name) = rest.pop() {
            if &*name == b".." {
                at.pop();
                continue;
            }
            let folder = at.last().map_or(Some(0), |(_, node)| *node);
            let node = folder.and_then(|folder| self.child(folder, &name));
            if let Some(Content::Link(target)) = node.map(|node| &self.nodes[node].content) {
                links += 1;
                if links > LINKS {
                    return Err(Fault::broken("the links on the way to it lead in a circle".into()));
                }
                if target.starts_with(b"/") {
                    at.clear();
                }
                let parts = target.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b"."));
                let before = rest.len();
                rest.extend(parts.rev().map(Box::from));
                let more = (rest.len() - before) as u64 + 1;
                self.detour = self.detour.checked_sub(more).ok_or_else(|| {
                    Fault::broken("the links on the way to its entries lead through too many folders".into())
                })?;
            } else {
                at.push((name, node));
            }
            if at.len() + rest.len() > DEEPEST {
                return Err(Fault::broken("it lies deeper than paths may be long".into()));
            }
        }
        Ok(at.into_iter().map(|(name, _)| name).collect())
    }

    fn child(&self, folder: usize, name: &[u8]) -> Option<usize> {
        match &self.nodes[folder].content {
            Content::Folder(names) => names.get(name).map(|name| name.node as usize),
            _ => None,
        }
    }

    /// The node of a folder without links on the way.
    fn folder(&self, names: &[Box<[u8]>]) -> Option<usize> {
        names.iter().try_fold(0, |folder, name| self.child(folder, name))
    }

    /// The folder of those names, made where it is missing.
    fn make_folders(&mut self, names: &[Box<[u8]>], layer: u16) -> Result<usize, Fault> {
        let mut at = 0;
        for name in names {
            at = match self.child(at, name) {
                Some(node) => node,
                None => {
                    self.nodes.push(Node {
                        content: Content::Folder(BTreeMap::new()),
                        mode: 0o755,
                        layer,
                        bare: layer,
                    });
                    let node = self.nodes.len() - 1;
                    self.made += 1;
                    if let Content::Folder(children) = &mut self.nodes[at].content {
                        children.insert(name.clone(), Name { node: node as u32, layer });
                    }
                    node
                }
            };
            if !matches!(self.nodes[at].content, Content::Folder(_)) {
                return Err(Fault::broken(format!("it lies in {}, which is no folder", shown(name))));
            }
        }
        Ok(at)
    }

    /// Notes that a layer has something in a folder.
    fn touch(&mut self, names: &[Box<[u8]>], layer: u16) {
        let mut at = 0;
        for name in names {
            let Content::Folder(children) = &mut self.nodes[at].content else { return };
            let Some(child) = children.get_mut(name) else { return };
            child.layer = layer;
            at = child.node as usize;
        }
    }

    /// Takes away what lower layers have by a name.
    fn hide(&mut self, place: &Place, hidden: &[u8], layer: u16) {
        let Some(folder) = self.folder(&place.folder) else { return };
        let Content::Folder(names) = &mut self.nodes[folder].content else { return };
        match names.get(hidden).copied() {
            Some(name) if name.layer == layer => self.hide_below(name.node as usize, layer),
            Some(_) => drop(names.remove(hidden)),
            None => {}
        }
    }

    /// Takes away what lower layers have in a folder.
    fn hide_all(&mut self, place: &Place, layer: u16) {
        if let Some(folder) = self.folder(&place.folder) {
            self.hide_below(folder, layer);
        }
    }

    fn hide_below(&mut self, folder: usize, layer: u16) {
        let mut rest = vec![folder];
        while let Some(folder) = rest.pop() {
            // What this layer adds is of this layer, and need not be looked at again.
            let node = &mut self.nodes[folder];
            if std::mem::replace(&mut node.bare, layer) == layer {
                continue;
            }
            if let Content::Folder(names) = &mut node.content {
                names.retain(|_, name| name.layer == layer);
                rest.extend(names.values().map(|name| name.node as usize));
            }
        }
    }
}

fn shown(path: &[u8]) -> String {
    root::shown(Path::new(OsStr::from_bytes(path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::image::bytes::Bytes;

    fn add(tree: &mut Tree, path: &str, layer: u16) {
        let (target, size) = (Bytes(Vec::new()), 0);
        let item = Item { path: Bytes(path.into()), kind: Kind::File, target, size, mode: 0o644, kept: None };
        tree.add(path.as_bytes(), item, layer).unwrap();
    }

    /// However many marks a layer has, and wherever.
    #[test]
    fn what_a_layer_hid_it_does_not_look_at_again() {
        let mut tree = Tree::new();
        for name in 0..100 {
            add(&mut tree, &format!("d/e/{name}"), 0);
            add(&mut tree, &format!("d/f/{name}"), 0);
        }
        add(&mut tree, "d/e/.wh..wh..opq", 1);
        add(&mut tree, "d/e/new", 1);
        // No layer comes after one above it: whoever looked at these would take them away.
        add(&mut tree, "d/e/old", 0);
        let names = |tree: &Tree, path: &str| tree.entries(Path::new(path)).unwrap().len();
        let folder = |tree: &Tree, path: &str| tree.node(Path::new(path)).unwrap();
        let (d, e) = (folder(&tree, "d"), folder(&tree, "d/e"));
        // f goes with all that is in it.
        tree.hide_below(d, 1);
        assert_eq!((names(&tree, "d"), names(&tree, "d/e")), (1, 2));
        add(&mut tree, "d/old", 0);
        for name in 0..100 {
            add(&mut tree, &format!("d/e/{name}"), 1);
        }
        tree.hide_below(d, 1);
        tree.hide_below(e, 1);
        assert_eq!((names(&tree, "d"), names(&tree, "d/e")), (2, 102));
        tree.hide_below(0, 2);
        assert_eq!(names(&tree, "/"), 0);
    }
}
