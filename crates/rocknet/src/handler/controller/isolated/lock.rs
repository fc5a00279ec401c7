//! Locks mutexes and ignores poisoning.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex. No code that can panic runs while one of these mutexes is locked.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
