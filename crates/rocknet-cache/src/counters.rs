//! Outcomes of requests to cached routes, which are counted by site.

use rocknet_handler::outcomes::{CountedOutcome, OutcomeCounters};

/// Outcome of a request to a cached route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// A fresh response was sent.
    Hit,
    /// A stale response was sent.
    Stale,
    /// The response to a simultaneous request for the same key was sent (request coalescing).
    Collapsed,
    /// A GET request for a whole response was forwarded.
    Miss,
    /// The request bypassed the cache, or was forwarded with HEAD or for a range.
    Bypass,
}

impl CountedOutcome for Counted {
    const NAMES: &'static [&'static str] = &["hit", "stale", "collapsed", "miss", "bypass"];

    fn index(self) -> usize {
        self as usize
    }
}

/// Counters of one site.
pub type Counters = OutcomeCounters<Counted>;
