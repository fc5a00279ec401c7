//! The time as one worker sees it: read once a tick, so that no request asks the system for it.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rocknet_proto::semantics::date;

pub use rocknet_io::uptime::uptime_ms;

/// Longest time between two readings while there are connections. The `Date` field and the age of cached
/// entries are late by this at most.
pub const MAX_TICK: Duration = Duration::from_millis(250);

pub struct Clock {
    source: TimeSource,
    unix_ms: Cell<u64>,
    uptime_ms: Cell<u64>,
    date: Cell<[u8; 29]>,
}

/// Where a server has its time from.
#[derive(Debug, Clone, Default)]
pub enum TimeSource {
    #[default]
    System,
    /// Milliseconds of uptime that a test sets. The cache and the log go by the time of the system all the same.
    Virtual(Arc<AtomicU64>),
}

impl TimeSource {
    /// Milliseconds of uptime: see [`uptime_ms`].
    #[inline]
    pub fn uptime_ms(&self) -> u64 {
        match self {
            TimeSource::System => uptime_ms(),
            TimeSource::Virtual(ms) => ms.load(Ordering::SeqCst),
        }
    }
}

impl Clock {
    /// Reads the time once.
    pub fn new(source: TimeSource) -> Clock {
        let clock = Clock {
            source,
            unix_ms: Cell::new(0),
            uptime_ms: Cell::new(0),
            date: Cell::new(*b"Thu, 01 Jan 1970 00:00:00 GMT"),
        };
        clock.update();
        clock
    }
}

impl Clock {
    /// Asks the system for the time.
    pub fn update(&self) {
        let unix_ms = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_millis() as u64);
        if unix_ms / 1000 != self.unix_ms.get() / 1000 {
            self.date.set(date::format(unix_ms / 1000));
        }
        self.unix_ms.set(unix_ms);
        self.uptime_ms.set(self.source.uptime_ms());
    }

    pub fn unix_ms(&self) -> u64 {
        self.unix_ms.get()
    }

    /// On the same scale as [`TimeSource::uptime_ms`], and never ahead of it.
    #[inline]
    pub fn uptime_ms(&self) -> u64 {
        self.uptime_ms.get()
    }

    /// For the `Date` field.
    #[inline]
    pub fn date(&self) -> [u8; 29] {
        self.date.get()
    }
}

/// One response in so many is timed of those that are ready. Two readings of the clock cost 45 ns where the kernel lets
/// programs read it (measured on a Xeon with `clocksource=tsc`), and two system calls elsewhere; a ready response takes less
/// than a microsecond.
const SAMPLE_EVERY: u8 = 64;

/// How long ready responses take, by samples: those that are not timed are recorded with the duration of the last sample.
#[derive(Debug, Default)]
pub struct ReadyLatency {
    /// Requests until the next sample.
    left: Cell<u8>,
    duration_us: Cell<u64>,
}

impl ReadyLatency {
    /// Begins a request. Returns the time if it is to be timed.
    #[inline]
    pub fn begin(&self) -> Option<Instant> {
        match self.left.get() {
            0 => {
                self.left.set(SAMPLE_EVERY - 1);
                Some(Instant::now())
            }
            left => {
                self.left.set(left - 1);
                None
            }
        }
    }

    /// Ends a request whose response was ready. Returns its duration, or that of the last sample.
    #[inline]
    pub fn end(&self, begun: Option<Instant>) -> u64 {
        if let Some(begun) = begun {
            self.duration_us.set(microseconds(begun.elapsed()));
        }
        self.duration_us.get()
    }
}

/// A duration for the log.
pub fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
