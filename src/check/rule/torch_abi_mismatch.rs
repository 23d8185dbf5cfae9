//! An extension that was built for another torch: it needs symbols of torch that the installed one does not have.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::check::{Case, Claims, Outcome, Rule, Symptom, evidence, stack};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::inventory::{Distribution, DistributionKind, Library};

pub const RULE: Rule = Rule {
    code: "torch-abi-mismatch",
    level: Severity::Error,
    page: include_str!("../page/torch-abi-mismatch.md"),
    run,
};

fn run(case: &Case<'_>, claims: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let Some(torch) = stack::distribution(case.inventory, "torch") else { return Ok(Outcome::Ran(Vec::new())) };
    let mut symptoms = claims.take(|symptom| {
        let foreign = symptom.by().is_some_and(|by| !stack::is_torch(case.inventory, by));
        // What a loaded library has is not missing in this torch.
        foreign && symptom.undefined().is_some_and(stack::is_symbol_of_torch) && symptom.hidden_definer().is_none()
    });
    // What else such a library lacks, torch's own build had: parts of libstdc++ that a compiler links statically.
    let unfit: Vec<(u64, u64)> = symptoms.iter().filter_map(|symptom| Some(symptom.by()?.inode)).collect();
    let also = claims
        .take(|symptom| symptom.undefined().is_some() && symptom.by().is_some_and(|by| unfit.contains(&by.inode)));
    symptoms.extend(also);
    let mut groups: BTreeMap<String, Vec<&Symptom<'_>>> = BTreeMap::new();
    for symptom in &symptoms {
        let Some(by) = symptom.by() else { continue };
        let owner = stack::package(case.inventory, by).map_or(by.name.clone(), |package| package.name.to_string());
        groups.entry(owner).or_default().push(symptom);
    }
    let findings: Result<_, Failure> = groups.values().map(|group| finding(case, torch, group)).collect();
    Ok(Outcome::Ran(findings?))
}

fn finding(case: &Case<'_>, torch: &Distribution, symptoms: &[&Symptom<'_>]) -> Result<Diagnostic, Failure> {
    let first = symptoms[0];
    let by = first.by();
    let subject = by.map_or(String::new(), |by| by.name.clone());
    let owner = by.and_then(|by| stack::package(case.inventory, by));
    let what = owner.map_or(subject.clone(), |package| format!("{} {}", package.name, package.version));
    let symbol = first.undefined().unwrap_or_default();
    let why = match string_abi(symbol) {
        Some(StringAbi::Old) if !has_old_strings(case) => {
            "it was built with the C++ ABI of before C++11 (std::string as `Ss`), the installed torch is not"
        }
        Some(StringAbi::New) if has_old_strings(case) => {
            "it was built with the C++11 ABI, the installed torch with the one before"
        }
        _ => "it was built for another release of torch",
    };
    let message =
        format!("{what} does not fit torch {}: {}, nothing defines {symbol}; {why}", torch.version, first.fails());
    let finding = Diagnostic::error(RULE.code, message, evidence::symptom(first)).about(subject);
    let mut more: Vec<Evidence> = symptoms.iter().skip(1).map(|symptom| evidence::symptom(symptom)).collect();
    let asks = owner.and_then(|package| package.requirements().find(|one| one.package.as_str() == "torch"));
    if let (Some(owner), Some(asks)) = (owner, asks) {
        more.push(evidence::unmet_torch(case, owner, &asks));
    }
    let conda = core(case).and_then(|core| stack::package(case.inventory, core)).filter(is_conda);
    let mixed = conda.zip(owner.filter(|owner| !is_conda(owner)));
    more.extend(mixed.map(|(conda, owner)| {
        let build = conda.build.as_deref().unwrap_or("unknown");
        let fact =
            format!("{} {} is a package of conda, build {build}; {} is a wheel", conda.name, conda.version, owner.name);
        Evidence::observed(conda.info.display().to_string(), fact)
    }));
    let hidden = hidden(case, torch);
    more.extend(hidden.map(|other| {
        let fact = format!("torch {} too, which torch {} hides", other.version, torch.version);
        Evidence::observed(other.info.display().to_string(), fact)
    }));
    let finding = evidence::finding(finding, more);
    if let Some(other) = hidden {
        let (first, second) = (torch.info.display(), other.info.display());
        return Ok(finding.fix(format!(
            "remove one of the two: torch {} ({first}) comes first, torch {} ({second}) is never imported",
            torch.version, other.version
        )));
    }
    Ok(finding.fix(match owner {
        Some(package) if mixed.is_some() => {
            format!(
                "builds of torch differ in their ABI: take both from conda, or both as wheels, torch and {}",
                package.name
            )
        }
        Some(package) => match partner(case, torch, package.name.as_str())? {
            Some(version) => format!("pip install {}=={version}", package.name),
            None => {
                format!("install a {} that is built for torch {}, or build it from source", package.name, torch.version)
            }
        },
        None => format!("build it again with torch {} installed", torch.version),
    }))
}

