//! State and counters of the response cache.

use serde::{Deserialize, Serialize};

/// The response cache. Numbers of requests are those of routes with `cache`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ResponseCache {
    /// Number of URLs with stored responses in memory now.
    pub addresses: u64,
    /// Number of bytes of stored responses in memory now.
    pub bytes: u64,
    /// Responses on disk; `None` if the server stores none there.
    pub disk: Option<ResponseCacheDisk>,
    /// Number of requests to which a fresh stored response was sent.
    pub hits: u64,
    /// Number of these hits that a worker sent without a lookup, because their requests are frequent.
    pub ready_hits: u64,
    /// Number of requests to which a stale stored response was sent.
    pub stale: u64,
    /// Number of requests to which the response to another request was sent.
    pub collapsed: u64,
    /// Number of requests that were forwarded.
    pub misses: u64,
    /// Number of requests that did not use the cache.
    pub bypassed: u64,
    /// Of the requests that used the cache, the share that was not forwarded: 0 to 1, rounded to four digits. `None` if
    /// no request has used the cache.
    pub hit_ratio: Option<f64>,
}

/// Responses of the response cache on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ResponseCacheDisk {
    /// Number of responses on disk now.
    pub responses: u64,
    /// Number of bytes of all files with stored responses now.
    pub bytes: u64,
    /// Number of responses that were read from disk.
    pub hits: u64,
}

impl ResponseCache {
    /// Returns the number of requests that used the cache and were not forwarded.
    pub fn served(&self) -> u64 {
        self.hits.saturating_add(self.stale).saturating_add(self.collapsed)
    }

    /// Returns the number of requests that used the cache.
    pub fn requests(&self) -> u64 {
        self.served().saturating_add(self.misses)
    }

    /// Returns the value with its [`hit_ratio`](ResponseCache::hit_ratio) computed.
    #[must_use]
    pub fn with_hit_ratio(self) -> ResponseCache {
        let hit_ratio = ratio(self.served(), self.requests());
        ResponseCache { hit_ratio, ..self }
    }
}

/// Returns the share of requests that were not forwarded, rounded to four digits; `None` without requests.
pub fn ratio(served: u64, requests: u64) -> Option<f64> {
    (requests > 0).then(|| (served as f64 / requests as f64 * 1e4).round() / 1e4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_bypass_the_cache_have_no_part_in_the_ratio() {
        fn check(cache: ResponseCache, expected: Option<f64>) {
            assert_eq!(cache.with_hit_ratio().hit_ratio, expected, "{cache:?}");
        }
        let cache = ResponseCache {
            hits: 90,
            ready_hits: 80,
            stale: 3,
            collapsed: 2,
            misses: 10,
            bypassed: 1_000,
            ..ResponseCache::default()
        };
        check(cache, Some(0.9048));
        check(ResponseCache { misses: 0, ..cache }, Some(1.0));
        let bypassed = ResponseCache {
            bypassed: 7,
            ..ResponseCache::default()
        };
        check(bypassed, None);
        let misses = 5;
        check(ResponseCache { misses, ..bypassed }, Some(0.0));
        let hits = u64::MAX;
        check(ResponseCache { hits, ..cache }, Some(1.0));
    }
}
