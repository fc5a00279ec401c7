//! One-shot timer of the Tokio runtime.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::Context;
use std::time::Instant;

use tokio::time::{Sleep, sleep};

/// Timer that wakes a task once. Initially it is not set.
pub struct Alarm {
    /// `None` if the alarm is not set or has gone off.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    /// Creates an alarm that is not set.
    ///
    /// # Errors
    ///
    /// Never fails. Only the Linux implementation can return an error.
    pub fn new() -> io::Result<Alarm> {
        Ok(Alarm { sleep: None })
    }

    /// Sets the moment and replaces the previous one; `None` clears it. `now` is the current time. The task is woken
    /// only if [`Alarm::poll`] is called afterwards.
    pub fn set(&mut self, moment: Option<Instant>, now: Instant) {
        self.sleep = moment.map(|moment| Box::pin(sleep(moment.saturating_duration_since(now))));
    }

    /// Returns true once after the moment has passed. If the moment has not passed yet, the task is woken when it
    /// passes.
    pub fn poll(&mut self, context: &mut Context<'_>) -> bool {
        let Some(sleep) = &mut self.sleep else {
            return false;
        };
        let is_past = sleep.as_mut().poll(context).is_ready();
        if is_past {
            self.sleep = None;
        }
        is_past
    }
}
