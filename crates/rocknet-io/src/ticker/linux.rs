//! Ticks by `timerfd`.

use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

pub const NEEDS_RUNTIME_TIME: bool = false;

pub struct Ticker {
    timer: AsyncFd<OwnedFd>,
    length: Duration,
    on: bool,
}

impl Ticker {
    /// Off at first. It holds its descriptor from the beginning, so that time goes on when descriptors run out.
    pub fn new(length: Duration) -> io::Result<Ticker> {
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        Ok(Ticker {
            timer: crate::epoll::register(timer)?,
            length,
            on: false,
        })
    }

    pub fn is_on(&self) -> bool {
        self.on
    }

    pub fn start(&mut self) {
        self.set(self.length);
        self.on = true;
    }

    pub fn stop(&mut self) {
        self.set(Duration::ZERO);
        self.on = false;
    }

    /// Ticks since the last call; with none, the task is woken at the next.
    pub fn poll_ticks(&mut self, context: &mut Context<'_>) -> u32 {
        loop {
            let Poll::Ready(Ok(mut readiness)) = self.timer.poll_read_ready(context) else {
                return 0;
            };
            let mut ticks = [0; 8];
            match rustix::io::read(readiness.get_inner(), &mut ticks) {
                Ok(8) if self.on => return u32::try_from(u64::from_ne_bytes(ticks)).unwrap_or(u32::MAX),
                Err(rustix::io::Errno::INTR) => {}
                _ => readiness.clear_ready(),
            }
        }
    }

    fn set(&self, length: Duration) {
        let length = Timespec {
            tv_sec: length.as_secs() as _,
            tv_nsec: length.subsec_nanos().into(),
        };
        let ticks = Itimerspec {
            it_interval: length,
            it_value: length,
        };
        // The descriptor is a timer of ours and the time is in range: there is nothing to fail.
        let _ = timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::empty(), &ticks);
    }
}
