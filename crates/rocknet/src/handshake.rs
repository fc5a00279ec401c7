//! The completed handshake of a TLS connection: its negotiated parameters, and the TLS policy that applied to it.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rocknet_io::tls::Negotiated;
use rocknet_quic::HandshakeInfo;
use rustls::pki_types::CertificateDer;

use crate::certificates::{ClientTrust, ClientVerification, TlsPolicy, client_names, end_of_validity};
use crate::exchange::TlsInfo;

/// A completed handshake.
pub struct Handshake {
    tls_info: Rc<TlsInfo>,
    policy: Arc<TlsPolicy>,
    /// Certificate of the client, if it has sent one.
    client: Option<Box<VerifiedClient>>,
}

/// Certificate of a client, which is verified again when the authorities or revocation lists change.
struct VerifiedClient {
    /// Certificate of the client, followed by its intermediate certificates.
    chain: Vec<CertificateDer<'static>>,
    /// End of its validity, in seconds of Unix time. 0 if it cannot be read, so that the certificate is never valid.
    ends: u64,
    trust: Arc<ClientTrust>,
    /// Last verification. `None` until the first request, because a resumed session was not verified in its handshake.
    last: RefCell<Option<LastVerification>>,
}

/// Result of a verification of a client's chain.
struct LastVerification {
    verification: Arc<ClientVerification>,
    is_accepted: bool,
    /// Time from which the result may be another one, in seconds of Unix time.
    until: u64,
}

impl Handshake {
    /// Records a handshake under the policy of a site. `server_name` is the name that the client sent (SNI), in lower
    /// case.
    pub fn new(policy: Arc<TlsPolicy>, negotiated: &Negotiated<'_>, server_name: Option<Box<str>>) -> Handshake {
        let chain = negotiated.peer.filter(|chain| !chain.is_empty());
        let client = chain.zip(policy.client_trust()).map(|(chain, trust)| {
            Box::new(VerifiedClient {
                chain: chain.iter().map(|der| der.clone().into_owned()).collect(),
                ends: end_of_validity(&chain[0]).unwrap_or(0),
                trust: Arc::clone(trust),
                last: RefCell::default(),
            })
        });
        Handshake {
            tls_info: Rc::new(TlsInfo::new(negotiated, server_name, |leaf| client_names(leaf))),
            policy,
            client,
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
    /// certificate and the same client authorities, and must accept the negotiated version. The certificate of the
    /// client must still be valid.
    #[inline]
    pub fn may_serve(&self, policy: &Arc<TlsPolicy>) -> bool {
        // A reload creates new policies, which may be equivalent to the old ones.
        let is_permitted = Arc::ptr_eq(&self.policy, policy)
            || self.policy.is_equivalent(policy) && policy.accepts(self.tls_info.version);
        is_permitted && self.client.as_ref().is_none_or(|client| client.is_valid())
    }
}

impl VerifiedClient {
    /// Returns true if the certificate is valid now, by the current authorities and revocation lists.
    fn is_valid(&self) -> bool {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |now| now.as_secs());
        if now > self.ends {
            return false;
        }
        let mut last = self.last.borrow_mut();
        if let Some(last) = &*last
            && now < last.until
            && self.trust.is_current(&last.verification)
        {
            return last.is_accepted;
        }
        // The files with the authorities were never read successfully, so no certificate can be verified.
        let Some(verification) = self.trust.current() else {
            return false;
        };
        let (is_accepted, until) = (
            verification.accepts(&self.chain),
            verification.valid_until(&self.chain, now),
        );
        *last = Some(LastVerification {
            verification,
            is_accepted,
            until,
        });
        is_accepted
    }
}
