//! What a user asks of a dotted version: `12.8`, `>=12.4,<13`, `>=570`.

use std::fmt;
use std::str::FromStr;

use super::{Cuda, Cudnn, Driver, Glibc, Nccl, ParseError};

/// A version that constraints can be put on.
pub trait Constrained: Ord + Clone + fmt::Display + FromStr<Err = ParseError> {
    /// True when `self`, as given without an operator, means `other` too: 9.10 means 9.10.2.21.
    fn means(&self, other: &Self) -> bool;
    /// Reads what may stand after an operator; shorter than a whole version in places (`>=13` for CUDA).
    fn bound(text: &str) -> Result<Self, ParseError> {
        text.parse()
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
        }
    )*};
}
constrained!(Driver, Cudnn, Nccl, Glibc);

impl Constrained for Cuda {
    fn means(&self, other: &Self) -> bool {
        self == other
    }

    fn bound(text: &str) -> Result<Self, ParseError> {
        text.parse().or_else(|error| text.trim().parse().map(|major| Cuda::new(major, 0)).map_err(|_| error))
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
                Some((operator, rest)) => {
                    let rest = rest.trim().trim_end_matches(".*");
                    T::bound(rest).map(|version| Comparison { operator, version })
                }
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
    fn numbers_that_were_not_given_are_free() {
        let allows = |constraint: &str, version: &str| {
            constraint.parse::<Constraint<Cudnn>>().unwrap().allows(&version.parse().unwrap())
        };
        assert!(allows("9.10", "9.10.2.21") && allows("==9.10.*", "9.10.2.21"));
        assert!(allows("<=9.10", "9.10.2.21") && !allows(">9.10", "9.10.2.21"));
        assert!(!allows("!=9.10", "9.10.2.21") && allows(">=9.1", "9.10.2.21"));
    }
}
