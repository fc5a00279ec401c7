//! Certificates: what proves a site's name under TLS, where it comes from, and how it is found in a handshake.
//!
//! ```text
//! files (PEM named in the configuration) ──────────────▶ the site's own set ─┐
//! issuers (local CA, ACME) ──put──▶ shelf: name → set ───────────────────────┴▶ handshake picks a key
//! ```
//! Whoever makes certificates implements [`Issuer`] and puts what it made on the [`Shelf`]; nobody waits for it.
#![forbid(unsafe_code)]

pub mod acme;
mod disk;
pub mod files;
mod inspection;
mod issuer;
mod keeper;
mod keyset;
pub mod local;
mod pem;
mod secure_site;
mod settings;
mod shelf;
pub mod storage;
pub mod trust;

pub use disk::Disk;
pub use issuer::{Authority, Issuer, Wanted};
pub use keeper::{Keeper, state_folder};
pub use keyset::{Answer, Certified, KeyError, KeySet, subject};
pub use secure_site::{SecureSite, Trust};
pub use settings::{ACME_PROTOCOL, HTTP_2, PROTOCOLS, read_roots};
pub use shelf::Shelf;
