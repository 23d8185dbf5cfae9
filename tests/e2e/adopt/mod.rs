//! What a repository takes from this one: hooks and action, with real git and real pre-commit.

mod action;
mod drift;
mod hooks;
mod workshop;
