//! What the libraries of an environment offer each GPU of the machines: one [`Offer`] a library and GPU, for the rules
//! about GPU code to sort.

use std::collections::BTreeSet;

use super::Case;
use super::coverage::{Device, Layout, Tally, Verdict};
use super::stack;
use crate::diag::Failure;
use crate::elf::Object;
use crate::inventory::Library;
use crate::matrix::Gpu;
use crate::matrix::schema::OptionalCodeRow;

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
    /// Why this GPU does without the library, where it does.
    pub unused: Option<&'a OptionalCodeRow>,
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
                let unused = codes.unused(file_name, gpu.capability);
                offers.push(Offer { gpu, library, layout, object, tally, verdict, unused });
            }
        }
        // A package of which another library is built for this GPU is built for it, with a part left out. By itself a
        // library is when most of its containers serve it: some kernels are written for one architecture.
        let built_for_it: BTreeSet<usize> = offers
            .iter()
            .filter(|offer| matches!(offer.verdict, Verdict::Sass | Verdict::Jit))
            .filter_map(|offer| offer.library.package)
            .collect();
        for offer in offers.iter_mut().filter(|offer| offer.verdict == Verdict::Part && !offer.tally.is_mostly_served())
        {
            if !offer.library.package.is_some_and(|package| built_for_it.contains(&package)) {
                offer.verdict = Verdict::Missing;
            }
        }
        all.extend(offers);
    }
    Ok(all)
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
