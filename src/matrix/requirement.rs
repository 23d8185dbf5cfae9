//! What an image requires of the machine it is started on: takes `NVIDIA_REQUIRE_*`, says whether a machine meets it.
//!
//! The language is libnvidia-container's (`src/cli/dsl.c`): conditions behind commas must all hold, and of groups behind
//! spaces one; `cuda`, `driver` and `arch` are versions, `brand` is a word. What makes a requirement is the NVIDIA
//! Container Toolkit's (`internal/config/image/cuda_image.go`).

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::schema::GpuClass;
use super::{CudaFacts, Gpu};
use crate::version::{Cuda, Driver};

/// What a machine has; what is not known is taken to be right, as the container runtime takes it.
#[derive(Debug, Clone, Default)]
pub struct Host {
    /// CUDA of its driver: `12.4`.
    pub cuda: Option<String>,
    /// Its driver: `550.54.15`.
    pub driver: Option<String>,
    /// Compute capability of its GPU: `8.0`.
    pub arch: Option<String>,
    /// What its driver calls the kind of its GPU.
    pub brand: Option<&'static str>,
}

/// The brands that a driver may give a GPU sold as that. GPUs for data centres were `Tesla`, and `NVIDIA` since Ampere,
/// which older runtimes call unknown.
pub fn brands(class: Option<GpuClass>) -> &'static [&'static str] {
    match class {
        Some(GpuClass::Geforce) => &["geforce"],
        Some(GpuClass::DataCenter) => &["tesla", "nvidia", "unknown"],
        Some(GpuClass::Workstation) => &["quadro", "quadrortx", "nvidiartx", "unknown"],
        Some(GpuClass::Jetson) => &["unknown"],
        None => &["tesla", "nvidia", "geforce", "quadro", "quadrortx", "nvidiartx", "unknown"],
    }
}

/// Whether these variables have the container runtime ask for nothing.
pub fn is_disabled(variables: &BTreeMap<String, String>) -> bool {
    const TRUE: [&str; 6] = ["1", "t", "T", "TRUE", "true", "True"];
    variables.get("NVIDIA_DISABLE_REQUIRE").is_some_and(|value| TRUE.contains(&value.as_str()))
}

/// The requirements of an image with these variables, each by the name of its variable.
pub fn requirements(variables: &BTreeMap<String, String>) -> Vec<(&str, String)> {
    if is_disabled(variables) {
        return Vec::new();
    }
    let set = |name: &str| variables.get(name).map(String::as_str).filter(|value| !value.is_empty());
    let named = variables
        .iter()
        .filter(|(name, _)| name.starts_with("NVIDIA_REQUIRE_") && !name.starts_with("NVIDIA_REQUIRE_JETPACK"));
    let mut all: Vec<(&str, String)> = named.map(|(name, value)| (name.as_str(), value.clone())).collect();
    // Images of before 2018 name their CUDA alone.
    if let (Some(cuda), None) = (set("CUDA_VERSION"), set("NVIDIA_REQUIRE_CUDA")) {
        let minor: Vec<&str> = cuda.split('.').take(2).collect();
        let numbers = minor.iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
        if numbers && minor.len() == 2 {
            all.push(("CUDA_VERSION", format!("cuda>={}", minor.join("."))));
        }
    }
    all
}

/// What a requirement begins with: the conditions for all machines.
pub fn first(requirement: &str) -> &str {
    requirement.split(' ').find(|group| !group.is_empty()).unwrap_or_default()
}

/// The CUDA that a requirement begins with, as those of nvidia/cuda do: 12.8 of `cuda>=12.8 brand=..`.
pub fn least_cuda(requirement: &str) -> Option<Cuda> {
    // Names of conditions have no case.
    let (name, cuda) = first(requirement).split_once(">=")?;
    cuda.parse().ok().filter(|_| name.eq_ignore_ascii_case("cuda"))
}

/// The driver branches that a requirement names besides: 450 of `brand=tesla,driver>=450,driver<451`, each once.
pub fn branches(requirement: &str) -> Vec<u32> {
    let lower =
        |group: &str| group.split(',').find_map(|part| part.strip_prefix("driver>=")?.split('.').next()?.parse().ok());
    let mut branches: Vec<u32> = requirement.split(' ').filter_map(lower).collect();
    branches.sort_unstable();
    branches.dedup();
    branches
}

/// That a requirement is not in the language, with the condition that is not: no container is started then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid(pub String);

