//! Ticks from the timers of the Tokio runtime.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use tokio::time::{Sleep, sleep};

/// True if the ticker needs the timers of the Tokio runtime.
pub const NEEDS_RUNTIME_TIME: bool = true;

/// Periodic tick, off at first.
pub struct Ticker {
    /// End of the current period; `None` while the ticker is off.
    next: Option<Pin<Box<Sleep>>>,
    period: Duration,
}

impl Ticker {
    /// Creates a ticker with the given period, switched off.
    ///
    /// # Errors
    ///
    /// Never fails on this system.
    pub fn new(period: Duration) -> io::Result<Ticker> {
        Ok(Ticker { next: None, period })
    }

    /// Returns whether the ticker is on.
    pub fn is_on(&self) -> bool {
        self.next.is_some()
    }

    /// Starts ticking; the first tick comes after one period.
    ///
    /// # Panics
    ///
    /// Panics outside of a runtime.
    pub fn start(&mut self) {
        self.next = Some(Box::pin(sleep(self.period)));
    }

    /// Stops ticking and discards ticks that were not taken.
    pub fn stop(&mut self) {
        self.next = None;
    }

    /// Returns the number of ticks since the last call. The number is 1 even if several periods have passed, because
    /// the next period begins with this call. If the number is 0, the task is woken at the next tick.
    pub fn poll_ticks(&mut self, context: &mut Context<'_>) -> u32 {
        let mut ticks = 0;
        while let Some(next) = &mut self.next {
            if next.as_mut().poll(context).is_pending() {
                break;
            }
            ticks += 1;
            self.start();
        }
        ticks
    }
}
