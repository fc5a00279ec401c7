//! Slot through which one task passes a value to another, on any thread, with a deadline.

use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use rocknet_io::wheel::Deadline;

/// A slot for one value, with the waker of the task that waits for it.
pub struct OneshotSlot<T> {
    value: Mutex<Option<T>>,
    waker: Mutex<Option<Waker>>,
}

impl<T> Default for OneshotSlot<T> {
    fn default() -> OneshotSlot<T> {
        OneshotSlot {
            value: Mutex::default(),
            waker: Mutex::default(),
        }
    }
}

impl<T> OneshotSlot<T> {
    /// Stores the value and returns the waker of the task that waits, if any. The caller has to wake it, after
    /// releasing any locks that the woken task may need.
    pub fn set(&self, value: T) -> Option<Waker> {
        *lock(&self.value) = Some(value);
        lock(&self.waker).take()
    }

    /// Takes the value, if one was stored and not taken yet.
    pub fn take(&self) -> Option<T> {
        lock(&self.value).take()
    }

    /// Waits for the value. Returns `None` if the deadline passes first.
    pub async fn wait(&self, deadline: &Deadline) -> Option<T> {
        poll_fn(|context| {
            // The waker is stored first, so that a value that is set after `take` wakes the task.
            *lock(&self.waker) = Some(context.waker().clone());
            if let Some(value) = self.take() {
                return Poll::Ready(Some(value));
            }
            match deadline.poll_past(context.waker()) {
                true => Poll::Ready(None),
                false => Poll::Pending,
            }
        })
        .await
    }
}

/// Locks a mutex. Poisoning is ignored, because no code that can panic runs while one of these locks is held.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
