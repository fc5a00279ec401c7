//! Access log of the built server.

use crate::Failure;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Timeout for a line: far longer than a busy machine needs.
const TIMEOUT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(50);

/// Waits until the log contains `text`.
pub fn await_text(log: &Path, text: &str) -> Result<(), Failure> {
    let started = Instant::now();
    while !fs::read_to_string(log)?.contains(text) {
        if started.elapsed() > TIMEOUT {
            return Err(format!("no {text:?} in {}", log.display()).into());
        }
        thread::sleep(POLL);
    }
    Ok(())
}
