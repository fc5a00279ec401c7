//! One who waits for something that another task gives him, on whatever thread, or for his deadline.

use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use rocknet_io::wheel::Deadline;

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
    /// Gives it; whom to wake, when no lock is held any more that he might want.
    pub fn set(&self, value: T) -> Option<Waker> {
        *lock(&self.value) = Some(value);
        lock(&self.waker).take()
    }

    /// What was given and not seen yet.
    pub fn take(&self) -> Option<T> {
        lock(&self.value).take()
    }

    /// `None`: the deadline came first.
    pub async fn wait(&self, deadline: &Deadline) -> Option<T> {
        poll_fn(|context| {
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

/// Nothing that can panic runs while one of these is locked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
