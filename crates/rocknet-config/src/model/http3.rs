//! Settings of HTTP/3.

use std::time::Duration;

use super::listen::Listen;
use super::with_defaults::with_defaults;

with_defaults! {
    /// HTTP/3 of the server or of one site.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Http3 {
        /// True if HTTPS listeners also serve HTTP/3, on the UDP port of the same number.
        pub enabled: bool = true,
        /// Lifetime of the announcement in `Alt-Svc` (`ma`, RFC 7838 §3.1): for this time after a response, clients may
        /// connect to the HTTP/3 port.
        pub max_age: Duration = Duration::from_secs(86_400),
        /// True if `hq-interop` (HTTP/0.9 over QUIC) is accepted too, for tests with other implementations.
        pub hq_interop: bool = false,
        /// Listeners without HTTP/3. A listener without an address stands for its port at every address.
        pub except: Vec<Listen> = Vec::new(),
    }
}

impl Http3 {
    /// Returns true if an HTTPS listener also serves HTTP/3.
    pub fn is_enabled_at(&self, listen: &Listen) -> bool {
        self.enabled && !self.except.iter().any(|except| except.includes(listen))
    }
}
