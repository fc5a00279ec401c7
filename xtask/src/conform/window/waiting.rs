//! Waits for conditions, with a deadline.

use crate::Failure;
use std::thread;
use std::time::{Duration, Instant};

/// Timeout of every wait: far longer than a busy machine needs.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Pause between two looks at a condition.
const PAUSE: Duration = Duration::from_millis(20);

/// Waits until `done` returns a value, and fails with `what` after a minute.
pub fn wait<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> Result<T, Failure> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(value) = done() {
            return Ok(value);
        }
        if Instant::now() >= deadline {
            return Err(format!("this did not happen within {} s: {what}", TIMEOUT.as_secs()).into());
        }
        thread::sleep(PAUSE);
    }
}
