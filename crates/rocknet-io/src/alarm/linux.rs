//! One-shot timer of the kernel (`timerfd`).

use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// Timer that wakes a task once. Initially it is not set.
pub struct Alarm {
    timer: AsyncFd<OwnedFd>,
}

impl Alarm {
    /// Creates an alarm that is not set.
    ///
    /// # Errors
    ///
    /// Returns the error of `timerfd_create(2)` or of the registration with the event loop.
    ///
    /// # Panics
    ///
    /// Panics outside of a runtime.
    pub fn new() -> io::Result<Alarm> {
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        Ok(Alarm {
            timer: crate::epoll::register(timer)?,
        })
    }

    /// Sets the moment and replaces the previous one; `None` clears it. `now` is the current time.
    pub fn set(&mut self, moment: Option<Instant>, now: Instant) {
        // A value of zero turns the timer off, so a moment in the past is set to one nanosecond from now.
        let remaining = moment.map_or(Duration::ZERO, |moment| {
            moment.saturating_duration_since(now).max(Duration::from_nanos(1))
        });
        let timespec = |time: Duration| Timespec {
            tv_sec: time.as_secs() as _,
            tv_nsec: time.subsec_nanos().into(),
        };
        let setting = Itimerspec {
            // No second expiration follows the first.
            it_interval: timespec(Duration::ZERO),
            it_value: timespec(remaining),
        };
        // Cannot fail: the descriptor is a timer and the time is in range.
        let _ = timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::empty(), &setting);
    }

    /// Returns true once after the moment has passed. If the moment has not passed yet, the task is woken when it
    /// passes.
    pub fn poll(&mut self, context: &mut Context<'_>) -> bool {
        loop {
            // Pending: the moment has not passed, and the task is woken later. An error is returned only while the
            // runtime shuts down, when no task is woken any more.
            let Poll::Ready(Ok(mut readiness)) = self.timer.poll_read_ready(context) else {
                return false;
            };
            // A read returns the number of expirations, in 8 bytes. It fails with EAGAIN if the timer was set again
            // after it had expired, or if an earlier poll has read the expiration already.
            match rustix::io::read(readiness.get_inner(), &mut [0; 8]) {
                Ok(8) => return true,
                Err(rustix::io::Errno::INTR) => {}
                _ => readiness.clear_ready(),
            }
        }
    }
}
