//! Ticks from a `timerfd`.

use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// True if the ticker needs the timers of the Tokio runtime.
pub const NEEDS_RUNTIME_TIME: bool = false;

/// Periodic tick, off at first.
pub struct Ticker {
    timer: AsyncFd<OwnedFd>,
    period: Duration,
    on: bool,
}

impl Ticker {
    /// Creates a ticker with the given period, switched off. Opens the descriptor here, so that starting the ticker
    /// cannot fail later because descriptors are exhausted.
    ///
    /// # Errors
    ///
    /// Returns the error of `timerfd_create(2)` or of the registration with the event loop.
    ///
    /// # Panics
    ///
    /// Panics outside of a runtime.
    pub fn new(period: Duration) -> io::Result<Ticker> {
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        Ok(Ticker {
            timer: crate::epoll::register(timer)?,
            period,
            on: false,
        })
    }

    /// Returns whether the ticker is on.
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Starts ticking; the first tick comes after one period.
    pub fn start(&mut self) {
        self.set(self.period);
        self.on = true;
    }

    /// Stops ticking and discards ticks that were not taken.
    pub fn stop(&mut self) {
        self.set(Duration::ZERO);
        self.on = false;
    }

    /// Returns the number of ticks since the last call. If the number is 0, the task is woken at the next tick.
    pub fn poll_ticks(&mut self, context: &mut Context<'_>) -> u32 {
        loop {
            // Pending: no tick has passed, and the task is woken at the next one. An error is returned only while the
            // runtime shuts down, when no task is woken any more.
            let Poll::Ready(Ok(mut readiness)) = self.timer.poll_read_ready(context) else {
                return 0;
            };
            // A read returns the number of ticks, in 8 bytes. It fails with EAGAIN if an earlier poll has read the last
            // tick already, or if the timer was set again or turned off after it.
            let mut ticks = [0; 8];
            match rustix::io::read(readiness.get_inner(), &mut ticks) {
                Ok(8) if self.on => return u32::try_from(u64::from_ne_bytes(ticks)).unwrap_or(u32::MAX),
                Err(rustix::io::Errno::INTR) => {}
                _ => readiness.clear_ready(),
            }
        }
    }

    /// Sets the period of the timer; zero turns the timer off.
    fn set(&self, period: Duration) {
        let period = Timespec {
            tv_sec: period.as_secs() as _,
            tv_nsec: period.subsec_nanos().into(),
        };
        let setting = Itimerspec {
            it_interval: period,
            it_value: period,
        };
        // Cannot fail, because the descriptor is a timer and the time is in range.
        let _ = timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::empty(), &setting);
    }
}
