//! PEP 440 versions and specifiers as sets for the solver.
//!
//! Local versions follow PEP 440: `==2.8.0` and `<=2.8.0` accept `2.8.0+cu126`, `==2.8.0+cu126` accepts only that.

use pep440_rs::VersionSpecifier as Specifier;
pub use pep440_rs::VersionSpecifier;
pub use pep440_rs::{LocalSegment, Operator, Version as Pep440, VersionSpecifiers as Specifiers};
use version_ranges::Ranges;

/// The set of versions that satisfy all `specifiers`.
pub fn to_set(specifiers: &Specifiers) -> Ranges<Pep440> {
    specifiers.iter().fold(Ranges::full(), |set, one| set.intersection(&specifier_set(one)))
}

/// Whether a version will do; its local label does not count where none is asked for.
pub fn meets(asked: &Specifiers, version: &Pep440) -> bool {
    asked.contains(version) || asked.contains(&version.clone().without_local())
}

fn specifier_set(specifier: &Specifier) -> Ranges<Pep440> {
    let version = specifier.version();
    let with_locals = || Ranges::from_range_bounds(version.clone()..=highest_local(version));
    match specifier.operator() {
        Operator::Equal if !version.is_local() => with_locals(),
        Operator::NotEqual if !version.is_local() => with_locals().complement(),
        Operator::LessThanEqual if !version.is_local() => Ranges::lower_than(highest_local(version)),
        _ => Ranges::from(specifier.clone()),
    }
}

/// An upper bound for all local versions of `version`: numbers sort above text, and nothing real uses the largest.
fn highest_local(version: &Pep440) -> Pep440 {
    version.clone().with_local(vec![LocalSegment::Number(u64::MAX)])
}

/// The local part as text: `cu126` of `2.8.0+cu126`.
pub fn local_label(version: &Pep440) -> Option<String> {
    let parts: Vec<String> = version.local().iter().map(ToString::to_string).collect();
    (!parts.is_empty()).then(|| parts.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_agree_with_pep440() {
        let versions = ["2.7.1", "2.8.0", "2.8.0+cpu", "2.8.0+cu126", "2.8.0.post1", "2.8.1", "2.8.0rc1", "3.0"];
        for text in [
            "==2.8.0",
            "==2.8.0+cu126",
            "!=2.8.0",
            "<=2.8.0",
            "<2.8.0",
            ">2.8.0",
            ">=2.8.0",
            "~=2.8.0",
            "==2.8.*",
            "!=2.8.*",
            ">=2.7,<2.8.1",
        ] {
            let specifiers: Specifiers = text.parse().unwrap();
            let set = to_set(&specifiers);
            for version in versions {
                let version: Pep440 = version.parse().unwrap();
                // `2.8.0rc1 < 2.8.0` holds, but PEP 440's `<2.8.0` refuses it; both sides agree on that.
                assert_eq!(set.contains(&version), specifiers.contains(&version), "{version} in {text}");
            }
        }
    }
}
