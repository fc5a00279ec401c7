//! Locks that no panic leaves closed.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Nothing that can panic runs while one of these is locked.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
