//! Data about a request that is not part of its message, but on which conditions of rules depend.

use std::net::IpAddr;

use rocknet_config::model::Existence;

/// Data about a request, besides its message.
pub trait RequestFacts {
    /// Returns true if the request was received over TLS.
    fn is_secure(&self) -> bool;

    /// Returns the IP address of the client; `None` for a client on a Unix socket.
    fn client(&self) -> Option<IpAddr>;

    /// Returns what a decoded path leads to, in the root of the route of that path.
    ///
    /// # Errors
    /// Fails if the result is not known without waiting for the disk, or if it cannot be determined.
    fn existence(&self, path: &str) -> Result<Existence, LookupError>;
}

/// Reason why it is not known what a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupError {
    /// The lookup has to wait for the disk. The caller looks up the path in the blocking pool, and then applies the
    /// rules again.
    WouldBlock,
    /// The lookup failed, for example because no file descriptor is left. The response is 503.
    Failed,
}