/// Reads every condition of a requirement.
///
/// # Errors
/// The first condition that is none.
pub fn check(requirement: &str) -> Result<(), Invalid> {
    let (cuda, driver, arch) = (Some("1".to_owned()), Some("1".to_owned()), Some("1".to_owned()));
    let host = Host { cuda, driver, arch, brand: Some("unknown") };
    let mut conditions = requirement.split([' ', ',']).filter(|condition| !condition.is_empty());
    conditions.try_for_each(|one| holds(one, &host).map(drop).ok_or_else(|| Invalid(one.to_owned())))
}

/// A GPU on which nothing is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused<'g> {
    /// The GPU; absent where none was named.
    pub gpu: Option<&'g Gpu>,
    /// It is so whatever the driver calls the GPU; else the brand decides.
    pub certain: bool,
}

/// The GPUs, of `gpus`, for which a requirement is not met with a driver. Where there are none, any may be meant.
///
/// # Errors
/// As [`is_met`].
pub fn refused<'g>(
    requirement: &str,
    gpus: &'g [Gpu],
    driver: &Driver,
    facts: &CudaFacts,
) -> Result<Vec<Refused<'g>>, Invalid> {
    // A branch that came out after the matrix supports a CUDA that is not known here.
    let newest = facts.branches.iter().map(|row| row.branch).max();
    let known = newest.is_some_and(|newest| driver.major() <= newest);
    let cuda = facts.native_cuda(driver).filter(|_| known).map(|cuda| cuda.to_string());
    let mut refused = Vec::new();
    for gpu in gpus.iter().map(Some).chain(gpus.is_empty().then_some(None)) {
        let host = |brand| Host {
            cuda: cuda.clone(),
            driver: Some(driver.to_string()),
            arch: gpu.map(|gpu| gpu.capability.to_string()),
            brand: Some(brand),
        };
        let met = brands(gpu.and_then(|gpu| gpu.class)).iter().map(|brand| is_met(requirement, &host(brand)));
        let met: Vec<bool> = met.collect::<Result<_, _>>()?;
        if met.contains(&false) {
            refused.push(Refused { gpu, certain: !met.contains(&true) });
        }
    }
    Ok(refused)
}

/// The least driver from which on a requirement is met for every brand of GPU, of the drivers that are known and those
/// that it names; `None` where there is none such, or any driver meets it.
pub fn least_driver(requirement: &str, facts: &CudaFacts) -> Option<Driver> {
    let named = requirement.split([' ', ',']).filter_map(|condition| {
        let value = condition.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        let is_driver = condition.len() - value.len() == "driver".len()
            && condition[.."driver".len()].eq_ignore_ascii_case("driver");
        value.trim_start_matches(['<', '>', '=', '!']).parse::<Driver>().ok().filter(|_| is_driver)
    });
    let known = facts.drivers().into_iter().map(|row| row.driver);
    let mut drivers: Vec<Driver> = known.chain(named).collect();
    drivers.sort();
    let is_met = |driver: &&Driver| refused(requirement, &[], driver, facts).is_ok_and(|refused| refused.is_empty());
    let met = drivers.iter().rev().take_while(is_met).count();
    let unmet = drivers.len().checked_sub(met).filter(|unmet| *unmet > 0 && met > 0)?;
    drivers.get(unmet).cloned()
}

/// Whether a machine meets a requirement.
///
/// # Errors
/// A condition that the runtime cannot read, where it comes so far.
pub fn is_met(requirement: &str, host: &Host) -> Result<bool, Invalid> {
    // As the runtime has it, which keeps the outcome of the last condition beyond a group without any.
    let mut last = true;
    for group in requirement.split(' ').filter(|group| !group.is_empty()) {
        let mut failed = false;
        for condition in group.split(',').filter(|condition| !condition.is_empty()) {
            last = holds(condition, host).ok_or_else(|| Invalid(condition.to_owned()))?;
            if !last {
                failed = true;
                break;
            }
        }
        if !failed {
            break;
        }
    }
    Ok(last)
}

