//! The handshake of a TLS connection: its facts, and the trust that it was made under.

use std::rc::Rc;
use std::sync::Arc;

use rocknet_io::tls::Negotiated;

use crate::certificates::{TlsPolicy, subject};
use crate::exchange::TlsInfo;

/// A handshake that has succeeded.
pub struct Handshake {
    facts: Rc<TlsInfo>,
    policy: Arc<TlsPolicy>,
}

impl Handshake {
    pub fn new(policy: Arc<TlsPolicy>, negotiated: &Negotiated<'_>, server_name: Option<Box<str>>) -> Handshake {
        Handshake {
            facts: Rc::new(TlsInfo::new(negotiated, server_name, |leaf| subject(leaf))),
            policy,
        }
    }

    /// The facts that handlers see.
    #[inline]
    pub fn facts(&self) -> &Rc<TlsInfo> {
        &self.facts
    }

    /// Returns whether the connection may carry requests for a site: one that shows the same certificate, trusts the same, and
    /// takes this version.
    #[inline]
    pub fn may_request(&self, policy: &Arc<TlsPolicy>) -> bool {
        // A reload makes new ones that are equal.
        Arc::ptr_eq(&self.policy, policy) || self.policy.is_equivalent(policy) && policy.accepts(self.facts.version)
    }
}
