//! The interface of issuers, which make certificates on request and insert them into the certificate store.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use rocknet_config::model::Tls;

use super::CertificateStore;

/// The certificate authority that signs for a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Authority {
    /// The local CA of this machine.
    Local,
    /// A public CA, reached by ACME (RFC 8555).
    Acme,
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

/// Makes certificates for the sites of one authority and renews them before they expire.
pub trait Issuer: Send {
    /// Returns the authority whose requests this issuer handles.
    fn authority(&self) -> Authority;

    /// Takes the `[tls]` table, which applies from the next call of [`Issuer::set_requests`]. Called at start and
    /// before each reload.
    fn configure(&mut self, _: &Tls) {}

    /// Replaces all requests of this authority. Called at start and after each reload; sites that are no longer
    /// requested are not renewed any more.
    ///
    /// Runs on the main thread. The local CA may sign missing certificates in this call, but the call must not wait for
    /// the network.
    fn set_requests(&mut self, requests: &[CertificateRequest], store: &Arc<CertificateStore>);

    /// Renews certificates that are due. Called every few seconds on the thread `rn-certs`, so work that waits for the
    /// network belongs on a thread of the issuer's own.
    fn renew_due(&mut self, now: SystemTime, store: &Arc<CertificateStore>);

    /// Stops the issuer's own thread, if it has one. Returns whether the thread had ended at `deadline`.
    fn stop(&mut self, _deadline: Instant) -> bool {
        true
    }
}
