//! Settings of the response cache.

use std::collections::BTreeMap;
use std::time::Duration;

use super::rule::Conditions;
use super::with_defaults::with_defaults;

/// Use of the disk by the stored responses of a site or route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseDisk {
    /// They are only in memory.
    Off,
    /// They are written to disk too. The site has no quota.
    Shared,
    /// They are written to disk too, up to this size in bytes for the whole site. A quota of a route has no effect.
    Quota(u64),
}

with_defaults! {
    /// Cache of the responses of a proxy, of PHP, of an application or of a controller.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ResponseCache {
        /// Lifetime of responses that state none; zero: such responses are not stored.
        pub ttl: Duration = Duration::ZERO,
        /// Lifetimes of responses that state none, by status; they take precedence over `ttl`.
        pub statuses: BTreeMap<u16, Duration> = BTreeMap::new(),
        /// Derives the lifetime of responses that state none from the time since their last modification (RFC 9111
        /// §4.2.2). It takes precedence over `ttl`, but not over `statuses`.
        pub heuristic: bool = false,
        /// Time after the lifetime in which a response is sent while it is validated in the background.
        pub stale_while_revalidate: Duration = Duration::ZERO,
        /// Time after the lifetime in which a response is sent if its handler fails.
        pub stale_if_error: Duration = Duration::ZERO,
        /// Patterns of cookie names. A request with such a cookie is not served from the cache.
        pub bypass_cookies: Vec<String> = Vec::new(),
        /// Sets of conditions. A request that meets all conditions of one of them is not served from the cache.
        pub bypass: Vec<Conditions> = Vec::new(),
        /// Template of the key of responses; `None`: host, path and query.
        pub key: Option<String> = None,
        /// Memory of the stored responses of the site in bytes; `None`: it shares `cache.responses` with other sites.
        pub memory: Option<u64> = None,
        /// Use of the disk, if `cache.responses_disk` is not 0.
        pub disk: ResponseDisk = ResponseDisk::Shared,
        /// Maximum size of a stored body, in bytes.
        pub max_object: u64 = 10 * 1024 * 1024,
        /// Obeys `Cache-Control` of requests.
        pub obey_clients: bool = false,
        /// Obeys the header fields of cache plugins for LiteSpeed, such as `X-LiteSpeed-Cache-Control`.
        pub litespeed: bool = false,
    }
}
