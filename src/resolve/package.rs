//! The Python packages that a target can install: versions by preference, the wheel of each, what it requires.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use version_ranges::Ranges;

use super::candidate::Candidate;
use super::{Context, Request, expected};
use crate::diag::Failure;
use crate::matrix::matches_any;
use crate::python::{MarkerEnv, PackageMetadata, PackageName, Release, Runtime, Wheel};
use crate::version::Pep440;
use crate::version::pep440::VersionSpecifier;

/// What would be installed for a version.
#[derive(Debug, Clone)]
pub enum Artefact {
    /// This wheel.
    Wheel(Arc<Wheel>),
    /// A wheel of this index that nobody here has seen yet.
    Pending(Arc<str>),
}

impl Artefact {
    /// The index that it comes from.
    pub fn index(&self) -> &Arc<str> {
        match self {
            Self::Wheel(wheel) => &wheel.index,
            Self::Pending(index) => index,
        }
    }
}

/// A version that a package has, and where.
#[derive(Debug, Clone)]
struct Offer {
    version: Pep440,
    index: Arc<str>,
}

/// Packages as one target sees them.
pub struct Packages<'a> {
    pub context: &'a Context<'a>,
    pub request: &'a Request,
    pub runtime: Runtime,
    pub candidates: &'a [Candidate],
    /// Candidates by preference.
    pub ranked: &'a [usize],
    pub env: MarkerEnv,
    pub torch: PackageName,
    default_index: Arc<str>,
    offers: RefCell<HashMap<PackageName, Arc<[Offer]>>>,
    artefacts: RefCell<HashMap<(PackageName, Pep440), Option<Artefact>>>,
}

impl<'a> Packages<'a> {
    pub fn new(
        context: &'a Context<'a>,
        request: &'a Request,
        runtime: Runtime,
        candidates: &'a [Candidate],
        ranked: &'a [usize],
    ) -> Self {
        Self {
            env: MarkerEnv::new(runtime.python, runtime.platform),
            default_index: context.default_index.into(),
            torch: "torch".parse().expect("a good name"),
            offers: RefCell::default(),
            artefacts: RefCell::default(),
            context,
            request,
            runtime,
            candidates,
            ranked,
        }
    }

