//! Facts of machines.

mod host;
