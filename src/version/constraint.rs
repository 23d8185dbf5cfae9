//! What a user asks of a dotted version: `12.8`, `>=12.4,<13`, `>=570`.

use std::fmt;
use std::str::FromStr;

use super::{Cuda, Cudnn, Driver, Glibc, Nccl, ParseError};

/// A version that constraints can be put on.
pub trait Constrained: Ord + Clone + fmt::Display + FromStr<Err = ParseError> {
    /// True when `self`, as given without an operator, means `other` too: 9.10 means 9.10.2.21.
    fn means(&self, other: &Self) -> bool;
    /// The least version there is.
    fn least() -> Self;
    /// The first version after all those that `self` means: 9.11 after 9.10.
    fn next(&self) -> Self;
    /// Reads what may stand after an operator; shorter than a whole version in places (`>=13` for CUDA).
    fn bound(operator: Operator, text: &str) -> Result<Comparison<Self>, ParseError> {
        text.parse().map(|version| Comparison { operator, version })
    }
    /// Reads what may stand alone, where that differs from a version: the family `12` of CUDA.
    fn alone(text: &str) -> Result<Comparison<Self>, ParseError> {
        text.parse().map(|version| Comparison { operator: Operator::Means, version })
    }
}

macro_rules! constrained {
    ($($type:ty),*) => {$(
        impl Constrained for $type {
            fn means(&self, other: &Self) -> bool {
                self.covers(other)
            }

            fn least() -> Self {
                Self::from_numbers(&[0, 0])
            }

            fn next(&self) -> Self {
                let mut numbers = self.numbers();
                let given = &mut numbers[..self.precision()];
                if let Some(last) = given.last_mut() {
                    *last = last.saturating_add(1);
                }
                Self::from_numbers(given)
            }
        }
    )*};
}
constrained!(Driver, Cudnn, Nccl, Glibc);

impl Constrained for Cuda {
    fn means(&self, other: &Self) -> bool {
        self == other
    }

    fn least() -> Self {
        Self::new(0, 0)
    }

    fn next(&self) -> Self {
        Self::new(self.major, self.minor.saturating_add(1))
    }

    /// A major alone stands for all its minors, so `<=12` allows 12.9 as `<=9.10` allows cuDNN 9.10.2.
    fn bound(operator: Operator, text: &str) -> Result<Comparison<Self>, ParseError> {
        let Ok(major) = text.trim().parse::<u32>() else {
            return text.parse().map(|version| Comparison { operator, version });
        };
        let after = major.saturating_add(1);
        let (operator, major) = match operator {
            Operator::Equal => (Operator::Family, major),
            Operator::AtMost => (Operator::Less, after),
            Operator::Greater => (Operator::AtLeast, after),
            // One bound cannot leave out a family; `<12` and `>=13` say on which side.
            Operator::NotEqual => {
                return Err(ParseError { given: text.into(), expected: "a CUDA version such as 12.8" });
            }
            other => (other, major),
        };
        Ok(Comparison { operator, version: Self::new(major, 0) })
    }

    /// `12` is the family, `12.8` and the wheel label `cu128` are that minor.
    fn alone(text: &str) -> Result<Comparison<Self>, ParseError> {
        let text = text.trim();
        let minor = |version| Comparison { operator: Operator::Means, version };
        if let Ok(major) = text.parse() {
            return Ok(Comparison { operator: Operator::Family, version: Cuda::new(major, 0) });
        }
        match text.strip_prefix("cu").filter(|d| d.len() >= 3 && d.bytes().all(|b| b.is_ascii_digit())) {
            Some(digits) => {
                format!("{}.{}", &digits[..digits.len() - 1], &digits[digits.len() - 1..]).parse().map(minor)
            }
            // A release such as 12.8.1 is not a thing that wheels tell apart; the minor is what is meant.
            None => text.parse().map(minor),
        }
    }
}

/// How one bound compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// No operator was given.
    Means,
    /// A whole family: `12`.
    Family,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
}

/// One bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison<T> {
    /// How.
    pub operator: Operator,
    /// With what.
    pub version: T,
}

/// All bounds must hold; none means any version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constraint<T>(Vec<Comparison<T>>);

impl<T: Constrained> Constraint<T> {
    /// No constraint.
    pub fn any() -> Self {
        Self(Vec::new())
    }

    /// Exactly these bounds.
    pub fn of(operator: Operator, version: T) -> Self {
        Self(vec![Comparison { operator, version }])
    }

    /// The bounds.
    pub fn bounds(&self) -> &[Comparison<T>] {
        &self.0
    }

    /// The version, when one was given without an operator (or with `==`) and nothing else.
    pub fn exact(&self) -> Option<&T> {
        match &self.0[..] {
            [Comparison { operator: Operator::Means | Operator::Equal, version }] => Some(version),
            _ => None,
        }
    }

    /// Whether no version at all can satisfy every bound: `>=13,<12`.
    pub fn is_contradictory(&self) -> bool
    where
        T: Family,
    {
        // The allowed versions are a union of ranges, and each of those begins at one of these.
        let starts = self.0.iter().flat_map(|bound| [bound.version.clone(), bound.version.next()]);
        !starts.chain([T::least()]).any(|version| self.allows(&version))
    }