    /// The torch candidate of a version.
    pub fn candidate(&self, version: &Pep440) -> Option<&'a Candidate> {
        self.candidates.binary_search_by(|candidate| candidate.version.cmp(version)).ok().map(|i| &self.candidates[i])
    }

    /// Whether a package comes in the variant of torch.
    pub fn in_variants(&self, package: &PackageName) -> Result<bool, Failure> {
        Ok(*package != self.torch && self.context.matrix.package()?.variant.contains(package))
    }

    /// The best version of `package` in `range` that can be installed, or none.
    pub fn choose(&self, package: &PackageName, range: &Ranges<Pep440>) -> Result<Option<Pep440>, Failure> {
        if let Some(kept) = self.context.keep.versions.get(package).filter(|kept| range.contains(*kept))
            && self.artefact(package, kept, range)?.is_some()
        {
            return Ok(Some(kept.clone()));
        }
        if *package == self.torch {
            for &i in self.ranked {
                let version = &self.candidates[i].version;
                if range.contains(version) && self.artefact(package, version, range)?.is_some() {
                    return Ok(Some(version.clone()));
                }
            }
            return Ok(None);
        }
        let offers = self.offers(package)?;
        let stable_exists = offers.iter().any(|offer| offer.version.is_stable());
        let asked_for = self
            .request
            .packages
            .iter()
            .any(|ask| ask.package == *package && ask.specifiers.iter().any(VersionSpecifier::any_prerelease));
        for offer in offers.iter().rev() {
            let acceptable = offer.version.is_stable() || asked_for || !stable_exists;
            if acceptable && range.contains(&offer.version) && self.artefact(package, &offer.version, range)?.is_some()
            {
                return Ok(Some(offer.version.clone()));
            }
        }
        Ok(None)
    }

    /// Everything that the package's indexes have, ascending.
    fn offers(&self, package: &PackageName) -> Result<Arc<[Offer]>, Failure> {
        if let Some(offers) = self.offers.borrow().get(package) {
            return Ok(Arc::clone(offers));
        }
        let index: Arc<str> =
            self.request.pinned_index(package).map_or_else(|| Arc::clone(&self.default_index), Into::into);
        let versions = self.context.catalog.versions(&index, package)?;
        let mut offers: Vec<Offer> =
            versions.iter().map(|version| Offer { version: version.clone(), index: Arc::clone(&index) }).collect();
        if self.in_variants(package)? && self.request.pinned_index(package).is_none() {
            // The indexes of torch variants: the pairs that the matrix names, each with torch's own label.
            for candidate in self.candidates.iter().filter(|candidate| candidate.version.is_local()) {
                for pair in paired(candidate, package).unwrap_or_default() {
                    let version = pair.clone().with_local(candidate.version.local().to_vec());
                    offers.push(Offer { version, index: Arc::clone(&candidate.index) });
                }
            }
        }
        offers.sort_by(|a, b| a.version.cmp(&b.version));
        offers.dedup_by(|a, b| a.version == b.version);
        let offers: Arc<[Offer]> = offers.into();
        self.offers.borrow_mut().insert(package.clone(), Arc::clone(&offers));
        Ok(offers)
    }

    /// Versions that the indexes have of a package, for explanations.
    pub fn known_versions(&self, package: &PackageName) -> Result<Vec<Pep440>, Failure> {
        if *package == self.torch {
            return Ok(self.candidates.iter().map(|candidate| candidate.version.clone()).collect());
        }
        Ok(self.offers(package)?.iter().map(|offer| offer.version.clone()).collect())
    }

    /// What would be installed for a version; `None` when it has no wheel for this target. A yanked version counts only
    /// where `range` leaves no other.
    fn artefact(
        &self,
        package: &PackageName,
        version: &Pep440,
        range: &Ranges<Pep440>,
    ) -> Result<Option<Artefact>, Failure> {
        let found = self.chosen(package, version)?;
        if let Some(Artefact::Wheel(wheel)) = &found
            && wheel.yanked
        {
            let public = version.clone().without_local();
            let only = crate::version::pep440::to_set(&VersionSpecifier::equals_version(public).into());
            return Ok(range.subset_of(&only).then_some(found).flatten());
        }
        Ok(found)
    }

    /// What would be installed for a version, yanked or not.
    pub fn chosen(&self, package: &PackageName, version: &Pep440) -> Result<Option<Artefact>, Failure> {
        let key = (package.clone(), version.clone());
        if let Some(found) = self.artefacts.borrow().get(&key) {
            return Ok(found.clone());
        }
        let index = self.index_of(package, version)?;
        let release = self.context.catalog.release(&index, package, version)?;
        let mut fitting: Vec<(_, &Arc<Wheel>)> = Vec::new();
        for wheel in release.as_deref().map_or(&[][..], |release| &release.wheels) {
            if let Some(fit) = wheel.name.tags.fit(&self.runtime)
                && self.python_fits(wheel)
                && self.context.catalog.may_choose(wheel)?
            {
                fitting.push(((!wheel.yanked, fit, wheel.name.build), wheel));
            }
        }
        let best = fitting.into_iter().max_by(|a, b| a.0.cmp(&b.0).then_with(|| b.1.name.file.cmp(&a.1.name.file)));
        let found = match best {
            Some((_, wheel)) => Some(Artefact::Wheel(Arc::clone(wheel))),
            // The matrix vouches for builds of other indexes; the default index has what it shows and nothing else.
            None if self.context.pending && version.is_local() && self.choosable(release.as_deref())?.is_empty() => {
                Some(Artefact::Pending(index))
            }
            None => None,
        };
        self.artefacts.borrow_mut().insert(key, found.clone());
        Ok(found)
    }

    /// The wheels of a release that may be chosen.
    fn choosable<'r>(&self, release: Option<&'r Release>) -> Result<Vec<&'r Arc<Wheel>>, Failure> {
        let mut wheels = Vec::new();
        for wheel in release.map_or(&[][..], |release| &release.wheels) {
            if self.context.catalog.may_choose(wheel)? {
                wheels.push(wheel);
            }
        }
        Ok(wheels)
    }

    fn index_of(&self, package: &PackageName, version: &Pep440) -> Result<Arc<str>, Failure> {
        if *package == self.torch {
            let candidate = self.candidate(version);
            return Ok(candidate.map_or_else(|| Arc::clone(&self.default_index), |c| Arc::clone(&c.index)));
        }
        let offers = self.offers(package)?;
        let offer = offers.iter().find(|offer| offer.version == *version);
        Ok(offer.map_or_else(|| Arc::clone(&self.default_index), |offer| Arc::clone(&offer.index)))
    }

    fn python_fits(&self, wheel: &Wheel) -> bool {
        let python = self.runtime.python;
        let version = Pep440::new([u64::from(python.major), u64::from(python.minor), 0]);
        wheel.requires_python.as_ref().is_none_or(|specifiers| specifiers.contains(&version))
    }

    /// What a version requires.
    pub fn metadata(&self, package: &PackageName, version: &Pep440) -> Result<Arc<PackageMetadata>, Failure> {
        match self.chosen(package, version)? {
            Some(Artefact::Wheel(wheel)) => self.context.catalog.metadata(&wheel),
            Some(Artefact::Pending(_)) => self.expected_metadata(package, version),
            None => Ok(Arc::default()),
        }
    }

    /// What a wheel that nobody here has seen will require: what the default index's build of the same version does,
    /// with the CUDA packages that the matrix says this build pins.
    fn expected_metadata(&self, package: &PackageName, version: &Pep440) -> Result<Arc<PackageMetadata>, Failure> {
        let public = version.clone().without_local();
        let release = self.context.catalog.release(&self.default_index, package, &public)?;
        let wheels = self.choosable(release.as_deref())?;
        let sibling = wheels
            .iter()
            .filter_map(|wheel| Some((wheel.name.tags.fit(&self.runtime)?, wheel)))
            .max_by_key(|(fit, _)| *fit);
        // A build for another platform will do: what is taken from it does not differ.
        let sibling = sibling.map(|(_, wheel)| *wheel).or(wheels.first().copied());
        let mut metadata = match sibling {
            Some(wheel) => (*self.context.catalog.metadata(wheel)?).clone(),
            None => PackageMetadata::default(),
        };
        if *package == self.torch
            && let Some(build) = self.candidate(version).and_then(|candidate| candidate.build.as_ref())
        {
            let cuda = &self.context.matrix.package()?.cuda;
            let (of_cuda, mut others): (Vec<_>, Vec<_>) =
                metadata.requires.into_iter().partition(|requirement| matches_any(cuda, &requirement.package));
            others.extend(expected::cuda_packages(build.row(), &of_cuda));
            metadata.requires = others;
        }
        Ok(Arc::new(metadata))
    }

    /// The CUDA family that a package is made for by its name: 12 for `nvidia-cudnn-cu12`. Packages of two families put
    /// their libraries into the same folders.
    pub fn family_of(&self, package: &PackageName) -> Result<Option<u32>, Failure> {
        let of_cuda = matches_any(&self.context.matrix.package()?.cuda, package);
        let digits = package.as_str().rsplit_once("-cu").map(|(_, digits)| digits).filter(|_| of_cuda);
        Ok(digits.and_then(|digits| digits.parse().ok()))
    }

    /// The torch versions that a version of a package in variants goes with, as far as that is not METADATA's to say.
    pub fn torch_for(&self, package: &PackageName, version: &Pep440) -> Vec<Pep440> {
        let pairs = self.pairs(package);
        let fits = |candidate: &&Candidate| goes_with(candidate, package, version, &pairs);
        self.candidates.iter().filter(fits).map(|candidate| candidate.version.clone()).collect()
    }

    /// The versions of a package in variants that a torch version goes with.
    pub fn variants_for(&self, torch: &Pep440, package: &PackageName) -> Result<Vec<Pep440>, Failure> {
        let Some(candidate) = self.candidate(torch) else { return Ok(Vec::new()) };
        let (offers, pairs) = (self.offers(package)?, self.pairs(package));
        let versions = offers.iter().map(|offer| &offer.version);
        Ok(versions.filter(|version| goes_with(candidate, package, version, &pairs)).cloned().collect())
    }

    /// All versions of `package` that the matrix pairs with a torch candidate.
    fn pairs(&self, package: &PackageName) -> BTreeSet<&'a Pep440> {
        self.candidates.iter().filter_map(|candidate| paired(candidate, package)).flatten().collect()
    }
}

/// Whether a version of `package`, of which `pairs` are all that the matrix pairs, goes with a torch candidate.
fn goes_with(candidate: &Candidate, package: &PackageName, version: &Pep440, pairs: &BTreeSet<&Pep440>) -> bool {
    if candidate.version.local() != version.local() {
        return false;
    }
    let public = version.clone().without_local();
    let known = pairs.contains(&public);
    // The pairs are complete up to the newest: what lies below and is none was withdrawn, or is older than them all.
    let too_old = !known && pairs.last().is_some_and(|newest| public < **newest);
    !too_old
        && match paired(candidate, package) {
            Some(pairs) if known => pairs.contains(&public),
            // A version or build that the matrix does not know: its METADATA decides.
            _ => true,
        }
}

/// The versions of `package` that belong to a torch candidate; `None` when the matrix does not say.
fn paired<'c>(candidate: &'c Candidate, package: &PackageName) -> Option<&'c [Pep440]> {
    let release = candidate.build.as_ref()?.release();
    match package.as_str() {
        "torchvision" => release.torchvision.as_deref(),
        "torchaudio" => release.torchaudio.as_deref(),
        _ => None,
    }
}
