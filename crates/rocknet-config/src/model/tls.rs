//! TLS settings of sites.

use std::path::PathBuf;
use std::time::Duration;

use super::acme::Acme;
use super::with_defaults::with_defaults;
use crate::choice::choice;

choice! {
    /// Minimum version of TLS.
    #[derive(Copy, Hash)]
    pub enum TlsVersion {
        V12 = "1.2", "TLS 1.2 and newer";
        V13 = "1.3", "TLS 1.3 only";
    }
    default V12
}

with_defaults! {
    /// Settings of `[tls]`, for all sites that use TLS.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Tls {
        /// Minimum version.
        pub min: TlsVersion = TlsVersion::default(),
        /// Redirects requests without TLS to https://.
        pub redirect: bool = true,
        /// Accepts early data (0-RTT, RFC 8446 §2.3) over HTTP/3.
        pub early_data: bool = false,
        /// `max-age` of `Strict-Transport-Security` (RFC 6797); zero: the field is not sent. The default is long enough
        /// to cover the time between two visits of a client. It is short enough that an operator can give up HTTPS
        /// again.
        pub hsts: Duration = Duration::from_secs(30 * 86_400),
        /// Settings for certificates of public authorities.
        pub acme: Acme = Acme::default(),
    }
}

/// TLS settings of one site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteTls {
    /// Origin of the certificate.
    pub source: CertificateSource,
    /// Minimum version.
    pub min: TlsVersion,
    /// Requirement of client certificates; `None`: no certificate is requested.
    pub client: Option<ClientAuth>,
    /// Redirects requests without TLS to https://.
    pub redirect: bool,
    /// Accepts early data (0-RTT, RFC 8446 §2.3) over HTTP/3, unless clients authenticate by certificate.
    pub early_data: bool,
    /// `max-age` of `Strict-Transport-Security`; zero: the field is not sent. The default is [`Tls::hsts`], but zero
    /// in `dev` mode, without `redirect`, or with a certificate of the machine's own CA.
    pub hsts: Duration,
}

/// Origin of a site's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateSource {
    /// Public CA, or the machine's own CA for local names.
    Auto,
    /// The machine's own CA.
    Local,
    /// Certificate files, one set for each type of private key.
    Files(Vec<CertificateFiles>),
}

/// Files of one certificate.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CertificateFiles {
    /// PEM file of the certificate and its chain.
    pub cert: PathBuf,
    /// PEM file of the private key; equal to `cert` if certificate and key are in one file.
    pub key: PathBuf,
    /// DER file of an OCSP response that is stapled (RFC 6960).
    pub ocsp: Option<PathBuf>,
}

/// Authentication of clients by certificate.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClientAuth {
    /// PEM files of the certificate authorities that issue client certificates.
    pub ca: Vec<PathBuf>,
    /// Files of certificate revocation lists; empty: revocation is not checked.
    pub crl: Vec<PathBuf>,
    /// Refuses clients without a certificate.
    pub required: bool,
}
