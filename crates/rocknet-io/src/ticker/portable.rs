//! Ticks by the runtime's own timers.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use tokio::time::{Sleep, sleep};

pub const NEEDS_RUNTIME_TIME: bool = true;

pub struct Ticker {
    next: Option<Pin<Box<Sleep>>>,
    length: Duration,
}

impl Ticker {
    pub fn new(length: Duration) -> io::Result<Ticker> {
        Ok(Ticker { next: None, length })
    }

    pub fn is_on(&self) -> bool {
        self.next.is_some()
    }

    pub fn start(&mut self) {
        self.next = Some(Box::pin(sleep(self.length)));
    }

    pub fn stop(&mut self) {
        self.next = None;
    }

    /// Ticks since the last call; with none, the task is woken at the next.
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
