//! Layers and images made by code, as the tests of the readers have them.

#[path = "../it/image/cases.rs"]
pub mod cases;
#[allow(dead_code)] // Those tests make more of them.
#[path = "../it/image/make.rs"]
pub mod make;
