//! Diagnostics and results as text for people, as JSON for programs, and in the formats of those that show findings.

pub mod diff;
pub mod doctor;
pub mod findings;
pub mod github;
pub mod human;
pub mod image;
pub mod inspect;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod matrix;
pub mod message;
pub mod sarif;
pub mod schema;
pub mod verify;

pub use human::Style;
