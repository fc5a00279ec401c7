//! Settings of bans.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::access::ClientRange;
use super::with_defaults::with_defaults;
use crate::units;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

with_defaults! {
    /// Settings of `[ban]`: the offences after which a client is banned, and the lists of banned addresses. Offences
    /// whose rate is `None` lead to no ban.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Ban {
        /// Failed logins that a client may make.
        pub logins: Option<OffenceRate> = Some(OffenceRate { count: 10, window: Duration::from_secs(600) }),
        /// Requests for missing files that a client may make.
        pub not_found: Option<OffenceRate> = Some(OffenceRate { count: 60, window: MINUTE }),
        /// Refused requests that a client may make: those with a response 400, 403, 405, 413, 414, 421, 429 or 431.
        pub refused: Option<OffenceRate> = Some(OffenceRate { count: 120, window: MINUTE }),
        /// Failed TLS handshakes that a client may make.
        pub handshakes: Option<OffenceRate> = Some(OffenceRate { count: 50, window: MINUTE }),
        /// Paths to which each POST counts as a failed login, unless the response is a redirect, with which most
        /// applications confirm a login.
        pub login_paths: Vec<String> = vec!["/wp-login.php".to_owned()],
        /// Duration of the first ban of a client.
        pub time: Duration = HOUR,
        /// Maximum duration of a ban. Each further ban of a client takes twice as long as the one before.
        pub max_time: Duration = 7 * 24 * HOUR,
        /// Clients that are never banned.
        pub exempt: Vec<ClientRange> = vec![ClientRange::Private],
        /// Files with banned addresses and networks.
        pub files: Vec<PathBuf> = Vec::new(),
        /// Only counts and logs the bans that offences would lead to.
        pub dry_run: bool = false,
    }
}

/// Number of offences that a client may commit within a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffenceRate {
    /// Number of offences.
    pub count: u32,
    /// Time in which they may be committed.
    pub window: Duration,
}

/// Writes the rate as in the configuration, such as `10/10m`.
impl fmt::Display for OffenceRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, units::format_timeout(self.window))
    }
}
