//! Delay before a failed worker is started again, and the wait for it.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// First delay, short enough that clients of a worker that has failed once notice little.
const MIN_DELAY: Duration = Duration::from_millis(100);
/// Longest delay. A worker that fails at every start then occupies no core, and serves again soon after the cause of
/// the failure is gone.
const MAX_DELAY: Duration = Duration::from_secs(5);
/// Running time after which a failure does not count as a repetition. The delay after it is [`MIN_DELAY`] again.
const STABLE_TIME: Duration = Duration::from_secs(30);

/// Delays of one worker: doubled with each failure after less than `STABLE_TIME`.
#[derive(Debug, Default)]
pub struct RestartDelay {
    /// Number of failures in a row. A failure after [`STABLE_TIME`] or more counts as the first one again.
    failures: u32,
}

impl RestartDelay {
    /// Returns the delay after a failure. `ran`: time for which the worker ran before.
    pub fn next(&mut self, ran: Duration) -> Duration {
        if ran >= STABLE_TIME {
            self.failures = 0;
        }
        // The factor is at most 64, so the shift cannot overflow. A factor of 64 gives 6.4 s, more than the longest
        // delay.
        let delay = MIN_DELAY * (1 << self.failures.min(6));
        self.failures = self.failures.saturating_add(1);
        delay.min(MAX_DELAY)
    }

    /// Returns the number of failures in a row.
    pub fn failures(&self) -> u32 {
        self.failures
    }
}

/// Blocks the thread until `future` is ready, at most for `limit`. Returns `None` when the limit is reached. Used by
/// threads without an event loop.
pub fn wait_at_most<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    let deadline = Instant::now() + limit;
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        thread::park_timeout(left);
    }
}

/// Waker that unparks a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[test]
    fn delays_grow_up_to_a_bound_and_are_reset_after_a_stable_time() {
        let mut delay = RestartDelay::default();
        let short = Duration::from_secs(1);
        let milliseconds: Vec<u128> = (0..8).map(|_| delay.next(short).as_millis()).collect();
        assert_eq!(milliseconds, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(delay.failures(), 8);
        assert_eq!(delay.next(STABLE_TIME), MIN_DELAY);
        assert_eq!(delay.failures(), 1);
        for _ in 0..100 {
            assert!(delay.next(short) <= MAX_DELAY);
        }
    }

    #[test]
    fn a_wait_ends_with_the_future_or_at_the_limit() {
        assert_eq!(wait_at_most(Duration::from_secs(60), async { 7 }), Some(7));
        let never = poll_fn(|_| Poll::<()>::Pending);
        assert_eq!(wait_at_most(Duration::from_millis(1), never), None);
        // A wake by another thread ends the wait early.
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let sending = thread::spawn(move || sender.send(8));
        let received = wait_at_most(Duration::from_secs(60), receiver.recv());
        assert_eq!(received, Some(Some(8)));
        sending.join().unwrap().unwrap();
    }
}
