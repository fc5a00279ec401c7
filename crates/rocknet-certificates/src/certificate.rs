//! X.509 certificates with their private keys, and sets of certificates for the same names, one for each key algorithm.
//! The signature schemes that a client offers select the certificate of a set.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{SignatureAlgorithm, SignatureScheme};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

/// Maximum number of names read from one certificate; further names are ignored. Public CAs allow about 100.
const MAX_NAMES: usize = 1_000;

/// A certificate with its chain and private key, parsed and checked once.
#[derive(Debug, Clone)]
pub struct Certificate {
    key: Arc<CertifiedKey>,
    algorithm: SignatureAlgorithm,
    names: Vec<String>,
    not_before: SystemTime,
    not_after: SystemTime,
    /// File from which the certificate was read, if any.
    origin: Option<Arc<Path>>,
}

/// The reason why a certificate and key cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateError {
    /// The chain is empty.
    NoCertificate,
    /// The certificate cannot be read.
    Certificate(String),
    /// The key cannot be read, or its kind is not supported by TLS.
    Key(String),
    /// The key belongs to another certificate.
    Mismatch,
}

impl Certificate {
    /// Creates a certificate and checks that the key belongs to the first certificate of `chain`. The chain begins with
    /// the leaf, continues with its issuers in order, and omits the root.
    ///
    /// # Errors
    /// Returns the reason why the certificate and key cannot be used.
    pub fn new(
        chain: Vec<CertificateDer<'static>>,
        key: &PrivateKeyDer<'static>,
    ) -> Result<Certificate, CertificateError> {
        let leaf = chain.first().ok_or(CertificateError::NoCertificate)?;
        let (_, parsed) =
            X509Certificate::from_der(leaf).map_err(|error| CertificateError::Certificate(error.to_string()))?;
        let names = names(&parsed);
        let validity = parsed.validity();
        let (not_before, not_after) = (
            time(validity.not_before.timestamp()),
            time(validity.not_after.timestamp()),
        );
        let signing = any_supported_type(key).map_err(|error| CertificateError::Key(error.to_string()))?;
        let algorithm = signing.algorithm();
        let key = CertifiedKey::new(chain, signing);
        match key.keys_match() {
            // `Unknown` means that rustls cannot compare the public half of this key. If the key does not match,
            // handshakes fail.
            Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => {}
            Err(rustls::Error::InconsistentKeys(_)) => return Err(CertificateError::Mismatch),
            Err(error) => return Err(CertificateError::Certificate(error.to_string())),
        }
        Ok(Certificate {
            key: Arc::new(key),
            algorithm,
            names,
            not_before,
            not_after,
            origin: None,
        })
    }

    pub(super) fn with_origin(mut self, path: &Path) -> Certificate {
        self.origin = Some(path.into());
        self
    }

    pub(super) fn origin(&self) -> Option<&Path> {
        self.origin.as_deref()
    }

    /// Adds an OCSP response (DER), which is stapled unchanged.
    pub fn with_ocsp(mut self, response: Option<Vec<u8>>) -> Certificate {
        let mut key = CertifiedKey::clone(&self.key);
        key.ocsp = response;
        self.key = Arc::new(key);
        self
    }

    /// Returns the chain and signing key in the form that rustls uses.
    pub fn key(&self) -> &Arc<CertifiedKey> {
        &self.key
    }

    /// Returns the DNS names and addresses of the certificate (subjectAltName), in lower case.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the issuer as a distinguished name in text form.
    pub fn issuer(&self) -> String {
        self.key.cert.first().and_then(|leaf| issuer(leaf)).unwrap_or_default()
    }

    /// Returns the start of the validity period.
    pub fn not_before(&self) -> SystemTime {
        self.not_before
    }

    /// Returns the end of the validity period.
    pub fn not_after(&self) -> SystemTime {
        self.not_after
    }
}

/// Certificates for the same names, one for each key algorithm, most preferred first.
#[derive(Debug, Clone)]
pub struct CertificateSet(Vec<Certificate>);

