//! Answers of this run: each question is asked once, also when several threads ask it at the same time. A failure is an
//! answer too.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::diag::Failure;

type Answer<V> = Result<Arc<V>, Failure>;

pub(super) struct Memo<K, V>(Mutex<HashMap<K, Arc<OnceLock<Answer<V>>>>>);

impl<K: Eq + Hash, V> Memo<K, V> {
    /// The answer for `key`; `ask` is called if nobody has asked yet.
    pub(super) fn get(&self, key: K, ask: impl FnOnce() -> Result<V, Failure>) -> Answer<V> {
        let cell = Arc::clone(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default());
        cell.get_or_init(|| ask().map(Arc::new)).clone()
    }

    /// The answer for `key`, if there is a good one already.
    pub(super) fn peek(&self, key: &K) -> Option<Arc<V>> {
        let answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answers.get(key)?.get()?.as_ref().ok().cloned()
    }
}

impl<K, V> Default for Memo<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}
