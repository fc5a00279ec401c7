//! Settings for certificates of public certificate authorities (ACME, RFC 8555).

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::with_defaults::with_defaults;
use crate::choice::choice;

choice! {
    /// Public certificate authority that is known by name.
    #[derive(Copy)]
    pub enum KnownCa {
        LetsEncrypt = "letsencrypt", "Let's Encrypt";
        LetsEncryptStaging = "letsencrypt-staging", "the test environment of Let's Encrypt, whose certificates clients do not trust";
    }
    default LetsEncrypt
}

choice! {
    /// Type of an ACME challenge, which proves control of a name (RFC 8555 §8, RFC 8737).
    #[derive(Copy)]
    pub enum Challenge {
        Http = "http-01", "a response on port 80";
        TlsAlpn = "tls-alpn-01", "a certificate on port 443";
        Dns = "dns-01", "a DNS record, which `dns` creates; required for wildcard names";
    }
}

impl KnownCa {
    /// Returns the URL of the authority's ACME directory.
    pub(crate) fn url(self) -> &'static str {
        match self {
            KnownCa::LetsEncrypt => "https://acme-v02.api.letsencrypt.org/directory",
            KnownCa::LetsEncryptStaging => "https://acme-staging-v02.api.letsencrypt.org/directory",
        }
    }
}

with_defaults! {
    /// ACME settings, for all sites whose certificates come from a public CA.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Acme {
        /// Email address at which a CA may contact the operator.
        pub email: Option<String> = None,
        /// Certificate authorities, tried in this order until one issues the certificate; never empty.
        pub cas: Vec<AcmeCa> = vec![AcmeCa { url: KnownCa::default().url().to_owned(), binding: None }],
        /// PEM file of the root certificates that verify connections to CAs; `None`: the system's root certificates.
        pub ca_root: Option<PathBuf> = None,
        /// Challenge types, tried in this order until one succeeds.
        pub challenges: Vec<Challenge> = vec![Challenge::Http, Challenge::TlsAlpn],
        /// Way to change the records of a zone for `dns-01`; `None`: `dns-01` is not available.
        pub dns: Option<Dns> = None,
        /// URL, `http://…`, that decides whether a name below a wildcard gets a certificate on demand; `None`: no name
        /// gets one.
        pub ask: Option<String> = None,
    }
}

/// Certificate authority that speaks ACME.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcmeCa {
    /// URL of the authority's ACME directory, `https://…`.
    pub url: String,
    /// Key for external account binding (RFC 8555 §7.3.4), which ties the ACME account to an existing account at the
    /// CA; `None`: no external account is bound.
    pub binding: Option<SharedKey>,
}

/// Shared secret and the identifier by which the peer knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedKey {
    /// Identifier of the key, such as the name of a TSIG key.
    pub name: String,
    /// The key itself.
    pub secret: Secret,
}

/// Secret bytes, which [`Debug`](fmt::Debug) does not print.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

/// Way to change the records of a DNS zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dns {
    /// Runs a program as `PROGRAM present|cleanup NAME VALUE`. NAME is the name of the TXT record without a final dot,
    /// and VALUE is its text.
    Hook {
        /// Path of the program.
        program: PathBuf,
        /// Time to wait after a change, so that all servers of the zone have the record.
        wait: Duration,
    },
    /// Sends a dynamic update to a server of the zone (RFC 2136).
    Update {
        /// Zone that is changed.
        zone: DnsZone,
        /// Time to wait after a change, so that all servers of the zone have the record.
        wait: Duration,
    },
}

/// DNS zone, and the server that accepts updates for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DnsZone {
    /// Address of the server.
    pub server: SocketAddr,
    /// Name of the zone; `None`: the server is queried for the name.
    pub name: Option<String>,
    /// TSIG key that signs updates (RFC 8945); `None`: the server has to accept unsigned updates from this machine.
    pub key: Option<SharedKey>,
}

impl Secret {
    /// Creates a secret from its bytes.
    pub fn new(bytes: Vec<u8>) -> Secret {
        Secret(bytes)
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}