/// Whether one condition holds; `None` for what is none.
fn holds(condition: &str, host: &Host) -> Option<bool> {
    const OPERATORS: &str = "<>=!";
    let name = &condition[..condition.find(|c| OPERATORS.contains(c))?];
    let rest = &condition[name.len()..];
    let operator = &rest[..rest.find(|c| !OPERATORS.contains(c))?];
    let value = &rest[operator.len()..];
    // `!` alone is taken for the only operator that begins so.
    let accepts: fn(Ordering) -> bool = match operator {
        "=" => Ordering::is_eq,
        "!=" | "!" => Ordering::is_ne,
        "<" => Ordering::is_lt,
        "<=" => Ordering::is_le,
        ">" => Ordering::is_gt,
        ">=" => Ordering::is_ge,
        _ => return None,
    };
    let version = |own: &Option<String>| match own {
        Some(own) => compare(own, value).map(accepts),
        None => Some(true),
    };
    match () {
        () if name.eq_ignore_ascii_case("cuda") => version(&host.cuda),
        () if name.eq_ignore_ascii_case("driver") => version(&host.driver),
        () if name.eq_ignore_ascii_case("arch") => version(&host.arch),
        () if name.eq_ignore_ascii_case("brand") => match (host.brand, operator) {
            (None, _) => Some(true),
            (Some(own), "=") => Some(own.eq_ignore_ascii_case(value)),
            (Some(own), "!=" | "!") => Some(!own.eq_ignore_ascii_case(value)),
            _ => None,
        },
        () => None,
    }
}

/// Versions part by part; parts that one of them lacks are zero.
fn compare(own: &str, other: &str) -> Option<Ordering> {
    let numbers = |text: &str| -> Option<Vec<u64>> {
        let mut numbers: Vec<u64> =
            text.split('.').filter(|part| !part.is_empty()).map(|part| part.parse().ok()).collect::<Option<_>>()?;
        while numbers.last() == Some(&0) {
            numbers.pop();
        }
        Some(numbers)
    };
    Some(numbers(own)?.cmp(&numbers(other)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(cuda: &str, driver: &str, brand: &'static str) -> Host {
        Host { cuda: Some(cuda.into()), driver: Some(driver.into()), arch: Some("8.0".into()), brand: Some(brand) }
    }

    #[test]
    fn groups_and_conditions() {
        let met = |text: &str| is_met(text, &host("12.4", "550.54.15", "tesla"));
        for (text, expected) in [
            ("cuda>=12.4", true),
            ("cuda>=12.8", false),
            ("cuda>=12.8 brand=tesla,driver>=550,driver<551", true),
            ("cuda>=12.8 brand=tesla,driver>=535,driver<536", false),
            ("cuda>=12.8 brand=geforce,driver>=550,driver<551", false),
            ("brand=Tesla", true),
            ("brand!=tesla", false),
            ("arch>=8.0,arch<9", true),
            ("cuda=12.4.0", true),
            ("driver>550.54.15", false),
            ("driver<=550.54.15.0", true),
            ("", true),
            ("  cuda>=12.4,", true),
            // The outcome of the condition before stays.
            ("cuda>=12.8 ,", false),
        ] {
            assert_eq!(met(text), Ok(expected), "{text}");
        }
        for text in
            ["cuda", "cuda>=", "cuda==12", "nothing>=1", ">=12", "cuda>=12.x", "brand>=tesla", "cuda>=12.8 oops"]
        {
            assert!(met(text).is_err(), "{text}");
        }
        assert!(check("cuda>=12.8 brand=tesla,driver>=535,driver<536").is_ok());
        assert_eq!(check("cuda>=12.4 brand=tesla,driver>=5x"), Err(Invalid("driver>=5x".into())));
        // What comes behind the group that holds is not looked at.
        assert_eq!(met("cuda>=12.4 oops"), Ok(true));
        assert_eq!(is_met("cuda>=99,brand=x,arch>=99", &Host::default()), Ok(true));
    }

    #[test]
    fn variables_that_require() {
        let of = |variables: &[(&str, &str)]| {
            let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            requirements(&variables).into_iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>()
        };
        assert_eq!(
            of(&[("NVIDIA_REQUIRE_CUDA", "cuda>=12.8"), ("CUDA_VERSION", "12.8.1")]),
            ["NVIDIA_REQUIRE_CUDA cuda>=12.8"]
        );
        assert_eq!(of(&[("CUDA_VERSION", "8.0.61")]), ["CUDA_VERSION cuda>=8.0"]);
        assert_eq!(of(&[("NVIDIA_REQUIRE_DRIVER", "driver>=535")]), ["NVIDIA_REQUIRE_DRIVER driver>=535"]);
        assert_eq!(of(&[("NVIDIA_REQUIRE_CUDA", "cuda>=12.8"), ("NVIDIA_DISABLE_REQUIRE", "true")]), [""; 0]);
        assert_eq!(of(&[("NVIDIA_REQUIRE_JETPACK", "csv-mounts=all"), ("CUDA_VERSION", "x")]), [""; 0]);
    }
}
