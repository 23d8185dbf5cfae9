//! Versions of every link of the chain, one type each, so that a driver is never compared with a CUDA release.
//!
//! Python packages are PEP 440 ([`pep440_rs`]), CUDA releases are semver, everything else is [dotted numbers](dotted).

mod compute;
mod constraint;
mod cuda;
mod dotted;
pub mod pep440;

pub use compute::{Capability, CodeKind, GpuCode};
pub use constraint::{Comparison, Constrained, Constraint, Family, Operator as ConstraintOperator};
pub use cuda::{Cuda, CudaRelease};
pub use dotted::{Cudnn, Driver, Glibc, Nccl, PtxIsa};
pub use pep440::{Pep440, Specifiers};

/// Text that is not a version of the kind that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// The text as given.
    pub given: String,
    /// What would have been accepted, as a noun with an example: "a driver version such as 570.124.06".
    pub expected: &'static str,
}

impl std::fmt::Display for ParseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` is not {}", self.given, self.expected)
    }
}

impl std::error::Error for ParseError {}

/// Serialises and deserialises a type as the text that `Display` and `FromStr` speak.
macro_rules! serde_as_text {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::version::parsed(deserializer)
            }
        }
    };
}
pub(crate) use serde_as_text;

/// Deserialises what is written as text, without a copy of the text.
pub(crate) fn parsed<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: std::str::FromStr<Err = ParseError>,
{
    struct Text<T>(std::marker::PhantomData<T>);

    impl<T: std::str::FromStr<Err = ParseError>> serde::de::Visitor<'_> for Text<T> {
        type Value = T;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a string")
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
            text.parse().map_err(E::custom)
        }
    }

    deserializer.deserialize_str(Text(std::marker::PhantomData))
}
