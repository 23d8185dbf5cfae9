//! The matrix as a whole: its checks, tables, and how it is kept.

mod check;
mod command;
mod network;
mod refresh;
mod show;
