//! The result of the TLS handshake of a connection.

use rocknet_io::tls::Negotiated;
use rustls::pki_types::CertificateDer;
use rustls::{CipherSuite, ProtocolVersion};

/// The negotiated parameters of a TLS handshake.
#[derive(Debug)]
pub struct TlsInfo {
    pub version: Option<ProtocolVersion>,
    suite: Option<CipherSuite>,
    /// The name that the client asked for in its handshake, in lower case.
    pub server_name: Option<Box<str>>,
    /// The certificate that the client has proved to be its own.
    pub client: Option<ClientCertificate>,
}

#[derive(Debug)]
pub struct ClientCertificate {
    /// The subject: `CN=bob, O=Example`.
    pub subject: String,
    pub der: CertificateDer<'static>,
}

impl TlsInfo {
    /// `subject` reads the name of the holder from a certificate.
    pub fn new(
        negotiated: &Negotiated<'_>,
        server_name: Option<Box<str>>,
        subject: impl FnOnce(&CertificateDer<'_>) -> Option<String>,
    ) -> TlsInfo {
        let leaf = negotiated.peer.and_then(<[_]>::first);
        TlsInfo {
            version: negotiated.version,
            suite: negotiated.suite.map(|suite| suite.suite()),
            server_name,
            client: leaf.map(|der| ClientCertificate {
                subject: subject(der).unwrap_or_default(),
                der: der.clone(),
            }),
        }
    }

    /// The version of TLS, as OpenSSL names it.
    pub fn protocol(&self) -> Option<&'static str> {
        match self.version? {
            ProtocolVersion::TLSv1_2 => Some("TLSv1.2"),
            ProtocolVersion::TLSv1_3 => Some("TLSv1.3"),
            _ => None,
        }
    }

    /// The cipher suite, as IANA names it.
    pub fn cipher(&self) -> Option<&'static str> {
        Some(match self.suite? {
            CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
            CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
            CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
            // Those of TLS 1.2 have no other name.
            suite => suite.as_str()?,
        })
    }
}
