//! Versions that are plain dotted numbers: drivers (`450.80.02`), cuDNN (`9.1.0.70`), NCCL, glibc, PTX ISA.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use super::{ParseError, serde_as_text};

/// Dotted numbers, compared number by number; a missing number counts as zero. Keeps the text, since `02` is not `2`.
#[derive(Debug, Clone)]
struct Dotted {
    text: Box<str>,
    numbers: [u32; 4],
    given: u8,
}

impl Dotted {
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = [0; 4];
        let mut given = 0;
        for part in text.split('.') {
            if given == numbers.len() || part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            numbers[given] = part.parse().ok()?;
            given += 1;
        }
        Some(Self { text: text.into(), numbers, given: given as u8 })
    }
}

macro_rules! dotted {
    ($(#[$doc:meta])* $name:ident, $least:literal..=$most:literal, $expected:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $name(Dotted);

        impl $name {
            /// The first number.
            pub fn major(&self) -> u32 {
                self.0.numbers[0]
            }

            /// The second number, zero when not given.
            pub fn minor(&self) -> u32 {
                self.0.numbers[1]
            }

            /// How many numbers were given.
            pub fn precision(&self) -> usize {
                usize::from(self.0.given)
            }

            /// True when `other` begins with all numbers that were given here: 9.10 covers 9.10.2.21.
            pub fn covers(&self, other: &Self) -> bool {
                let given = self.precision();
                self.0.numbers[..given] == other.0.numbers[..given]
            }

            /// The version of these numbers, as many as were given; at most four.
            pub fn from_numbers(given: &[u32]) -> Self {
                let text: Vec<String> = given.iter().map(ToString::to_string).collect();
                let mut numbers = [0; 4];
                numbers.iter_mut().zip(given).for_each(|(number, given)| *number = *given);
                Self(Dotted { text: text.join(".").into(), numbers, given: given.len() as u8 })
            }

            /// The numbers, zero where not given.
            pub fn numbers(&self) -> [u32; 4] {
                self.0.numbers
            }
        }

        impl FromStr for $name {
            type Err = ParseError;

            fn from_str(text: &str) -> Result<Self, ParseError> {
                Dotted::parse(text.trim())
                    .filter(|v| ($least..=$most).contains(&v.given))
                    .map(Self)
                    .ok_or_else(|| ParseError { given: text.into(), expected: $expected })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0.text)
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.0.numbers == other.0.numbers
            }
        }

        impl Eq for $name {}

        impl std::hash::Hash for $name {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                self.0.numbers.hash(state);
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $name {
            fn cmp(&self, other: &Self) -> Ordering {
                self.0.numbers.cmp(&other.0.numbers)
            }
        }

        serde_as_text!($name);
    };
}

dotted! {
    /// An NVIDIA driver, as `nvidia-smi` and `/proc/driver/nvidia/version` print it.
    Driver, 1..=3, "a driver version such as 570.124.06, or a branch such as 570"
}
dotted! {
    /// A cuDNN release; wheels have a fourth number, the build.
    Cudnn, 1..=4, "a cuDNN version such as 9.10.2 or 9.10.2.21"
}
dotted! {
    /// An NCCL release.
    Nccl, 1..=4, "an NCCL version such as 2.27.3"
}
dotted! {
    /// A glibc release.
    Glibc, 2..=3, "a glibc version such as 2.31"
}
dotted! {
    /// A version of the PTX instruction set.
    PtxIsa, 2..=2, "a PTX ISA version such as 8.7"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_not_text_are_compared() {
        let driver = |text: &str| text.parse::<Driver>().unwrap();
        assert!(driver("570.124.06") > driver("570.26"));
        assert!(driver("450.80.02") < driver("525.60.13"));
        assert_eq!(driver("580"), driver("580.0"));
        assert_eq!(driver("450.80.02").to_string(), "450.80.02");
    }

    #[test]
    fn what_is_not_numbers_is_refused() {
        for text in ["", "abc", "570.", ".5", "5.-1", "1.2.3.4", "570.x", "99999999999"] {
            assert!(text.parse::<Driver>().is_err(), "{text}");
        }
    }
}
