//! Images and variables of a lock: chosen from the matrix, their digests asked of registries.

use std::collections::{BTreeMap, BTreeSet};

use super::Globals;
use super::source;
use crate::diag::{Diagnostic, Failure, Severity};
use crate::lock::{Image, Lock, Reference, choose_image};
use crate::manifest::Manifest;
use crate::matrix::Matrix;
use crate::python::Platform;
use crate::registry::{Found, Registries};

/// Whether and how registries are asked.
pub struct Asked<'a> {
    /// They may be.
    pub registries: bool,
    /// Digests that the lock holds are asked for again.
    pub anew: bool,
    /// Addresses instead of registries.
    pub mirrors: &'a [(String, String)],
}

/// `REGISTRY=URL` of `--registry-mirror`.
///
/// # Errors
/// Text without either half.
pub fn mirror(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((registry, url)) if !registry.is_empty() && !url.is_empty() => Ok((registry.to_owned(), url.to_owned())),
        _ => Err("write REGISTRY=URL, such as docker.io=https://mirror.example".into()),
    }
}

/// Gives each target its image and variables, where the manifest has them; gives what there is to say about the images.
/// A registry that cannot be asked is a warning: the image has its tag then, and no digest.
///
/// # Errors
/// A matrix or a Docker configuration that cannot be read.
pub fn fill(
    lock: &mut Lock,
    old: Option<&Lock>,
    manifest: &Manifest,
    matrix: &Matrix,
    asked: &Asked<'_>,
    globals: &Globals,
) -> Result<Vec<Diagnostic>, Failure> {
    let mut said = Vec::new();
    let online = asked.registries && !globals.offline && !manifest.image.is_empty();
    let registries = if online { Some(source::registries(asked.mirrors, globals)?) } else { None };
    let mut digests = Digests::default();
    for target in &mut lock.targets {
        target.env.clone_from(&manifest.env);
        if manifest.image.is_empty() {
            continue;
        }
        let (mut image, warnings) = choose_image(target, &manifest.image, matrix)?;
        said.extend(warnings);
        let before = old.and_then(|old| old.target(&target.name)).and_then(|before| before.image.as_ref());
        keep(&mut image, before);
        for reference in image.references_mut().filter(|reference| asked.anew || reference.digest.is_none()) {
            // Where nothing is answered, what was known of the same image stays.
            if let Some(Answer::Told(digest)) =
                registries.as_ref().map(|registries| digests.ask(registries, reference, target.platform, &mut said))
            {
                reference.digest = digest;
            }
        }
        target.image = Some(image);
    }
    Ok(said)
}

/// Takes the digests of images of the same name.
fn keep(image: &mut Image, before: Option<&Image>) {
    let known: BTreeMap<&str, &String> = before
        .iter()
        .flat_map(|before| before.references())
        .filter_map(|reference| Some((&*reference.name, reference.digest.as_ref()?)))
        .collect();
    for reference in image.references_mut() {
        reference.digest = known.get(&*reference.name).map(|digest| (*digest).clone());
    }
}

/// What a registry says of an image.
#[derive(Clone)]
enum Answer {
    /// Its digest; none where there is no such image.
    Told(Option<String>),
    /// Nothing.
    Silence,
}

/// Answers of registries, each asked for once.
#[derive(Default)]
struct Digests {
    known: BTreeMap<(String, Platform), Answer>,
    /// Registries that gave no answer: they are not waited for again.
    silent: BTreeSet<String>,
}

impl Digests {
    fn ask(
        &mut self,
        registries: &Registries,
        reference: &Reference,
        platform: Platform,
        said: &mut Vec<Diagnostic>,
    ) -> Answer {
        let key = (reference.name.clone(), platform);
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let host = registries.registry(&reference.name).to_owned();
        if self.silent.contains(&host) {
            return Answer::Silence;
        }
        let answer = registries.digest(&reference.name, platform);
        let answer = match answer {
            Ok(Found { digest, single }) => {
                said.extend(single.then(|| single_platform(&reference.name, &digest)));
                Answer::Told(Some(digest))
            }
            Err(failure) => {
                let is_gone = failure.diagnostics.iter().any(|problem| problem.code == "image-missing-tag");
                for mut problem in failure.diagnostics {
                    problem.severity = Severity::Warning;
                    if problem.code == "image-registry" {
                        self.silent.insert(host.clone());
                    }
                    said.push(problem);
                }
                if is_gone { Answer::Told(None) } else { Answer::Silence }
            }
        };
        self.known.insert(key, answer.clone());
        answer
    }
}

fn single_platform(name: &str, digest: &str) -> Diagnostic {
    let seen = crate::diag::Evidence::observed(name, format!("{digest} is a manifest, and no index"));
    Diagnostic::note("image-single-platform", format!("{name} is an image of one platform"), seen)
}