    /// Whether `version` satisfies every bound. `==`, `!=` and bare versions compare the numbers that were given.
    pub fn allows(&self, version: &T) -> bool
    where
        T: Family,
    {
        self.0.iter().all(|bound| match bound.operator {
            Operator::Means | Operator::Equal => bound.version.means(version),
            Operator::NotEqual => !bound.version.means(version),
            Operator::Family => bound.version.family() == version.family(),
            Operator::Less => version < &bound.version,
            Operator::AtMost => version <= &bound.version || bound.version.means(version),
            Operator::Greater => version > &bound.version && !bound.version.means(version),
            Operator::AtLeast => version >= &bound.version,
        })
    }
}

/// The family that a version belongs to: its first number.
pub trait Family {
    /// First number.
    fn family(&self) -> u32;
}

macro_rules! family {
    ($($type:ty),*) => {$(
        impl Family for $type {
            fn family(&self) -> u32 {
                self.major()
            }
        }
    )*};
}
family!(Driver, Cudnn, Nccl, Glibc);

impl Family for Cuda {
    fn family(&self) -> u32 {
        self.major
    }
}

impl<T: Constrained> FromStr for Constraint<T> {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        const OPERATORS: [(&str, Operator); 6] = [
            (">=", Operator::AtLeast),
            ("<=", Operator::AtMost),
            ("==", Operator::Equal),
            ("!=", Operator::NotEqual),
            (">", Operator::Greater),
            ("<", Operator::Less),
        ];
        if text.trim() == "*" {
            return Ok(Self::any());
        }
        let one = |part: &str| {
            let part = part.trim();
            match OPERATORS.iter().find_map(|(sign, operator)| part.strip_prefix(sign).map(|rest| (*operator, rest))) {
                Some((operator, rest)) => T::bound(operator, rest.trim().trim_end_matches(".*")),
                None => T::alone(part.trim_end_matches(".*")),
            }
        };
        text.split(',').map(one).collect::<Result<_, _>>().map(Self)
    }
}

impl<T: Constrained> fmt::Display for Constraint<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("*");
        }
        for (i, bound) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { "," };
            let sign = match bound.operator {
                Operator::Means | Operator::Family => "",
                Operator::Equal => "==",
                Operator::NotEqual => "!=",
                Operator::Less => "<",
                Operator::AtMost => "<=",
                Operator::Greater => ">",
                Operator::AtLeast => ">=",
            };
            let text = bound.version.to_string();
            let text = if bound.operator == Operator::Family { text.trim_end_matches(".0") } else { &text };
            write!(f, "{separator}{sign}{text}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuda_as_people_write_it() {
        let allows = |constraint: &str, version: &str| {
            constraint.parse::<Constraint<Cuda>>().unwrap().allows(&version.parse().unwrap())
        };
        assert!(allows("12", "12.9") && !allows("12", "13.0"));
        assert!(allows("12.8", "12.8") && !allows("12.8", "12.9"));
        assert!(allows(">=12.4,<13", "12.9") && !allows(">=12.4,<13", "13.0"));
        assert!(allows("cu128", "12.8") && allows("*", "11.8"));
        for text in ["12", "12.8", ">=12.4,<13.0", "*"] {
            assert_eq!(text.parse::<Constraint<Cuda>>().unwrap().to_string(), text);
        }
        for text in ["", "abc", ">=", "12.x", "cu1", "12,,13"] {
            assert!(text.parse::<Constraint<Cuda>>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_cuda_major_stands_for_its_minors() {
        let allows = |constraint: &str, version: &str| {
            constraint.parse::<Constraint<Cuda>>().unwrap().allows(&version.parse().unwrap())
        };
        assert!(allows("==12.*", "12.9") && allows("==12", "12.0") && !allows("==12", "13.0"));
        assert!(allows("<=12", "12.9") && !allows("<=12", "13.0"));
        assert!(!allows(">12", "12.9") && allows(">12", "13.0"));
        assert!("!=12".parse::<Constraint<Cuda>>().is_err() && !allows("!=12.8", "12.8"));
    }

    #[test]
    fn contradictions_are_found() {
        fn contradictory<T: Constrained + Family>(text: &str) -> bool {
            text.parse::<Constraint<T>>().unwrap().is_contradictory()
        }
        for text in [">=13,<12", "12,13", ">=12.8,<12.8", "12.8,!=12.8", ">12.8,<12.9", "cu126,>=12.8", "<0.0"] {
            assert!(contradictory::<Cuda>(text), "{text}");
        }
        for text in ["*", "12", ">=12.4,<13", "12,>=12.8", ">12.8,<=12.9", "!=12.8", "<12"] {
            assert!(!contradictory::<Cuda>(text), "{text}");
        }
        for text in [">=580,<570", ">570,<571", "570,>=571", "570,!=570"] {
            assert!(contradictory::<Driver>(text), "{text}");
        }
        for text in [">=570", "570,>=570.124", ">=525.60.13,<590", "<590", "!=570,>=550"] {
            assert!(!contradictory::<Driver>(text), "{text}");
        }
        assert!(!contradictory::<Glibc>("<2.17") && contradictory::<Glibc>("2.17,2.28"));
    }

    #[test]
    fn numbers_that_were_not_given_are_free() {
        let allows = |constraint: &str, version: &str| {
            constraint.parse::<Constraint<Cudnn>>().unwrap().allows(&version.parse().unwrap())
        };
        assert!(allows("9.10", "9.10.2.21") && allows("==9.10.*", "9.10.2.21"));
        assert!(allows("<=9.10", "9.10.2.21") && !allows(">9.10", "9.10.2.21"));
        assert!(!allows("!=9.10", "9.10.2.21") && allows(">=9.1", "9.10.2.21"));
    }
}
