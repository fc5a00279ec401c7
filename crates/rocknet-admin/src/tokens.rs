//! Tokens that clients over TCP present, and the throttle of requests without valid credentials.

use std::sync::{Mutex, PoisonError};

use rocknet_control::api::{ApiError, Permission};
use subtle::ConstantTimeEq;

/// Maximum number of requests in [`WINDOW_MS`] that get status 401 for lack of valid credentials. Further requests
/// get 429, so that a misconfigured client waits. Protection from guesses does not depend on this limit: tokens are too
/// long to be guessed, and `rocknet_access` limits wrong passwords for each client.
const MAX_FAILURES: u32 = 20;
/// Period in milliseconds over which requests without valid credentials are counted.
const WINDOW_MS: u64 = 60_000;

/// The two tokens of a server. An empty token admits no request.
pub struct Tokens {
    /// Admits every request.
    pub full: String,
    /// Admits requests that change nothing and whose replies contain no secrets.
    pub read: String,
}

impl Tokens {
    /// Returns the permission of a value of `Authorization` (RFC 6750 §2.1); `None` if it has no valid token.
    pub fn permission(&self, authorization: &[u8]) -> Option<Permission> {
        let (scheme, token) = authorization.split_at_checked("bearer ".len())?;
        if !scheme.eq_ignore_ascii_case(b"bearer ") {
            return None;
        }
        let is = |known: &str| bool::from(known.as_bytes().ct_eq(token)) && !known.is_empty();
        if is(&self.full) {
            Some(Permission::Full)
        } else if is(&self.read) {
            Some(Permission::Read)
        } else {
            None
        }
    }
}

/// Counts requests without valid credentials. Credentials are a token, the password of the user `admin`, or the code in
/// a link from `rocknet dashboard`. All clients share the counter.
#[derive(Default)]
pub struct Failures(Mutex<Window>);

/// The present interval of [`WINDOW_MS`], with the number of requests in it.
#[derive(Default)]
struct Window {
    began_ms: u64,
    count: u32,
}

impl Failures {
    /// Counts a request without valid credentials, and returns the error to send: 401, or 429 above the limit. Valid
    /// credentials are accepted even above the limit. `now_ms`: current uptime of the server in milliseconds.
    pub fn count(&self, now_ms: u64) -> ApiError {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if now_ms.saturating_sub(window.began_ms) >= WINDOW_MS {
            *window = Window {
                began_ms: now_ms,
                count: 0,
            };
        }
        window.count = window.count.saturating_add(1);
        if window.count > MAX_FAILURES {
            ApiError::new(429, "too many requests without valid credentials; wait a minute")
        } else {
            ApiError::new(401, "the request needs a valid token: `Authorization: Bearer TOKEN`")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_give_permissions() {
        let tokens = Tokens {
            full: "aaaa".into(),
            read: "bbbb".into(),
        };
        for (value, expected) in [
            ("Bearer aaaa", Some(Permission::Full)),
            ("bearer bbbb", Some(Permission::Read)),
            ("Bearer aaab", None),
            ("Bearer aaaaa", None),
            ("Bearer  aaaa", None),
            ("Bearer ", None),
            ("Basic aaaa", None),
            ("", None),
        ] {
            assert_eq!(tokens.permission(value.as_bytes()), expected, "{value:?}");
        }
        let none = Tokens {
            full: String::new(),
            read: String::new(),
        };
        assert_eq!(none.permission(b"Bearer "), None);
    }

    #[test]
    fn wrong_tokens_are_throttled() {
        let failures = Failures::default();
        let count = |now| failures.count(now).status;
        assert!((0..MAX_FAILURES).all(|at| count(at.into()) == 401));
        assert_eq!(count(WINDOW_MS - 1), 429);
        assert_eq!(count(WINDOW_MS + 100), 401);
    }
}
