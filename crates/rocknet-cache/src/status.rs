//! The field `Cache-Status` (RFC 9211).

use std::fmt::Write;

use rocknet_handler::response::Response;

/// Parameter `detail` of a stale response that was sent in place of an error.
pub const STALE_IF_ERROR: &str = "stale-if-error";

/// Reason why a request was forwarded (RFC 9211 §2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forwarded {
    /// The route does not use the cache for this request.
    Bypass,
    /// The method is neither GET nor HEAD.
    Method,
    /// Nothing is stored for the URI.
    UriMiss,
    /// The responses that are stored for the URI do not suit the request.
    VaryMiss,
    /// The stored response is stale.
    Stale,
    /// The request does not permit the stored response, by `Cache-Control` or because it has `Authorization`.
    Request,
}

/// Place of a stored response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// In memory.
    Memory,
    /// On disk.
    Disk,
}

/// Outcome of a request in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheStatus {
    /// A stored response was sent. The number is the rest of its lifetime in seconds, negative if it is stale.
    Hit(i64, Tier),
    /// The request was forwarded.
    Forwarded {
        /// Reason.
        reason: Forwarded,
        /// Status of the upstream's response, if another one was sent.
        status: Option<u16>,
        /// True if the response was stored.
        is_stored: bool,
        /// True if the request waited for the response to another request.
        is_collapsed: bool,
        /// More about the reason, a token.
        detail: Option<&'static str>,
    },
}

impl CacheStatus {
    /// Returns the status of a request that was forwarded for this reason.
    pub fn forwarded(reason: Forwarded) -> CacheStatus {
        CacheStatus::Forwarded {
            reason,
            status: None,
            is_stored: false,
            is_collapsed: false,
            detail: None,
        }
    }

    /// Returns the outcome in the words of `$upstream_cache_status` of nginx, for the access log.
    pub fn word(self) -> &'static str {
        match self {
            CacheStatus::Hit(ttl, _) if ttl < 0 => "STALE",
            CacheStatus::Hit(..) => "HIT",
            CacheStatus::Forwarded {
                reason,
                status,
                is_collapsed,
                detail,
                ..
            } => match reason {
                Forwarded::Bypass | Forwarded::Method => "BYPASS",
                _ if is_collapsed => "HIT",
                _ if detail == Some(STALE_IF_ERROR) => "STALE",
                _ if status == Some(304) => "REVALIDATED",
                Forwarded::Stale => "EXPIRED",
                _ => "MISS",
            },
        }
    }

    /// Returns the value of the field.
    pub fn to_value(self) -> String {
        let mut value = String::with_capacity(48);
        value.push_str("RockNet");
        match self {
            CacheStatus::Hit(ttl, tier) => {
                let _ = write!(value, "; hit; ttl={ttl}");
                if tier == Tier::Disk {
                    value.push_str("; detail=disk");
                }
            }
            CacheStatus::Forwarded {
                reason,
                status,
                is_stored,
                is_collapsed,
                detail,
            } => {
                value.push_str("; fwd=");
                value.push_str(match reason {
                    Forwarded::Bypass => "bypass",
                    Forwarded::Method => "method",
                    Forwarded::UriMiss => "uri-miss",
                    Forwarded::VaryMiss => "vary-miss",
                    Forwarded::Stale => "stale",
                    Forwarded::Request => "request",
                });
                if let Some(status) = status {
                    let _ = write!(value, "; fwd-status={status}");
                }
                if is_stored {
                    value.push_str("; stored");
                }
                if is_collapsed {
                    value.push_str("; collapsed");
                }
                if let Some(detail) = detail {
                    let _ = write!(value, "; detail={detail}");
                }
            }
        }
        value
    }
}

/// Adds the status to a response.
pub fn add_status(response: &mut Response, status: CacheStatus) {
    response.cache_status = status.word();
    response.fields.add("Cache-Status", status.to_value());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_have_the_words_of_nginx() {
        let forwarded = |reason, status, is_collapsed, detail| CacheStatus::Forwarded {
            reason,
            status,
            is_stored: false,
            is_collapsed,
            detail,
        };
        for (status, expected) in [
            (CacheStatus::Hit(0, Tier::Memory), "HIT"),
            (CacheStatus::Hit(-1, Tier::Disk), "STALE"),
            (forwarded(Forwarded::UriMiss, None, false, None), "MISS"),
            (forwarded(Forwarded::UriMiss, None, true, None), "HIT"),
            (forwarded(Forwarded::Stale, None, false, None), "EXPIRED"),
            (forwarded(Forwarded::Stale, Some(304), false, None), "REVALIDATED"),
            (
                forwarded(Forwarded::Stale, Some(503), false, Some(STALE_IF_ERROR)),
                "STALE",
            ),
            (CacheStatus::forwarded(Forwarded::Bypass), "BYPASS"),
            (CacheStatus::forwarded(Forwarded::Method), "BYPASS"),
        ] {
            assert_eq!(status.word(), expected, "{status:?}");
        }
    }
}
