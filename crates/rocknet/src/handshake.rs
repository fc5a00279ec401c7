//! The completed handshake of a TLS connection: its negotiated parameters, and the TLS policy that applied to it.

use std::rc::Rc;
use std::sync::Arc;

use rocknet_io::tls::Negotiated;
use rocknet_quic::HandshakeInfo;

use crate::certificates::{TlsPolicy, subject};
use crate::exchange::TlsInfo;

/// A completed handshake.
pub struct Handshake {
    tls_info: Rc<TlsInfo>,
    policy: Arc<TlsPolicy>,
}

impl Handshake {
    /// Records a handshake under the policy of a site. `server_name` is the name that the client sent (SNI), in lower
    /// case.
    pub fn new(policy: Arc<TlsPolicy>, negotiated: &Negotiated<'_>, server_name: Option<Box<str>>) -> Handshake {
        Handshake {
            tls_info: Rc::new(TlsInfo::new(negotiated, server_name, |leaf| subject(leaf))),
            policy,
        }
    }

    /// Records the handshake of a QUIC connection.
    pub fn of_quic(policy: Arc<TlsPolicy>, info: &HandshakeInfo) -> Handshake {
        let negotiated = Negotiated {
            alpn: info.alpn.as_deref(),
            version: info.version,
            suite: info.suite,
            peer: info.peer.as_deref(),
            resumed: info.resumed,
        };
        let server_name = info.server_name.as_deref().map(|name| name.to_ascii_lowercase().into());
        Handshake::new(policy, &negotiated, server_name)
    }

    /// Returns the negotiated parameters, which handlers can read.
    #[inline]
    pub fn tls_info(&self) -> &Rc<TlsInfo> {
        &self.tls_info
    }

    /// Returns true if the connection may carry requests for a site with this policy. The site must have the same
    /// certificate and the same client authorities, and must accept the negotiated version.
    #[inline]
    pub fn may_serve(&self, policy: &Arc<TlsPolicy>) -> bool {
        // A reload creates new policies, which may be equivalent to the old ones.
        Arc::ptr_eq(&self.policy, policy) || self.policy.is_equivalent(policy) && policy.accepts(self.tls_info.version)
    }
}
