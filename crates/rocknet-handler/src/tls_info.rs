//! Result of a connection's TLS handshake.

use rocknet_io::tls::Negotiated;
use rustls::pki_types::CertificateDer;
use rustls::{CipherSuite, ProtocolVersion};

/// Negotiated parameters of a TLS handshake.
#[derive(Debug)]
pub struct TlsInfo {
    /// TLS version.
    pub version: Option<ProtocolVersion>,
    suite: Option<CipherSuite>,
    /// Server name that the client requested (SNI), in lower case; `None` if it requested none.
    pub server_name: Option<Box<str>>,
    /// Certificate of the client, whose private key the client has proved to hold. `None` if it sent none.
    pub client: Option<ClientCertificate>,
}

/// Certificate of a client.
#[derive(Debug)]
pub struct ClientCertificate {
    /// Subject, such as `CN=bob, O=Example`. Empty if it cannot be read.
    pub subject: String,
    /// The certificate in DER.
    pub der: CertificateDer<'static>,
}

impl TlsInfo {
    /// Collects the parameters. `subject` reads the subject of a certificate.
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

    /// Returns the TLS version by its OpenSSL name, such as `TLSv1.3`.
    pub fn protocol(&self) -> Option<&'static str> {
        match self.version? {
            ProtocolVersion::TLSv1_2 => Some("TLSv1.2"),
            ProtocolVersion::TLSv1_3 => Some("TLSv1.3"),
            _ => None,
        }
    }

    /// Returns the cipher suite by its IANA name.
    pub fn cipher(&self) -> Option<&'static str> {
        Some(match self.suite? {
            CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
            CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
            CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
            // rustls uses the IANA names for suites of TLS 1.2.
            suite => suite.as_str()?,
        })
    }
}
