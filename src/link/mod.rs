//! What the dynamic loader makes of an environment: takes an [`Inventory`](crate::inventory::Inventory) and the facts of
//! `dlopen.toml`, gives a [`LinkModel`]: each process with all that it loads, by which rule, and what it stops at.
//!
//! Nothing is run. Follows ld.so(8) and glibc's source where the manual is silent; the order in which Python loads things
//! is a fact of the matrix. Two files are one when their inode is one, and a library that is loaded serves everyone who
//! asks for its name: that is how `import torch` changes what is loaded after it.

mod contexts;
mod edges;
mod expand;
mod files;
mod import;
mod model;
mod opening;
mod process;
mod running;
mod symbols;
mod unit;
mod unreached;
mod world;

pub use model::{Context, Edge, Found, LinkModel, Load, Problem, Root, Running, Step, Unreached};
pub use opening::Opening;