/// A second torch, further back on `sys.path`.
fn hidden<'i>(case: &Case<'i>, torch: &Distribution) -> Option<&'i Distribution> {
    // Other environments of an image hide nothing.
    let sites = &case.inventory.pythons.first()?.site_packages;
    let same =
        |other: &&Distribution| other.name == torch.name && other.kind == torch.kind && sites.contains(&other.site);
    case.inventory.packages.iter().filter(same).find(|other| other.info != torch.info)
}

/// The release of torchvision or torchaudio that belongs to the installed torch, where known.
fn partner(case: &Case<'_>, torch: &Distribution, package: &str) -> Result<Option<String>, Failure> {
    let Some(version) = torch.pep440() else { return Ok(None) };
    let releases = case.matrix.torch()?.releases();
    let Some(release) = releases.iter().find(|release| release.version == version.clone().without_local()) else {
        return Ok(None);
    };
    let partners = match package {
        "torchvision" => release.torchvision.as_ref(),
        "torchaudio" => release.torchaudio.as_ref(),
        _ => None,
    };
    Ok(partners.and_then(|versions| versions.first()).map(ToString::to_string))
}

/// How std::string is written in a symbol.
#[derive(Debug, PartialEq, Eq)]
enum StringAbi {
    /// `Ss`, before C++11.
    Old,
    /// `NSt7__cxx11...`
    New,
}

fn string_abi(symbol: &str) -> Option<StringAbi> {
    if symbol.contains("__cxx11") || symbol.contains("B5cxx11") {
        return Some(StringAbi::New);
    }
    // `Ss` as a parameter: after a qualifier or at the end, not in the middle of a name.
    let old = ["RKSs", "RSs", "PKSs"].iter().any(|text| symbol.contains(text)) || symbol.ends_with("Ss");
    old.then_some(StringAbi::Old)
}

/// Whether torch's own libraries take std::string as before C++11: `c10::Error` is made of two such strings.
fn has_old_strings(case: &Case<'_>) -> bool {
    const OLD: &str = "_ZN3c105ErrorC1ENS_14SourceLocationESs";
    core(case).is_some_and(|library| library.object.as_ref().is_ok_and(|object| object.symbols.find(OLD).len() > 0))
}

/// torch's core library.
fn core<'a>(case: &Case<'a>) -> Option<&'a Arc<Library>> {
    case.inventory.libraries().iter().find(|library| library.path.ends_with("libc10.so"))
}

fn is_conda(package: &&Distribution) -> bool {
    package.kind == DistributionKind::Conda
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_of_torch_are_told_from_others() {
        for symbol in [
            "_ZN3c104cuda9SetDeviceEa",
            "_ZNK5torch8autograd4Node4nameEv",
            "_ZN3c106detail23torchInternalAssertFailEPKcS2_jS2_RKSs",
            "aoti_torch_empty_strided",
            "_ZNSt6vectorIN2at6TensorESaIS1_EE9push_backERKS1_",
        ] {
            assert!(stack::is_symbol_of_torch(symbol), "{symbol}");
        }
        for symbol in
            ["ncclGroupSimulateEnd", "_ZN5cudnn5graph13LibraryLoaderE", "cudaMalloc", "_ZNSt6vectorIiE", "torchlike"]
        {
            assert!(!stack::is_symbol_of_torch(symbol), "{symbol}");
        }
    }

    #[test]
    fn string_abis_are_told_apart() {
        assert_eq!(string_abi("_ZN3c106detail23torchInternalAssertFailEPKcS2_jS2_RKSs"), Some(StringAbi::Old));
        assert_eq!(string_abi("_ZN3c105ErrorC2ENS_14SourceLocationESs"), Some(StringAbi::Old));
        assert_eq!(string_abi("_ZNK5torch8autograd4Node4nameB5cxx11Ev"), Some(StringAbi::New));
        assert_eq!(string_abi("_ZN3c104cuda9SetDeviceEa"), None);
    }
}
