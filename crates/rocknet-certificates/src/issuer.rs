//! The interface of issuers, which obtain certificates on request and insert them into the certificate store.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use rocknet_config::model::Tls;

use rocknet_config::is_local_name;
use rocknet_config::model::{CertificateSource, Mode};

use super::CertificateStore;

/// The certificate authority that signs for a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Authority {
    /// The local CA of this machine.
    Local,
    /// A public CA that supports ACME (RFC 8555).
    Acme,
}

impl Authority {
    /// Returns the authority that signs for a name of a site with this source; `None` if the site has certificate
    /// files. Local names go to the local CA and public names to ACME. In `dev` mode, and for the source `Local`, all
    /// names go to the local CA.
    pub fn of(source: &CertificateSource, mode: Mode, name: &str) -> Option<Authority> {
        match source {
            CertificateSource::Files(_) => None,
            CertificateSource::Local => Some(Authority::Local),
            CertificateSource::Auto if mode == Mode::Dev || is_local_name(name) => Some(Authority::Local),
            CertificateSource::Auto => Some(Authority::Acme),
        }
    }
}

/// The certificates that one site needs from one authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateRequest {
    /// Name of the site in the configuration, for log messages.
    pub site: String,
    /// Authority that signs these names.
    pub authority: Authority,
    /// Names in lower case, at least one: host names, `*.example.com` for a wildcard, and addresses as text without
    /// brackets. The first name also serves clients that send no SNI.
    pub names: Vec<String>,
}

/// Obtains certificates for sites from one authority and renews them before they expire.
pub trait Issuer: Send {
    /// Returns the authority whose requests this issuer handles.
    fn authority(&self) -> Authority;

    /// Stores the settings of the `[tls]` table, which apply from the next call of [`Issuer::set_requests`]. Called at
    /// server start and at each reload, before the requests are set.
    fn configure(&mut self, _: &Tls) {}

    /// Replaces all requests of this authority. Called at server start and at each reload. Certificates of sites
    /// without a request are no longer renewed.
    ///
    /// Runs on the main thread. The local CA may sign missing certificates in this call, but the call must not wait for
    /// the network.
    fn set_requests(&mut self, requests: &[CertificateRequest], store: &Arc<CertificateStore>);

    /// Renews certificates that are due. Called every few seconds on the thread `rn-certs`, which all issuers share.
    /// Work that waits for the network must run on another thread of the issuer.
    fn renew_due(&mut self, now: SystemTime, store: &Arc<CertificateStore>);

    /// Stops the issuer's own thread, if it has one. Returns true if the thread ended before `deadline`.
    fn stop(&mut self, _deadline: Instant) -> bool {
        true
    }
}
