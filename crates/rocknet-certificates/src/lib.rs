//! TLS certificates of sites: their sources, their storage, and the lookup during a handshake.
//!
//! ```text
//! files (PEM named in the configuration) ────────────────▶ the site's own set ─┐
//! issuers (local CA, ACME) ──insert──▶ store: name → set ──────────────────────┴▶ handshake picks a key
//! ```
//! An [`Issuer`] obtains certificates and inserts them into the [`CertificateStore`]. Neither the start of the server
//! nor a request waits for a public CA.
#![forbid(unsafe_code)]

pub mod acme;
mod certificate;
mod client_handshake;
mod client_names;
mod client_trust;
mod environment;
pub mod files;
mod inspection;
mod issuer;
pub mod local;
mod manager;
mod pem;
pub mod resumption;
mod roots;
mod secure_site;
mod site_requests;
pub mod storage;
mod store;
mod tls_config;
pub mod trust;

pub use certificate::{Certificate, CertificateError, CertificateSet, SingleCertificate};
pub use client_handshake::end_of_validity;
pub use client_names::client_names;
pub use client_trust::{ClientTrust, ClientVerification};
pub use environment::ServerEnvironment;
pub use issuer::{Authority, CertificateRequest, Issuer};
pub use manager::{CertificateManager, SYSTEM_STATE_FOLDER, state_folder};
pub use roots::read_roots;
pub use secure_site::{SecureSite, TlsPolicy};
pub use site_requests::needs_local_ca;
pub use store::CertificateStore;
pub use tls_config::{ACME_PROTOCOL, HQ_INTEROP, HTTP_2, HTTP_3, PROTOCOLS};
