//! Progress on a terminal: what the registry client fetches, as a bar on standard error.

use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{Globals, output};
use crate::inventory::image::Watch;
use crate::registry::Progress;
use crate::report::human::printable;

/// A bar that shows while something is fetched; indicatif draws nothing when standard error is no terminal.
pub struct Bar {
    quiet: bool,
    bar: Mutex<Option<ProgressBar>>,
}

impl Bar {
    /// The bar that these flags ask for.
    pub fn new(globals: &Globals) -> Self {
        Self { quiet: globals.quiet > 0, bar: Mutex::new(None) }
    }

    fn with(&self, act: impl FnOnce(&mut Option<ProgressBar>)) {
        // A panic of another thread leaves a bar that can still be drawn.
        act(&mut self.bar.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    }
}

impl Progress for Bar {
    fn start(&self, total: usize) {
        if self.quiet || total == 0 {
            return;
        }
        let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {pos}/{len} {wide_msg}") {
            bar.set_style(style);
        }
        self.with(|slot| *slot = Some(bar));
    }

    fn tick(&self, name: &str) {
        self.with(|slot| {
            if let Some(bar) = slot {
                bar.set_message(printable(name));
                bar.inc(1);
            }
        });
    }

    fn finish(&self) {
        self.with(|slot| {
            if let Some(bar) = slot.take() {
                bar.finish_and_clear();
            }
        });
    }

    fn waiting(&self, host: &str, pause: Duration, why: &str) {
        if self.quiet {
            return;
        }
        let line = printable(&format!("note: waiting {} s for {host}: {why}", pause.as_secs_f64().ceil())) + "\n";
        self.with(|slot| match slot {
            Some(bar) => bar.suspend(|| output::stderr(&line)),
            None => output::stderr(&line),
        });
    }

    fn bytes(&self, name: &str, done: u64, total: Option<u64>) {
        self.with(|slot| {
            if let Some(bar) = slot {
                let total = total.map_or_else(String::new, |total| format!(" of {} MB", total / 1_000_000));
                bar.set_message(format!("{}: {}{total} MB", printable(name), done / 1_000_000));
            }
        });
    }
}

/// A bar of bytes that shows while the layers of an image are read.
pub struct Bytes {
    quiet: bool,
    bar: Mutex<Option<ProgressBar>>,
}

impl Bytes {
    /// The bar that these flags ask for.
    pub fn new(globals: &Globals) -> Self {
        Self { quiet: globals.quiet > 0, bar: Mutex::new(None) }
    }

    fn with(&self, act: impl FnOnce(&mut Option<ProgressBar>)) {
        act(&mut self.bar.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    }
}

impl Watch for Bytes {
    fn start(&self, layers: usize, bytes: Option<u64>) {
        if self.quiet {
            return;
        }
        let bar = ProgressBar::with_draw_target(bytes, ProgressDrawTarget::stderr());
        let template = match bytes {
            Some(_) => "{spinner} {bytes}/{total_bytes} {wide_msg}",
            None => "{spinner} {bytes} {wide_msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(format!("of {layers} {}", if layers == 1 { "layer" } else { "layers" }));
        self.with(|slot| *slot = Some(bar));
    }

    fn read(&self, bytes: u64) {
        self.with(|slot| {
            if let Some(bar) = slot {
                bar.inc(bytes);
            }
        });
    }

    fn finish(&self) {
        self.with(|slot| {
            if let Some(bar) = slot.take() {
                bar.finish_and_clear();
            }
        });
    }
}
