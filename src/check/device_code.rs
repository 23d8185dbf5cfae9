//! What the libraries of an environment offer each GPU of the machines: one [`Offer`] a library and GPU, for the rules
//! about GPU code to sort.

use std::collections::BTreeSet;

use super::Case;
use super::coverage::{Device, Layout, Tally, Verdict};
use super::stack;
use crate::diag::Failure;
use crate::elf::Object;
use crate::inventory::Library;
use crate::matrix::{Gpu, Usage};

/// What one library offers one GPU.
#[derive(Debug)]
pub struct Offer<'a> {
    /// The GPU.
    pub gpu: &'a Gpu,
    /// The library.
    pub library: &'a Library,
    /// How it keeps its code.
    pub layout: Layout,
    /// What it says.
    pub object: &'a Object,
    /// How many of its containers serve the GPU.
    pub tally: Tally,
    /// What that comes to.
    pub verdict: Verdict,
    /// Whether this GPU uses the library.
    pub usage: Usage<'a>,
    /// Another library of its package has machine code for the GPU.
    pub has_sibling: bool,
}

impl Offer<'_> {
    /// Whether a lack of code is a fault: not where the GPU does without the library, nor where the package is built for
    /// the GPU and nothing is known to use this part of it there.
    pub fn is_needed(&self) -> bool {
        match self.usage {
            Usage::Used => true,
            Usage::Unknown => self.layout == Layout::PerArchitecture || !self.has_sibling,
            Usage::Unused(_) => false,
        }
    }
}

/// Judges every library that holds GPU code, for each GPU of the machines.
///
/// # Errors
/// When the matrix cannot be read.
pub fn offers<'c, 'a>(case: &'c Case<'a>) -> Result<&'c [Offer<'a>], Failure> {
    if let Some(known) = case.offers.get() {
        return Ok(known);
    }
    let offers = judge(case)?;
    Ok(case.offers.get_or_init(|| offers))
}

fn judge<'a>(case: &Case<'a>) -> Result<Vec<Offer<'a>>, Failure> {
    let Some(machine) = case.machine else { return Ok(Vec::new()) };
    let (gpus, codes) = (case.matrix.gpu()?, case.matrix.gpu_code()?);
    let driver_isa = machine.driver.as_ref().and_then(|driver| driver.ptx_isa.as_ref());
    let built = stack::runtimes(case.inventory, case.links).into_keys().next_back();
    let mut all = Vec::new();
    for gpu in &machine.gpus {
        let device = Device { gpu, driver_isa, built };
        let mut offers: Vec<Offer<'a>> = Vec::new();
        for library in case.inventory.libraries() {
            if case.links.closed.contains(&library.inode) {
                continue;
            }
            let Ok(object) = &library.object else { continue };
            let file_name = library.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let layout = match codes.is_per_architecture(file_name) {
                true => Layout::PerArchitecture,
                false => Layout::List,
            };
            let tally = Tally::of(object, layout, device, gpus, codes.stubs());
            let verdict = tally.verdict(layout);
            if verdict != Verdict::NoCode {
                let usage = codes.usage(file_name, gpu.capability);
                offers.push(Offer { gpu, library, layout, object, tally, verdict, usage, has_sibling: false });
            }
        }
        // A package of which another library is built for this GPU is built for it, with a part left out. By itself a
        // library is when most of its containers serve it: some kernels are written for one architecture.
        let served = packages_with(&offers, &[Verdict::Sass, Verdict::Jit]);
        for offer in offers.iter_mut().filter(|offer| offer.verdict == Verdict::Part && !offer.tally.is_mostly_served())
        {
            let has_sibling = offer.library.package.is_some_and(|package| served.contains(&package));
            if !has_sibling || matches!(offer.usage, Usage::Used) {
                offer.verdict = Verdict::Missing;
            }
        }
        let built = packages_with(&offers, &[Verdict::Sass]);
        for offer in &mut offers {
            offer.has_sibling = offer.library.package.is_some_and(|package| built.contains(&package));
        }
        all.extend(offers);
    }
    Ok(all)
}

/// The packages of which a library comes to one of `verdicts`.
fn packages_with(offers: &[Offer<'_>], verdicts: &[Verdict]) -> BTreeSet<usize> {
    let fits = offers.iter().filter(|offer| verdicts.contains(&offer.verdict));
    fits.filter_map(|offer| offer.library.package).collect()
}

/// Offers of one GPU and package together, in the order in which they first come.
pub fn by_package<'o, 'a>(case: &Case<'_>, offers: impl Iterator<Item = &'o Offer<'a>>) -> Vec<Vec<&'o Offer<'a>>>
where
    'a: 'o,
{
    let key =
        |offer: &Offer<'_>| (offer.gpu.capability, stack::package(case.inventory, offer.library).map(|one| &one.name));
    let mut groups: Vec<Vec<&Offer<'_>>> = Vec::new();
    for offer in offers {
        match groups.iter_mut().find(|group| offer.library.package.is_some() && key(group[0]) == key(offer)) {
            Some(group) => group.push(offer),
            None => groups.push(vec![offer]),
        }
    }
    groups
}

/// The libraries of a group in words: its name, or how many there are.
pub fn subject(case: &Case<'_>, group: &[&Offer<'_>]) -> String {
    match (group, stack::package(case.inventory, group[0].library)) {
        ([_, _, ..], Some(package)) => format!("{} libraries of {} {}", group.len(), package.name, package.version),
        _ => group[0].library.name.clone(),
    }
}

/// A library's GPU code in words: `sm_70, sm_80, compute_90`.
pub fn list(object: &Object) -> String {
    let codes: BTreeSet<_> = [&object.gpu_code, &object.gpu_code_embedded]
        .into_iter()
        .flat_map(|codes| codes.codes())
        .map(|(code, _)| (code.kind, code.capability, code.suffix, code.to_string()))
        .collect();
    codes.into_iter().map(|(.., text)| text).collect::<Vec<_>>().join(", ")
}
