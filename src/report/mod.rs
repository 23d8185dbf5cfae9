//! Diagnostics and results as text for people and as JSON for programs.

pub mod human;
pub mod inspect;
pub mod json;
pub mod matrix;
pub mod schema;
pub mod verify;

pub use human::Style;
