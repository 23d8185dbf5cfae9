//! What the client tells about work that takes a while. Nothing here draws; the command line does.

use std::time::Duration;

/// Watches the client's work; called from several threads.
pub trait Progress: Send + Sync {
    /// `total` things are going to be fetched.
    fn start(&self, total: usize);

    /// One of them, `name`, is done, well or not.
    fn tick(&self, name: &str);

    /// All of them are done.
    fn finish(&self);

    /// A server asked to be left alone, and is, for `pause`; `why` is what it said.
    fn waiting(&self, _host: &str, _pause: Duration, _why: &str) {}

    /// A whole file is on its way, since its server knows no ranges: `done` of `total` bytes, if the total is known.
    fn bytes(&self, _name: &str, _done: u64, _total: Option<u64>) {}
}

/// Tells nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn start(&self, _total: usize) {}

    fn tick(&self, _name: &str) {}

    fn finish(&self) {}
}
