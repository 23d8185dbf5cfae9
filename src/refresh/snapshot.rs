//! The lines of packages anew: takes what the index lists and the old lines, gives new ones.
//!
//! A wheel never changes under its hash, so a release whose wheels are those of its old line is not read again.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::keep::{self, Class, Kept};
use super::line::{Entry, Line};
use crate::diag::Failure;
use crate::python::{Catalog as _, Library, PackageName, Wheel};
use crate::registry::{Client, MetadataText};
use crate::version::Pep440;

/// A package to write anew.
pub(super) struct Package {
    pub(super) name: PackageName,
    /// Its shared libraries are listed.
    pub(super) gpu: bool,
    /// Its lines so far.
    pub(super) old: Vec<Line>,
}

/// A package as it is now.
#[derive(Debug)]
pub(super) struct Refreshed {
    pub(super) lines: Vec<Line>,
    /// What is kept of its page.
    pub(super) kept: BTreeMap<Pep440, Vec<Kept>>,
}

/// What a wheel says of itself.
struct Told {
    metadata: MetadataText,
    libraries: Vec<Library>,
}

type Answers = HashMap<Box<str>, Result<Told, Failure>>;

/// Makes the lines of `packages` anew, from `index`, without what was uploaded after `until`.
///
/// # Errors
/// When a page or a wheel cannot be read.
pub(super) fn refresh(
    client: &Client,
    index: &str,
    packages: &[Package],
    until: &str,
) -> Result<BTreeMap<PackageName, Refreshed>, Failure> {
    let names: Vec<PackageName> = packages.iter().map(|package| package.name.clone()).collect();
    if let Some(first) = names.first() {
        // An index that is out of reach is asked for one page, not for all.
        client.list(index, first)?;
    }
    client.prefetch(index, &names);
    let mut pages = Vec::new();
    let mut unread = Vec::new();
    for package in packages {
        let kept = keep::kept(&package.name, package.gpu, client.listed(index, &package.name)?, until);
        for (version, wheels) in &kept {
            if old_line(package, version, wheels).is_none() {
                let chosen = to_read(package.gpu, wheels);
                unread.extend(chosen.map(|kept| (Arc::clone(&kept.listed.wheel), package.gpu)));
            }
        }
        pages.push((package, kept));
    }
    let answers = Mutex::new(Answers::new());
    client.each(
        &unread,
        |(wheel, _)| wheel.name.to_string(),
        |(wheel, gpu)| {
            let told = read(client, wheel, *gpu);
            answers.lock().unwrap_or_else(PoisonError::into_inner).insert(wheel.name.file.clone(), told);
        },
    );
    let mut answers = answers.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut refreshed = BTreeMap::new();
    for (package, kept) in pages {
        let mut lines = Vec::new();
        for (version, wheels) in &kept {
            lines.push(match old_line(package, version, wheels) {
                Some(old) => renewed(old, wheels),
                None => line(package, version, wheels, &mut answers)?,
            });
        }
        refreshed.insert(package.name.clone(), Refreshed { lines, kept });
    }
    Ok(refreshed)
}

fn read(client: &Client, wheel: &Wheel, gpu: bool) -> Result<Told, Failure> {
    let metadata = client.metadata_text(wheel)?;
    let libraries = if gpu { client.libraries(wheel)? } else { Vec::new() };
    Ok(Told { metadata, libraries })
}

/// The old line of a release, if it is of the same wheels.
fn old_line<'p>(package: &'p Package, version: &Pep440, wheels: &[Kept]) -> Option<&'p Line> {
    let version = version.to_string();
    let line = package.old.iter().find(|line| line.version == version)?;
    let same = |entry: &Entry, kept: &Kept| {
        *entry.file == *kept.listed.wheel.name.file
            && Some(entry.sha256.as_str()) == kept.listed.wheel.sha256.as_deref()
    };
    let all = line.wheels.len() == wheels.len() && line.wheels.iter().zip(wheels).all(|(e, kept)| same(e, kept));
    all.then_some(line)
}

/// An old line with what the page says of its wheels now.
fn renewed(old: &Line, wheels: &[Kept]) -> Line {
    let mut line = old.clone();
    for (entry, kept) in line.wheels.iter_mut().zip(wheels) {
        let listed = &kept.listed;
        entry.size = listed.wheel.size.unwrap_or(entry.size);
        entry.yanked = listed.wheel.yanked;
        entry.python = listed.requires_python.as_deref().map(str::to_owned).or(entry.python.take());
    }
    line
}

/// The wheels of a release that are read: all of the GPU family, else one for each class.
fn to_read(gpu: bool, wheels: &[Kept]) -> impl Iterator<Item = &Kept> {
    let first = move |class: Class| wheels.iter().position(|kept| kept.class == class);
    wheels.iter().enumerate().filter(move |(i, kept)| gpu || first(kept.class) == Some(*i)).map(|(_, kept)| kept)
}

/// A new line from what its wheels say.
fn line(package: &Package, version: &Pep440, wheels: &[Kept], answers: &mut Answers) -> Result<Line, Failure> {
    let mut line = Line { version: version.to_string(), requires: Vec::new(), extras: Vec::new(), wheels: Vec::new() };
    for kept in wheels {
        let wheel = &kept.listed.wheel;
        let spokesman = if package.gpu { Some(kept) } else { wheels.iter().find(|other| other.class == kept.class) };
        let Some(answer) = spokesman.and_then(|kept| answers.get_mut(&kept.listed.wheel.name.file)) else { continue };
        let told = answer.as_ref().map_err(Clone::clone)?;
        let mut requires = told.metadata.requires.clone();
        if package.gpu {
            for extra in &told.metadata.extras {
                if !line.extras.contains(extra) {
                    line.extras.push(extra.clone());
                }
            }
        } else {
            requires.retain(|requirement| !for_an_extra(requirement));
        }
        let meta = line.requires.iter().position(|known| *known == requires).unwrap_or_else(|| {
            line.requires.push(requires);
            line.requires.len() - 1
        });
        let python = kept.listed.requires_python.as_deref().or(told.metadata.python.as_deref());
        line.wheels.push(Entry {
            file: wheel.name.file.to_string(),
            sha256: wheel.sha256.as_deref().unwrap_or_default().to_owned(),
            size: wheel.size.unwrap_or_default(),
            python: python.map(str::to_owned),
            yanked: wheel.yanked,
            meta,
            libs: told.libraries.iter().map(library).collect(),
        });
    }
    Ok(line)
}

/// Whether a requirement holds with an extra only, by the words of its marker.
fn for_an_extra(requirement: &str) -> bool {
    let Some((_, marker)) = requirement.split_once(';') else { return false };
    marker.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "extra")
}

/// A library with its hash as RECORD has it.
fn library(library: &Library) -> (String, String, u64) {
    let hex = library.sha256.as_bytes().chunks(2);
    let bytes: Vec<u8> = hex.filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect();
    (library.path.clone(), URL_SAFE_NO_PAD.encode(bytes), library.size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_written_as_record_has_them() {
        let sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855".into();
        let (_, base64, _) = library(&Library { path: "x.so".into(), sha256, size: 0 });
        assert_eq!(base64, "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU");
    }

    #[test]
    fn what_an_extra_brings() {
        assert!(for_an_extra("pytest; extra == 'test'") && for_an_extra("x ; python_version>'3' and extra=='y'"));
        assert!(!for_an_extra("extra-name>1") && !for_an_extra("x; sys_platform == 'linux'"));
    }
}
