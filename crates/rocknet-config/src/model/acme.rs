//! Certificates of public CAs, as meant.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::with_defaults::with_defaults;
use crate::choice::choice;

choice! {
    /// A public authority that is known by a name.
    #[derive(Copy)]
    pub enum KnownCa {
        LetsEncrypt = "letsencrypt", "Let's Encrypt";
        LetsEncryptStaging = "letsencrypt-staging", "its certificates for trying out, which nobody trusts";
    }
    default LetsEncrypt
}

choice! {
    /// A way to prove a name.
    #[derive(Copy)]
    pub enum Challenge {
        Http = "http-01", "a text on port 80";
        TlsAlpn = "tls-alpn-01", "a certificate on port 443";
        Dns = "dns-01", "a record in the zone, by `dns`; it alone proves wildcards";
    }
}

impl KnownCa {
    /// The URL of its directory.
    pub(crate) fn url(self) -> &'static str {
        match self {
            KnownCa::LetsEncrypt => "https://acme-v02.api.letsencrypt.org/directory",
            KnownCa::LetsEncryptStaging => "https://acme-staging-v02.api.letsencrypt.org/directory",
        }
    }
}

with_defaults! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Acme {
        /// Address at which a CA may write to the operator.
        pub email: Option<String> = None,
        /// Asked in this order until one signs; never empty.
        pub cas: Vec<AcmeCa> = vec![AcmeCa { url: KnownCa::default().url().to_owned(), binding: None }],
        /// Roots that CAs are known by, instead of those of the system.
        pub ca_root: Option<PathBuf> = None,
        /// Proofs of names, in the order in which they are tried.
        pub challenges: Vec<Challenge> = vec![Challenge::Http, Challenge::TlsAlpn],
        pub dns: Option<Dns> = None,
        /// `http://…`: who says whether a name below a wildcard may have a certificate.
        pub ask: Option<String> = None,
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcmeCa {
    /// Its directory, `https://…`.
    pub url: String,
    /// Key that ties the account to one that exists at the CA (external account binding).
    pub binding: Option<SharedKey>,
}

/// A secret and the name by which the other side knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedKey {
    pub name: String,
    pub secret: Secret,
}

/// Bytes that no message shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

/// The way to change records of a zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dns {
    /// By a program: `program present|cleanup NAME VALUE`.
    Hook { program: PathBuf, wait: Duration },
    /// By an update of the zone (RFC 2136).
    Update { zone: DnsZone, wait: Duration },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DnsZone {
    pub server: SocketAddr,
    /// Name of the zone; `None`: the server is queried for it.
    pub name: Option<String>,
    /// Key that signs updates (TSIG); without it the server has to accept them from this address.
    pub key: Option<SharedKey>,
}

impl Secret {
    pub fn new(bytes: Vec<u8>) -> Secret {
        Secret(bytes)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}