impl CertificateSet {
    /// Sorts the certificates by preference: ECDSA, EdDSA, RSA.
    pub fn new(mut all: Vec<Certificate>) -> CertificateSet {
        // ECDSA signs many times faster than RSA, and its chains are shorter, so every client that supports ECDSA gets
        // the ECDSA certificate.
        all.sort_by_key(|certificate| rank(certificate.algorithm));
        CertificateSet(all)
    }

    /// Returns the certificates, most preferred first.
    pub fn certificates(&self) -> &[Certificate] {
        &self.0
    }

    /// Returns the first certificate whose key can sign with one of the offered schemes; `None` if no key can.
    pub fn choose(&self, offered: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0
            .iter()
            .find(|certificate| certificate.key.key.choose_scheme(offered).is_some())
            .map(|certificate| Arc::clone(&certificate.key))
    }
}

impl From<Certificate> for CertificateSet {
    fn from(certificate: Certificate) -> CertificateSet {
        CertificateSet(vec![certificate])
    }
}

impl ResolvesServerCert for CertificateSet {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // If this function returned no certificate, rustls would send access_denied (49). With any certificate, rustls
        // itself detects that no signature scheme is shared and sends handshake_failure (40).
        self.choose(hello.signature_schemes())
            .or_else(|| self.0.first().map(|certificate| Arc::clone(&certificate.key)))
    }
}

/// Resolver that returns the same certificate to every client, for TLS-ALPN-01 challenges.
#[derive(Debug)]
pub struct SingleCertificate(pub Arc<CertifiedKey>);

impl ResolvesServerCert for SingleCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

/// Returns the preference of an algorithm; 0 is the most preferred.
fn rank(algorithm: SignatureAlgorithm) -> u8 {
    match algorithm {
        SignatureAlgorithm::ECDSA => 0,
        SignatureAlgorithm::ED25519 | SignatureAlgorithm::ED448 => 1,
        _ => 2,
    }
}

/// Returns the issuer of a DER certificate; `None` if it cannot be parsed.
fn issuer(der: &[u8]) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    Some(certificate.issuer().to_string())
}

/// Moves the leaf to the front. The leaf is the first certificate that issued none of the others.
pub(super) fn leaf_first(chain: &mut [CertificateDer<'static>]) {
    let parsed: Vec<_> = chain.iter().map(|der| X509Certificate::from_der(der).ok()).collect();
    let signed_none = |at: usize| {
        let own = parsed[at].as_ref().map(|(_, one)| one.subject().as_raw());
        let others = parsed.iter().enumerate().filter(|(other, _)| *other != at);
        own.is_some()
            && others
                .flat_map(|(_, one)| one)
                .all(|(_, one)| Some(one.issuer().as_raw()) != own)
    };
    if let Some(leaf) = (0..chain.len()).find(|at| signed_none(*at)) {
        chain[..=leaf].rotate_right(1);
    }
}

/// Returns the DNS names and addresses of a certificate (subjectAltName), in lower case.
fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(alternatives)) = certificate.subject_alternative_name() else {
        return Vec::new();
    };
    let text = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
        GeneralName::IPAddress(bytes) => match <[u8; 4]>::try_from(*bytes) {
            Ok(v4) => Some(std::net::Ipv4Addr::from(v4).to_string()),
            Err(_) => <[u8; 16]>::try_from(*bytes)
                .ok()
                .map(|v6| std::net::Ipv6Addr::from(v6).to_string()),
        },
        _ => None,
    };
    let all = alternatives.value.general_names.iter();
    all.filter_map(text).take(MAX_NAMES).collect()
}

/// Converts seconds since 1970. A time before 1970 becomes 1970.
fn time(unix: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(u64::try_from(unix).unwrap_or(0))
}

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CertificateError::NoCertificate => f.write_str("there is no certificate"),
            CertificateError::Certificate(error) => write!(f, "the certificate cannot be read: {error}"),
            CertificateError::Key(error) => write!(f, "the key cannot be used: {error}"),
            CertificateError::Mismatch => f.write_str("the key belongs to another certificate"),
        }
    }
}

impl std::error::Error for CertificateError {}
