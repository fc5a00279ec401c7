//! Encryption of sites, as meant.

use std::path::PathBuf;
use std::time::Duration;

use super::acme::Acme;
use super::with_defaults::with_defaults;
use crate::choice::choice;

choice! {
    /// A version of TLS, the oldest that is spoken.
    #[derive(Copy, Hash)]
    pub enum TlsVersion {
        V12 = "1.2", "and newer";
        V13 = "1.3", "alone";
    }
    default V12
}

with_defaults! {
    /// Encryption, for all sites that have it.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Tls {
        pub min: TlsVersion = TlsVersion::default(),
        /// Redirects requests in the clear to https://.
        pub redirect: bool = true,
        /// Time in which browsers use https:// alone; zero: no such field is sent. The default is long enough to cover
        /// the gap between two visits, and short enough to be undone.
        pub hsts: Duration = Duration::from_secs(30 * 86_400),
        /// Public CAs, and the proofs that they are given.
        pub acme: Acme = Acme::default(),
    }
}

/// Encryption of one site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteTls {
    pub source: CertificateSource,
    pub min: TlsVersion,
    pub client: Option<ClientAuth>,
    pub redirect: bool,
    /// Time of the field that is sent: mode and issuer are accounted for.
    pub hsts: Duration,
}

/// Origin of a site's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateSource {
    /// A public CA, or the machine's own where the name is local.
    Auto,
    /// The machine's own CA.
    Local,
    /// One for each kind of key.
    Files(Vec<CertificateFiles>),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CertificateFiles {
    pub cert: PathBuf,
    /// The same as `cert` where both stand in one file.
    pub key: PathBuf,
    pub ocsp: Option<PathBuf>,
}

/// Demand for a certificate of the client.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClientAuth {
    pub ca: Vec<PathBuf>,
    pub required: bool,
}
