//! An issuer makes certificates by itself: told what is wanted, it puts what it has on the store.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use rocknet_config::model::Tls;

use super::CertificateStore;

/// Who is to vouch for a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Authority {
    /// The CA of this machine.
    Local,
    /// A public CA, by ACME.
    Acme,
}

/// A site that wants certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateRequest {
    /// Its name in the configuration, for messages.
    pub site: String,
    pub authority: Authority,
    /// Lower case, never empty; `*.example.com` for all names below one, addresses as text without brackets. The first
    /// one is also what a client gets that names nobody.
    pub names: Vec<String>,
}

/// Makes certificates for sites of one authority and keeps them young.
pub trait Issuer: Send {
    fn authority(&self) -> Authority;

    /// What `[tls]` says, from the next `want` on: at the start, and before each reload.
    fn configure(&mut self, _: &Tls) {}

    /// All sites that want certificates from this authority, from now on: at the start, and after each reload. Those
    /// wanted before and no longer named are not renewed any more. Called on the main thread: the local CA may make what
    /// is missing at once, nobody may wait for the network.
    fn set_requests(&mut self, requests: &[CertificateRequest], store: &Arc<CertificateStore>);

    /// Called every few seconds on the thread `rn-certs`: renews what is due. Work that waits for the network belongs
    /// to a thread of the issuer's own.
    fn renew_due(&mut self, now: SystemTime, store: &Arc<CertificateStore>);

    /// Ends the thread of the issuer, where it has one. Returns whether it had ended at `deadline`.
    fn stop(&mut self, _deadline: Instant) -> bool {
        true
    }
}
