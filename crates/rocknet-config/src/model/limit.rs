//! Limits of requests by client or by another key.

use std::fmt;
use std::time::Duration;

use super::access::ClientRange;

/// Limit of the requests to a site or route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// Number of requests per unit of time.
    pub rate: RequestRate,
    /// Number of requests that a client may send at once, before the rate applies.
    pub burst: u32,
    /// Text with placeholders. Requests with the same text share a limit; `None`: requests of the same client do.
    pub key: Option<String>,
    /// Treatment of requests above the rate.
    pub excess: Excess,
    /// Clients that are not limited.
    pub exempt: Vec<ClientRange>,
    /// True if requests are only counted and logged, and not refused.
    pub dry_run: bool,
}

/// Treatment of requests above the rate, within the burst.
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

impl Limit {
    /// Returns a limit with every key but `rate` at its default.
    pub(crate) fn at(rate: RequestRate) -> Limit {
        Limit {
            rate,
            burst: rate.requests,
            key: None,
            excess: Excess::Immediate,
            exempt: Vec::new(),
            dry_run: false,
        }
    }

    /// Returns the longest time that a request can wait; zero without `delay`.
    pub fn max_delay(&self) -> Duration {
        match self.excess {
            Excess::Immediate => Duration::ZERO,
            Excess::Delayed { after } => self
                .rate
                .interval()
                .saturating_mul(self.burst.saturating_sub(after.max(1))),
        }
    }
}
