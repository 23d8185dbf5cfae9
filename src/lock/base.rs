//! The driver that the base of an image demands: takes a target, gives what `NVIDIA_REQUIRE_CUDA` of nvidia/cuda comes to on
//! its GPUs.

use super::model::{Image, Target, Tier};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::manifest::parse_driver;
use crate::matrix::requirement::{branches, first, least_cuda, refused, worst};
use crate::matrix::{Gpu, Matrix};
use crate::resolve::DriverAsk;
use crate::version::Driver;

/// The drivers on which the container runtime starts the base of a target's image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseDriver {
    /// Every driver from this one on.
    pub least: Driver,
    /// Older branches whose drivers will do as well, whatever brand they call the target's GPUs; in order. The wheels have
    /// a floor of their own, which may lie within the first of them.
    pub branches: Vec<u32>,
}

/// What the base of a target's image asks of the driver; `None` where it asks for nothing, or nobody has read what.
///
/// # Errors
/// When the matrix cannot be read.
pub fn base_driver(target: &Target, matrix: &Matrix) -> Result<Option<BaseDriver>, Failure> {
    let required = target.image.as_ref().and_then(|image| least_cuda(image.requires.as_deref()?));
    let facts = matrix.cuda()?;
    let Some((required, least)) = required.and_then(|cuda| Some((cuda, facts.native_driver(cuda)?))) else {
        return Ok(None);
    };
    let mut all = Vec::new();
    if let Some(row) = matrix.image()?.requirement(required, target.platform) {
        let (gpus, _) = machines(target, matrix)?;
        let starts = |branch: u32| {
            let oldest = facts.oldest_of_branch(branch).or_else(|| branch.to_string().parse().ok());
            oldest.is_some_and(|driver| {
                refused(&row.expression, &gpus, &driver, facts).is_ok_and(|refused| refused.is_empty())
            })
        };
        let floor = target.driver.floor.as_ref().map_or(0, Driver::major);
        let older = facts.branches.iter().map(|row| row.branch);
        all.extend(older.filter(|branch| (floor..least.major()).contains(branch) && starts(*branch)));
        all.sort_unstable();
    }
    Ok(Some(BaseDriver { least, branches: all }))
}

/// Notes what the base asks of the driver. Besides, that the container runtime does not start it on the driver that was
/// given, or may not.
///
/// # Errors
/// When the matrix cannot be read.
pub(super) fn judge(image: &mut Image, target: &Target, matrix: &Matrix) -> Result<Option<Diagnostic>, Failure> {
    let images = matrix.image()?;
    let Some(row) = target.cuda.and_then(|cuda| images.requirement(cuda, target.platform)) else { return Ok(None) };
    let required = first(&row.expression);
    image.requires = Some(required.to_owned());
    let (gpus, driver) = machines(target, matrix)?;
    let (Some(base), Some(driver)) = (&image.base, driver) else { return Ok(None) };
    let facts = matrix.cuda()?;
    // The matrix's rows are in the language.
    let refused = refused(&row.expression, &gpus, &driver.decides, facts).unwrap_or_default();
    if refused.is_empty() {
        return Ok(None);
    }
    let (certain, names) = worst(&refused);
    let (name, given, names) = (&base.name, &driver.given, names.join(", "));
    let native = least_cuda(&row.expression).and_then(|cuda| facts.native_driver(cuda));
    let later = native.map(|native| format!(" (driver {native} or later)")).unwrap_or_default();
    let message = match certain {
        true => format!(
            "target {}: {name} requires {required}{later}, and names no exception for {names} with driver {given}: the \
             container runtime refuses to start it",
            target.name
        ),
        false => format!(
            "target {}: {name} requires {required}{later}, or another driver for some brands: whether the container \
             runtime starts it on {names} with driver {given} depends on the brand that the driver reports",
            target.name
        ),
    };
    let besides: Vec<String> = branches(&row.expression).iter().map(|branch| format!("R{branch}")).collect();
    let besides = match besides.is_empty() {
        true => String::new(),
        false => format!(", or drivers {} for the brands that it lists", besides.join(", ")),
    };
    let claim = format!("images of CUDA {} set NVIDIA_REQUIRE_CUDA to {required}{besides}", row.cuda);
    let mut fix = "set `flavor = \"slim\"` in [image], which requires nothing, or update the driver".to_owned();
    if matches!(target.driver.tier, Some(Tier::Native | Tier::MinorVersion)) {
        fix += "; the wheels run on this driver, so that NVIDIA_DISABLE_REQUIRE=1 for the container does as well";
    }
    let mut warning = Diagnostic::warning("image-driver-floor", message, Evidence::fact(claim, &*row.source)).fix(fix);
    if !certain {
        warning.severity = Severity::Note;
    }
    Ok(Some(warning))
}

/// The GPUs of a target, and the driver that its manifest gave. Of a GPU whose name the matrix does not know, what the lock
/// says of it.
fn machines(target: &Target, matrix: &Matrix) -> Result<(Vec<Gpu>, Option<DriverAsk>), Failure> {
    let facts = matrix.gpu()?;
    let found = |gpu: &super::Gpu| facts.find(&gpu.name).or_else(|_| facts.find(&gpu.sm)).ok();
    let gpus: Vec<Gpu> = target.gpus.iter().filter_map(found).collect();
    let last = gpus.iter().filter_map(|gpu| facts.get(gpu.capability)?.last_branch).min();
    let given = target.driver.given.as_deref().and_then(|given| parse_driver(given).ok());
    let driver = given.map(|given| DriverAsk::of(&given, matrix.cuda()?, last)).transpose()?;
    Ok((gpus, driver))
}
