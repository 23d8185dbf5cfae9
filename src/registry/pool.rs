//! A few threads that work through a list.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Calls `work` for every item, on at most `threads` threads, and returns when all are done.
pub(super) fn each<T: Sync>(threads: usize, items: &[T], work: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let run = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            work(item);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(items.len()) {
            scope.spawn(run);
        }
        run();
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_once() {
        let items: Vec<usize> = (0..100).collect();
        for threads in [0, 1, 8, 200] {
            let sum = AtomicUsize::new(0);
            each(threads, &items, |item| {
                sum.fetch_add(*item, Ordering::Relaxed);
            });
            assert_eq!(sum.into_inner(), 4950);
        }
    }
}
