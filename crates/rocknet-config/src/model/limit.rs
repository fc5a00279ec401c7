//! Limits of requests by client or by another key.

use std::fmt;
use std::time::Duration;

use super::access::ClientRange;
use crate::units;

/// Limit of the requests to a site or route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// Amount that is limited.
    pub amount: Amount,
    /// Text with placeholders. Requests with the same text share a limit; `None`: requests of the same client do.
    pub key: Option<String>,
    /// Clients that are not limited.
    pub exempt: Vec<ClientRange>,
    /// True if requests are only counted and logged, and not refused.
    pub dry_run: bool,
}

/// Amount that a [`Limit`] limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Amount {
    /// Requests per unit of time.
    Rate(RateLimit),
    /// Requests in progress at the same time.
    Connections(u32),
    /// Bytes of responses per second.
    Bandwidth(BandwidthLimit),
}

/// Bandwidth of each response, or of all responses that share a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BandwidthLimit {
    /// Bytes per second.
    pub rate: u64,
    /// Number of bytes at the beginning of a response that are not limited.
    pub after: u64,
    /// True if responses to requests with the same key share the bandwidth. False if each response has it.
    pub is_shared: bool,
}

/// Rate of requests, and what happens above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RateLimit {
    /// Number of requests per unit of time.
    pub rate: RequestRate,
    /// Number of requests that a client may send at once, before the rate applies.
    pub burst: u32,
    /// Treatment of requests above the rate.
    pub excess: Excess,
}

/// Treatment of requests above the rate, within the burst. Requests beyond the burst are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Excess {
    /// They are handled at once.
    Immediate,
    /// They wait until the rate permits them, except this number, which is handled at once.
    Delayed {
        /// Number of requests that do not wait.
        after: u32,
    },
}

/// Number of requests per unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestRate {
    /// Number of requests, at least 1.
    pub requests: u32,
    /// Unit.
    pub per: RateUnit,
}

/// Unit of time of a [`RequestRate`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RateUnit {
    /// A second.
    Second,
    /// A minute.
    Minute,
    /// An hour.
    Hour,
}

impl RateUnit {
    /// Returns the length of the unit.
    pub fn length(self) -> Duration {
        Duration::from_secs(match self {
            RateUnit::Second => 1,
            RateUnit::Minute => 60,
            RateUnit::Hour => 3_600,
        })
    }
}

impl RequestRate {
    /// Returns the time between two requests at this rate.
    pub fn interval(self) -> Duration {
        self.per.length() / self.requests
    }
}

impl fmt::Display for RequestRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.per {
            RateUnit::Second => 's',
            RateUnit::Minute => 'm',
            RateUnit::Hour => 'h',
        };
        write!(f, "{}/{unit}", self.requests)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Rate(limit) => limit.rate.fmt(f),
            Amount::Connections(max) => write!(f, "{max} connections"),
            Amount::Bandwidth(limit) => write!(f, "{}/s", units::format_size(limit.rate)),
        }
    }
}

impl Limit {
    /// Returns a limit of this amount with every other key at its default.
    pub(crate) fn of(amount: Amount) -> Limit {
        Limit {
            amount,
            key: None,
            exempt: Vec::new(),
            dry_run: false,
        }
    }
}

impl RateLimit {
    /// Returns the limit of a rate with every other key at its default.
    pub(crate) fn at(rate: RequestRate) -> RateLimit {
        RateLimit {
            rate,
            burst: rate.requests,
            excess: Excess::Immediate,
        }
    }

    /// Returns the longest time that a request can wait; zero without `delay`.
    pub fn max_delay(&self) -> Duration {
        match self.excess {
            Excess::Immediate => Duration::ZERO,
            // The first request of a burst never waits, so an `after` of 0 counts as 1.
            Excess::Delayed { after } => self
                .rate
                .interval()
                .saturating_mul(self.burst.saturating_sub(after.max(1))),
        }
    }
}
