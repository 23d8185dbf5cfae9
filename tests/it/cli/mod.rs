//! Files: read with reasons, written whole or not at all.

mod read;
mod write;
