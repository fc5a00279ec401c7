//! Session of a user, as its cookie keeps it.

use serde::{Deserialize, Serialize};

/// Divisor of the maximum idle time: a request renews the cookie of a session after a tenth of this time.
const RENEWALS: u64 = 10;

/// Session of a user who has logged in. Its members have short names in the cookie, whose size is limited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginSession {
    /// Identifier of the user at the provider.
    #[serde(rename = "s")]
    pub subject: String,
    /// Name of the user: the claim that [`ClaimNames::user`](crate::ClaimNames::user) selects.
    #[serde(rename = "u")]
    pub user: String,
    /// Claim `name`, the name of the person, if it is known.
    #[serde(rename = "n", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Email address that belongs to the user, if it is known.
    #[serde(rename = "e", skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// Groups of the user.
    #[serde(rename = "g")]
    pub groups: Vec<String>,
    /// Unix time of the login in seconds.
    #[serde(rename = "c")]
    pub created: u64,
    /// Unix time in seconds of the request that has renewed the cookie.
    #[serde(rename = "l")]
    pub seen: u64,
}

impl LoginSession {
    /// Reads a session as [`LoginSession::to_bytes`] has written it.
    pub fn parse(bytes: &[u8]) -> Option<LoginSession> {
        serde_json::from_slice(bytes).ok()
    }

    /// Returns the session in the form in which a cookie keeps it.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Returns the time in seconds for which the session is still valid; `None` if it has expired. `lifetime`: maximum
    /// time since the login. `idle`: maximum time since the last request.
    pub fn remaining(&self, now: u64, lifetime: u64, idle: u64) -> Option<u64> {
        let end = self
            .created
            .saturating_add(lifetime)
            .min(self.seen.saturating_add(idle));
        end.checked_sub(now).filter(|left| *left > 0)
    }

    /// Returns the session as it is after a request at `now`, if its cookie has to be renewed.
    pub fn renewed(&self, now: u64, idle: u64) -> Option<LoginSession> {
        let is_due = now.saturating_sub(self.seen) >= (idle / RENEWALS).max(1);
        is_due.then(|| LoginSession {
            seen: now,
            ..self.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_expire_and_are_renewed() {
        let session = LoginSession {
            subject: "1".to_owned(),
            user: "ann".to_owned(),
            name: None,
            email: Some("ann@a.test".to_owned()),
            groups: vec!["staff".to_owned()],
            created: 1_000,
            seen: 1_000,
        };
        assert_eq!(LoginSession::parse(&session.to_bytes()).as_ref(), Some(&session));
        for (now, left) in [(1_000, Some(100)), (1_099, Some(1)), (1_100, None), (5_000, None)] {
            assert_eq!(session.remaining(now, 1_000, 100), left, "{now}");
        }
        assert_eq!(session.renewed(1_009, 100), None);
        let renewed = session.renewed(1_090, 100).expect("a renewed session");
        assert_eq!(renewed.remaining(1_100, 1_000, 100), Some(90));
        assert_eq!(
            renewed.remaining(1_100, 95, 100),
            None,
            "the lifetime counts from the login"
        );
        for junk in ["", "{}", "[]", "{\"s\": 1}"] {
            assert_eq!(LoginSession::parse(junk.as_bytes()), None, "{junk}");
        }
    }
}
