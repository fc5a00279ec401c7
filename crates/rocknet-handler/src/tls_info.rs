//! Result of a connection's TLS handshake.

use base64ct::{Base64, Encoding};
use rocknet_config::model::ClientNames;
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
    /// Names of the certificate; `None` if they cannot be read.
    pub names: Option<ClientNames>,
    /// The certificate in DER.
    pub der: CertificateDer<'static>,
}

impl ClientCertificate {
    /// Returns the issuer, written like the subject.
    pub fn issuer(&self) -> String {
        let names = self.names.as_ref();
        names.map_or_else(String::new, |names| names.issuer.to_string())
    }

    /// Returns the SHA-256 of the certificate in lower-case hexadecimal digits; empty if the certificate cannot be
    /// read.
    pub fn fingerprint(&self) -> String {
        let hex = |names: &ClientNames| names.fingerprint.iter().map(|byte| format!("{byte:02x}")).collect();
        self.names.as_ref().map(hex).unwrap_or_default()
    }

    /// Returns the certificate as the value of `Client-Cert` (RFC 9440 §2.2).
    pub fn byte_sequence(&self) -> String {
        format!(":{}:", Base64::encode_string(&self.der))
    }

    /// Returns the certificate in PEM with percent-encoding, as `$ssl_client_escaped_cert` of nginx has it.
    pub fn escaped_pem(&self) -> String {
        let encoded = Base64::encode_string(&self.der);
        let mut pem = String::from("-----BEGIN%20CERTIFICATE-----%0A");
        for (at, c) in encoded.char_indices() {
            if at > 0 && at % PEM_LINE == 0 {
                pem.push_str("%0A");
            }
            match c {
                '+' => pem.push_str("%2B"),
                '/' => pem.push_str("%2F"),
                '=' => pem.push_str("%3D"),
                c => pem.push(c),
            }
        }
        pem.push_str("%0A-----END%20CERTIFICATE-----%0A");
        pem
    }
}

/// Characters in a line of a PEM file (RFC 7468 §2).
const PEM_LINE: usize = 64;

impl TlsInfo {
    /// Collects the parameters. `names` reads the names of a certificate.
    pub fn new(
        negotiated: &Negotiated<'_>,
        server_name: Option<Box<str>>,
        names: impl FnOnce(&CertificateDer<'_>) -> Option<ClientNames>,
    ) -> TlsInfo {
        let leaf = negotiated.peer.and_then(<[_]>::first);
        TlsInfo {
            version: negotiated.version,
            suite: negotiated.suite.map(|suite| suite.suite()),
            server_name,
            client: leaf.map(|der| {
                let names = names(der);
                ClientCertificate {
                    subject: names
                        .as_ref()
                        .map_or_else(String::new, |names| names.subject.to_string()),
                    names,
                    der: der.clone(),
                }
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
