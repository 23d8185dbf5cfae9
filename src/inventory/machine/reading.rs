//! A fact with how it was read, or why it is not known.

use crate::diag::Evidence;
use crate::inventory::host::Fact;

/// What came of looking for a fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading<T> {
    /// It is known.
    Is(Fact<T>),
    /// There is no such thing; where was looked.
    Absent(String),
    /// It could not be read.
    Unread {
        /// What was looked at.
        what: String,
        /// Why that could not be read.
        why: String,
    },
}

impl<T> Reading<T> {
    /// A fact that `what` showed.
    pub fn of(value: T, what: &str, fact: &str) -> Self {
        const LONGEST: usize = 200;
        let fact = match fact.char_indices().nth(LONGEST) {
            Some((at, _)) => format!("{}..", &fact[..at]),
            None => fact.to_owned(),
        };
        Self::Is(Fact { value, seen: Evidence::observed(what, fact) })
    }

    /// A fact that could not be read.
    pub fn unread(what: &str, why: &str) -> Self {
        Self::Unread { what: what.to_owned(), why: why.to_owned() }
    }

    /// The fact, if it is known.
    pub fn fact(&self) -> Option<&Fact<T>> {
        match self {
            Self::Is(fact) => Some(fact),
            _ => None,
        }
    }

    /// What is so, if it is known.
    pub fn value(&self) -> Option<&T> {
        self.fact().map(|fact| &fact.value)
    }

    /// What was looked at.
    pub fn how(&self) -> &str {
        match self {
            Self::Is(fact) => how(&fact.seen),
            Self::Absent(what) | Self::Unread { what, .. } => what,
        }
    }

    /// What `then` makes of a known fact.
    pub fn then<U>(self, then: impl FnOnce(Fact<T>) -> Reading<U>) -> Reading<U> {
        match self {
            Self::Is(fact) => then(fact),
            Self::Absent(what) => Reading::Absent(what),
            Self::Unread { what, why } => Reading::Unread { what, why },
        }
    }

    /// A fact that follows from this one; absent where `then` gives nothing.
    pub fn and_then<U>(self, then: impl FnOnce(T) -> Option<U>) -> Reading<U> {
        self.then(|Fact { value, seen }| match then(value) {
            Some(value) => Reading::Is(Fact { value, seen }),
            None => Reading::Absent(how(&seen).to_owned()),
        })
    }

    /// This one if it is known, else the other if that is, else whichever says why it is not.
    pub fn or(self, other: impl FnOnce() -> Self) -> Self {
        match self {
            Self::Is(_) => self,
            Self::Absent(_) => other(),
            Self::Unread { .. } => match other() {
                known @ Self::Is(_) => known,
                _ => self,
            },
        }
    }
}

/// What evidence was looked at.
pub fn how(evidence: &Evidence) -> &str {
    match evidence {
        Evidence::Observed { what, .. } | Evidence::Elf { path: what, .. } => what,
        Evidence::Span { file, .. } => file,
        Evidence::Fact { source, .. } => source,
    }
}
