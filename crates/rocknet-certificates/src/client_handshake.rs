//! Verifier and session tickets of one handshake that requests a client certificate. A ticket is valid until
//! the first certificate of the verified client chain expires.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustls::client::danger::HandshakeSignatureValid;
use rustls::server::ProducesTickets;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, UnixTime};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::resumption::TicketCipher;

/// Size in bytes of the expiry time, which precedes the session in a ticket.
const END_LENGTH: usize = 8;

/// Session tickets of one handshake.
pub(super) struct ClientTickets {
    cipher: Arc<TicketCipher>,
    /// Time at which the client's chain expires, in seconds of Unix time; [`u64::MAX`] without a certificate.
    ends: AtomicU64,
}

impl ClientTickets {
    pub fn new(cipher: Arc<TicketCipher>) -> ClientTickets {
        ClientTickets {
            cipher,
            ends: AtomicU64::new(u64::MAX),
        }
    }
}

impl ProducesTickets for ClientTickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        self.cipher.lifetime()
    }

    fn encrypt(&self, session: &[u8]) -> Option<Vec<u8>> {
        let ends = self.ends.load(Ordering::Relaxed).to_be_bytes();
        self.cipher.encrypt(&[&ends, session].concat())
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let plain = self.cipher.decrypt(ticket)?;
        let (ends, session) = plain.split_first_chunk::<END_LENGTH>()?;
        let ends = u64::from_be_bytes(*ends);
        // The new tickets of a resumed session end at the same time as this one.
        self.ends.store(ends, Ordering::Relaxed);
        (UnixTime::now().as_secs() <= ends).then(|| session.to_vec())
    }
}

/// Shows no key.
impl fmt::Debug for ClientTickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTickets").finish_non_exhaustive()
    }
}

/// Verifier of the client certificate in one handshake.
#[derive(Debug)]
pub(super) struct ClientVerifier {
    verifier: Arc<dyn ClientCertVerifier>,
    /// True if the handshake fails without a client certificate.
    is_required: bool,
    tickets: Arc<ClientTickets>,
}

impl ClientVerifier {
    pub fn new(
        verifier: Arc<dyn ClientCertVerifier>,
        is_required: bool,
        tickets: Arc<ClientTickets>,
    ) -> ClientVerifier {
        ClientVerifier {
            verifier,
            is_required,
            tickets,
        }
    }
}

impl ClientCertVerifier for ClientVerifier {
    fn client_auth_mandatory(&self) -> bool {
        self.is_required
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.verifier.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.verifier.verify_client_cert(end_entity, intermediates, now)?;
        // A certificate whose validity cannot be read is not remembered for a resumed session.
        let own = end_of_validity(end_entity).unwrap_or(0);
        // The client may send certificates that are not part of the verified path. Only these can have expired.
        let others = intermediates.iter().filter_map(|der| end_of_validity(der));
        let ends = others.filter(|end| *end >= now.as_secs()).fold(own, u64::min);
        self.tickets.ends.store(ends, Ordering::Relaxed);
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

/// Returns the time at which a certificate expires, in seconds of Unix time; `None` if it cannot be read.
pub fn end_of_validity(der: &[u8]) -> Option<u64> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    u64::try_from(certificate.validity().not_after.timestamp()).ok()
}
