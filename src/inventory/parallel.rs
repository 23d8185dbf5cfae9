//! A few threads that work through a list.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many threads to use: as many as asked for, else as many as there are cores.
pub(super) fn threads(asked: Option<usize>) -> usize {
    asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).max(1)
}

/// What `work` makes of every item, in the order of the items, on at most `threads` threads.
pub(super) fn map<T: Sync, R: Send>(threads: usize, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::with_capacity(items.len()));
    let run = || {
        let mut own = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { break };
            own.push((at, work(item)));
        }
        // Not poisoned: nothing panics while it is held.
        done.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).append(&mut own);
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(items.len()) {
            scope.spawn(run);
        }
        run();
    });
    let mut done = done.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// As [`map`], but begins with the largest, so that no thread is left with it when the others are done.
pub(super) fn largest_first<T: Sync, R: Send>(
    threads: usize,
    items: &[T],
    size: impl Fn(&T) -> u64,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_cached_key(|at| std::cmp::Reverse(size(&items[*at])));
    let results = map(threads, &order, |at| work(&items[*at]));
    let mut results: Vec<(usize, R)> = order.into_iter().zip(results).collect();
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_once_and_in_order() {
        let items: Vec<usize> = (0..100).collect();
        for threads in [0, 1, 8, 200] {
            let expected: Vec<usize> = (0..200).step_by(2).collect();
            assert_eq!(map(threads, &items, |item| item * 2), expected);
            assert_eq!(largest_first(threads, &items, |item| *item as u64 % 7, |item| item * 2), expected);
        }
    }
}
