//! Locks the mutexes of isolated controllers, and ignores poisoning.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex. Poisoning is ignored, because no code that can panic runs while a mutex of `isolated` is locked.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
